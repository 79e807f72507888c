package executor_test

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/executor"
	"github.com/workerlink/supervisor/future"
	"github.com/workerlink/supervisor/internal/testkit"
)

// A crash costs the task that was running, and says how it died; all others have their values.
func TestCrashCostsTheRunningTask(t *testing.T) {
	if !processes(t) {
		return
	}
	for _, tt := range []struct {
		do     string
		code   int
		signal syscall.Signal
		tail   string
	}{
		{"exit test", 3, 0, "the last words of test"},
		{"kill", -1, syscall.SIGKILL, ""},
	} {
		t.Run(tt.do, func(t *testing.T) {
			events := testkit.NewRecorder(func(e executor.Event) executor.EventKind { return e.Kind })
			x := newExecutor(t, executor.Options{MaxWorkers: 2, Events: events.Record})
			var good []*future.Future[string]
			more := func() {
				for i := range 10 {
					good = append(good, submit(t, misbehave, x, fmt.Sprint(len(good)+i)))
				}
			}
			more()
			bad := submit(t, misbehave, x, tt.do)
			more()
			failed := failure(t, bad)
			require.False(t, failed.Unexecuted, "it had begun")
			require.Equal(t, 1, failed.Attempts, "attempts")
			exit := failed.Exit()
			require.NotNil(t, exit, "how the worker ended: %v", failed)
			require.Equal(t, tt.code, exit.Code, "exit code")
			require.Equal(t, tt.signal, exit.Signal, "signal")
			require.Contains(t, exit.Tail, tt.tail, "end of its output")
			for _, f := range good {
				value(t, f)
			}
			crashed := events.Wait(t, executor.EventCrashed)
			require.Equal(t, "test.misbehave", crashed.Task, "task of the event")
			require.Equal(t, exit.Pid, crashed.Pid, "process of the event")
			require.Equal(t, failed.Worker, crashed.Worker, "worker of the event")
			shutdown(t, x)
			require.EqualValues(t, 1, x.Stats().Workers.Crashed, "workers that died")
		})
	}
}

// A worker that dies while it has nothing to do costs no task.
func TestCrashOfAnIdleWorker(t *testing.T) {
	if !processes(t) {
		return
	}
	events := testkit.NewRecorder(func(e executor.Event) executor.EventKind { return e.Kind })
	x := newExecutor(t, executor.Options{MaxWorkers: 1, MinIdle: 1, Events: events.Record})
	for range 3 {
		pid := value(t, submit(t, getpid, x, 0))
		kill(pid)
		require.NotEqual(t, pid, value(t, submit(t, getpid, x, 0)), "process of the next task")
	}
	pid := value(t, submit(t, getpid, x, 0))
	for range 4 {
		events.Wait(t, executor.EventStarted)
	}
	kill(pid)
	require.NotEqual(t, pid, events.Wait(t, executor.EventStarted).Pid, "a worker that comes without a task")
	shutdown(t, x)
	require.Zero(t, x.Stats().Failed, "tasks that failed")
}

// Within a chunk, what was finished before the crash is kept, and what had not begun is executed by another worker: each
// task exactly once.
func TestCrashInAChunk(t *testing.T) {
	if !processes(t) {
		return
	}
	ledger := testkit.NewLedger(t)
	x := newExecutor(t, executor.Options{MaxWorkers: 1})
	const n = 100
	bad := map[int]string{13: "exit", 50: "error", 51: "exit", 99: "exit"}
	input := func(yield func(entry) bool) {
		for i := range n {
			if !yield(entry{ledger.Path, fmt.Sprint(i), bad[i]}) {
				return
			}
		}
	}
	at := 0
	for item := range executor.Map(t.Context(), x, enter, input, executor.Chunk(20)) {
		require.Equal(t, at, item.Index, "order")
		switch bad[at] {
		case "exit":
			var failed *executor.TaskError
			require.ErrorAs(t, item.Err, &failed, "item %d", at)
			require.NotNil(t, failed.Exit(), "item %d: %v", at, item.Err)
		case "error":
			require.ErrorIs(t, item.Err, errRefused, "item %d", at)
		default:
			require.NoError(t, item.Err, "item %d", at)
			require.Equal(t, fmt.Sprint(at), item.Out, "item %d", at)
		}
		require.Equal(t, 1, item.Attempts, "attempts of item %d", at)
		at++
	}
	require.Equal(t, n, at, "items")
	counts := ledger.Counts(t)
	require.Len(t, counts, n, "executed tasks")
	for id, times := range counts {
		require.Equal(t, 1, times, "executions of %s", id)
	}
	shutdown(t, x)
}

