package executor_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/executor"
	"github.com/workerlink/supervisor/future"
	"github.com/workerlink/supervisor/internal/testkit"
)

// These are what was measured of loky, each of which left somebody waiting there: SEEDS.md has them in a table.

// bulky is a result so large that the way back takes a while. Its worker is killed so long after that way began.
type bulky struct {
	Size  int
	After time.Duration
}

var haul = executor.Define("test.haul", func(_ context.Context, b bulky) ([]byte, error) {
	time.AfterFunc(b.After, func() { kill(os.Getpid()) })
	return make([]byte, b.Size), nil
})

func TestDefectKillInALargeResult(t *testing.T) {
	if !processes(t) {
		return
	}
	const size = 16 << 20
	x := newExecutor(t, executor.Options{MaxWorkers: 1, Breaker: executor.Breaker{Max: -1, Backoff: quick}})
	begin := time.Now()
	require.Len(t, value(t, submit(t, haul, x, bulky{size, time.Hour})), size, "a result on whose way nobody dies")
	whole := time.Since(begin)
	killed := 0
	const steps = 8
	for step := range steps {
		f := submit(t, haul, x, bulky{size, whole * time.Duration(step) / steps})
		testkit.Closed(t, f.Done(), fmt.Sprintf("end of the task at step %d", step))
		got, err := f.Result(t.Context())
		if err != nil {
			exited(-1, syscall.SIGKILL)(t, err)
			killed++
		} else {
			require.Len(t, got, size, "step %d: result", step)
		}
		require.Equal(t, 4, value(t, submit(t, square, x, 2)), "step %d: the next task", step)
	}
	require.Positive(t, killed, "workers that died before their result was there")
	shutdown(t, x)
}

// A task that was cancelled in the queue is in nobody's way when a worker dies or all are killed.
func TestDefectCancelledTaskInTheQueue(t *testing.T) {
	if !processes(t) {
		return
	}
	for _, killsAll := range []bool{true, false} {
		t.Run(fmt.Sprintf("all are killed %v", killsAll), func(t *testing.T) {
			x, pids := started(t, 1, executor.Options{})
			running := held(t, x)
			before, cancelled, behind := submit(t, square, x, 1), submit(t, square, x, 2), submit(t, square, x, 3)
			cancelled.Cancel()
			if killsAll {
				require.NoError(t, x.KillWorkers(), "KillWorkers")
				for _, f := range []future.Any{running, before, behind} {
					testkit.Closed(t, f.Done(), "end of a task")
					require.ErrorIs(t, f.Err(), supervisor.ErrClosed, "a task")
				}
			} else {
				kill(pids[0])
				exited(-1, syscall.SIGKILL)(t, failure(t, running))
				require.Equal(t, 1, value(t, before), "the task before it")
				require.Equal(t, 9, value(t, behind), "the task behind it")
				require.NoError(t, x.Health(t.Context()), "Health")
			}
			require.ErrorIs(t, failure(t, cancelled), supervisor.ErrCanceled, "the cancelled task")
		})
	}
}

// Neither Resize nor Submit waits for a task that never returns.
func TestDefectResizeWithAHungTask(t *testing.T) {
	if !processes(t) {
		return
	}
	x := newExecutor(t, executor.Options{MaxWorkers: 2})
	tasks := []*future.Future[string]{submit(t, misbehave, x, "hang"), submit(t, misbehave, x, "hang")}
	until(t, x, "both run", func(s executor.Stats) bool { return s.Running == 2 })
	testkit.Within(t, time.Second, func() {
		require.NoError(t, x.Resize(1), "Resize")
		tasks = append(tasks, submit(t, misbehave, x, "queued"))
		require.NoError(t, x.Resize(3), "Resize")
	})
	require.Equal(t, "queued", value(t, tasks[2]), "a task for the new worker")
	testkit.Within(t, time.Second, func() { require.NoError(t, x.KillWorkers(), "KillWorkers") })
	for _, f := range tasks[:2] {
		require.ErrorIs(t, failure(t, f), supervisor.ErrClosed, "a hung task")
	}
}

// Callbacks submit while somebody else resizes all along.
func TestDefectCallbackThatSubmitsDuringResizes(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			testkit.NoLeaks(t)
			o := executor.Options{Name: uniqueName("resizes"), MaxWorkers: 2, Workers: ofKind(kind)}
			x := lease(t, o).Executor
			ends := make(chan error, 4)
			over := make(chan struct{})
			var resizer sync.WaitGroup
			resizer.Go(func() {
				for size := 1; ; size = size%3 + 1 {
					select {
					case <-over:
						return
					default:
					}
					o := o
					o.MaxWorkers = size
					l, err := executor.Reusable(context.Background(), o)
					if err != nil {
						t.Errorf("Reusable: %v", err)
						return
					}
					l.Release()
				}
			})
			for range 4 {
				chain(x, 100, ends)
			}
			for range 4 {
				require.NoError(t, testkit.Receive(t, ends, "end of a chain of callbacks"), "a chain")
			}
			close(over)
			resizer.Wait()
		})
	}
}

// Sizes change hundreds of times while workers leave because they are idle.
func TestDefectResizesAndIdleTimeouts(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			x := newExecutor(t, executor.Options{MaxWorkers: 1, IdleTimeout: time.Millisecond, Workers: ofKind(kind)})
			sizes := []int{1, 2, 4, 6}
			for i := range 300 {
				require.NoError(t, x.Resize(sizes[i*7%4]), "Resize")
				if i%10 == 9 || kind == supervisor.Goroutine {
					require.Equal(t, i*i, value(t, submit(t, square, x, i)), "a task after resize %d", i)
				}
			}
			until(t, x, "no worker is left", func(s executor.Stats) bool { return s.Workers.Now == 0 })
			shutdown(t, x)
			require.Zero(t, x.Stats().Workers.Crashed, "workers that died")
		})
	}
}