// An error in a worker's object that ends its life is no more than that task's.
func TestFatalError(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			x := newExecutor(t, executor.Options{MaxWorkers: 1, Workers: ofKind(kind)})
			require.ErrorIs(t, failure(t, submit(t, fatal, x, 1)), errRefused, "the error that ends the worker")
			require.Equal(t, 4, value(t, submit(t, square, x, 2)), "the next task")
			shutdown(t, x)
			require.EqualValues(t, 1, x.Stats().Workers.Crashed, "workers that died")
		})
	}
}

var fatal = executor.Define("test.fatal", func(context.Context, int) (int, error) { return 0, supervisor.Fatal(errRefused) })

// What a task has started ends with its worker.
func TestGrandchildrenEndWithTheirWorker(t *testing.T) {
	if !processes(t) {
		return
	}
	x := newExecutor(t, executor.Options{MaxWorkers: 2})
	for range 4 {
		value(t, submit(t, startSleep, x, 0))
	}
	testkit.Within(t, 1e9, func() { require.NoError(t, x.KillWorkers(), "KillWorkers") })
	// that nothing is left is checked for every executor
}

var startSleep = executor.Define("test.startSleep", func(context.Context, int) (int, error) {
	p, err := os.StartProcess("/bin/sleep", []string{"sleep", "1000"}, &os.ProcAttr{Files: []*os.File{nil, nil, nil}})
	if err != nil {
		return 0, err
	}
	return p.Pid, nil
})

// Workers that are killed at any moment, also while they start, cost no more than a task each, and none is executed twice.
func TestKillsAtAnyMoment(t *testing.T) {
	if !processes(t) {
		return
	}
	ledger := testkit.NewLedger(t)
	pids := make(chan int, 1000)
	x := newExecutor(t, executor.Options{
		MaxWorkers: 2, Breaker: executor.Breaker{Max: -1, Backoff: supervisor.Backoff{Min: 1, Max: 1}},
		Events: func(e executor.Event) {
			if e.Kind == executor.EventStarted {
				pids <- e.Pid
			}
		},
	})
	kills, items, failed := 0, 0, 0
	for item := range executor.MapUnordered(t.Context(), x, enter, func(yield func(entry) bool) {
		for i := 0; i < 6000 && yield(entry{Ledger: ledger.Path, ID: fmt.Sprint(i)}); i++ {
		}
	}) {
		items++
		if item.Err != nil {
			failed++
			var task *executor.TaskError
			require.ErrorAs(t, item.Err, &task, "item %d", item.Index)
			require.NotNil(t, task.Exit(), "item %d: %v", item.Index, item.Err)
			require.Equal(t, syscall.SIGKILL, task.Exit().Signal, "item %d", item.Index)
		} else {
			require.Equal(t, item.In.ID, item.Out, "item %d", item.Index)
		}
		if items%200 == 0 {
			select {
			case pid := <-pids:
				kill(pid)
				kills++
			default:
			}
		}
	}
	require.Equal(t, 6000, items, "items")
	require.LessOrEqual(t, failed, kills, "tasks that failed")
	counts := ledger.Counts(t)
	require.GreaterOrEqual(t, len(counts), 6000-failed, "tasks that were executed")
	for id, n := range counts {
		require.Equal(t, 1, n, "executions of %s", id)
	}
	shutdown(t, x)
	t.Logf("%d workers were killed, which cost %d tasks", kills, failed)
}
