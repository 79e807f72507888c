package executor_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/executor"
	"github.com/workerlink/supervisor/future"
	"github.com/workerlink/supervisor/internal/testkit"
)

// A worker that ends with status 0 in the middle of a task has died all the same. The other cells of the matrix are those
// of TestCrashMatrix.
func TestE01ExitWithStatusZero(t *testing.T) {
	if !processes(t) {
		return
	}
	for _, step := range []string{"decode argument", "run", "encode result"} {
		for _, chunk := range []int{1, 7} {
			t.Run(fmt.Sprintf("%s/in chunks of %d", step, chunk), func(t *testing.T) {
				testkit.NoLeaks(t)
				inMatrix(t, bomb{step, "exit 0"}, chunk, exited(0, 0))
			})
		}
	}
}

// Of a worker that is killed with 20 tasks waiting, the running one fails and the rest goes on.
func TestE02KillWithTwentyWaiting(t *testing.T) {
	if !processes(t) {
		return
	}
	ledger := testkit.NewLedger(t)
	x := newExecutor(t, executor.Options{MaxWorkers: 1})
	running := submit(t, obey, x, order{Ledger: ledger.Path, ID: "running", Do: "deaf"})
	pid := pidIn(t, ledger, "running")
	var waiting []*future.Future[int]
	for i := range 20 {
		waiting = append(waiting, submit(t, obey, x, order{Ledger: ledger.Path, ID: fmt.Sprint(i)}))
	}
	kill(pid)
	testkit.Within(t, 2*time.Second, func() {
		failed := failure(t, running)
		require.NotNil(t, failed.Exit(), "how its worker ended: %v", failed)
		require.Equal(t, pid, failed.Exit().Pid, "its worker")
		for i, f := range waiting {
			require.NotEqual(t, pid, value(t, f), "worker of task %d", i)
		}
	})
	onceEach(t, ledger, 21, 0)
	require.NoError(t, x.Health(t.Context()), "Health")
	shutdown(t, x)
	require.EqualValues(t, 1, x.Stats().Failed, "tasks that failed")
}

// Of a worker that dies when the executor is broken already, the running task still says how.
func TestE02KillInABrokenExecutor(t *testing.T) {
	if !processes(t) {
		return
	}
	ledger := testkit.NewLedger(t)
	x := newExecutor(t, executor.Options{MaxWorkers: 2, Breaker: executor.Breaker{Max: 1, Backoff: quick}})
	running := submit(t, obey, x, order{Ledger: ledger.Path, ID: "running", Do: "deaf"})
	pid := pidIn(t, ledger, "running")
	for range 2 {
		require.NotNil(t, failure(t, submit(t, misbehave, x, "exit test")).Exit(), "how a worker ended")
	}
	testkit.Until(t, "the executor is broken", func() bool { return x.Health(t.Context()) != nil })
	kill(pid)
	failed := failure(t, running)
	require.NotNil(t, failed.Exit(), "how the worker of the running task ended: %v", failed)
	require.Equal(t, pid, failed.Exit().Pid, "its process")
	require.NotErrorIs(t, failed, executor.ErrBroken, "why the running task failed")
	require.EqualValues(t, 3, x.Stats().Workers.Crashed, "workers that died")
	shutdown(t, x)
}

// A worker that is killed while it is idle costs no task, also if the next one is submitted at once.
func TestE14DeathWhileIdle(t *testing.T) {
	if !processes(t) {
		return
	}
	x := newExecutor(t, executor.Options{MaxWorkers: 2, Breaker: executor.Breaker{Backoff: quick}})
	for round := range often(10, 200) {
		pid := value(t, submit(t, getpid, x, 0))
		until(t, x, "it is idle", func(s executor.Stats) bool { return s.Workers.Idle == s.Workers.Now })
		kill(pid)
		next := []*future.Future[int]{submit(t, getpid, x, 1), submit(t, getpid, x, 2)}
		for _, f := range next {
			require.NotEqual(t, pid, value(t, f), "round %d: process of a task after the kill", round)
		}
	}
	shutdown(t, x)
	require.Zero(t, x.Stats().Failed, "tasks that failed")
}

// What was accepted before Shutdown is finished although a worker is killed meanwhile.
func TestC53KillDuringShutdown(t *testing.T) {
	if !processes(t) {
		return
	}
	ledger := testkit.NewLedger(t)
	x := newExecutor(t, executor.Options{MaxWorkers: 1})
	running := submit(t, obey, x, order{Ledger: ledger.Path, ID: "running", Do: "deaf"})
	pid := pidIn(t, ledger, "running")
	var waiting []*future.Future[int]
	for i := range 20 {
		waiting = append(waiting, submit(t, obey, x, order{Ledger: ledger.Path, ID: fmt.Sprint(i)}))
	}
	down := make(chan error, 1)
	go func() { down <- x.Shutdown(context.Background()) }()
	testkit.Until(t, "Shutdown has begun", func() bool { return x.Resize(1) != nil })
	kill(pid)
	testkit.Within(t, 2*time.Second, func() {
		require.NotNil(t, failure(t, running).Exit(), "how the killed worker ended")
		for _, f := range waiting {
			value(t, f)
		}
		require.NoError(t, testkit.Receive(t, down, "Shutdown returns"), "Shutdown")
	})
	onceEach(t, ledger, 21, 0)
}

// While some workers die others do not start: each task has a verdict that says so, and the executor is what it says.
func TestC48StartsThatFailWhileOthersDie(t *testing.T) {
	if !processes(t) {
		return
	}
	for _, limit := range []int{-1, 5} {
		t.Run(fmt.Sprintf("at most %d failures", limit), func(t *testing.T) {
			starts := filepath.Join(t.TempDir(), "starts")
			require.NoError(t, os.WriteFile(starts, nil, 0o600), "count of starts")
			x := newExecutor(t, executor.Options{
				MaxWorkers: 13, Breaker: executor.Breaker{Max: limit, Backoff: quick},
				Workers: []supervisor.ChildOption{supervisor.Proc{Env: []string{brittleStart + "=" + starts}}},
			})
			var results []*future.Future[int]
			for i := range 2 * often(13, 130) {
				do := ""
				if i%2 == 0 || limit > 0 {
					do = "exit"
				}
				if f, err := obey.Submit(t.Context(), x, order{ID: fmt.Sprint(i), Do: do}); err == nil {
					results = append(results, f)
				} else {
					require.ErrorIs(t, err, executor.ErrBroken, "Submit")
				}
			}
			for i, f := range results {
				_, err := f.Result(testkit.Context(t))
				if limit < 0 && i%2 == 1 {
					require.NoError(t, err, "task %d", i)
					continue
				}
				var failed *executor.TaskError
				require.ErrorAs(t, err, &failed, "task %d", i)
				require.True(t, failed.Exit() != nil || anyIs(err, executor.ErrBroken), "task %d: %v", i, err)
			}
			if limit > 0 {
				testkit.Until(t, "the executor is broken", func() bool { return x.Health(t.Context()) != nil })
			}
			shutdown(t, x)
		})
	}
}

// brittleStart names a file in which starts are counted: of three workers that have it in their environment one does not
// get as far as its handshake.
const brittleStart = "EXECUTOR_TEST_BRITTLE_START"

// hungStart is in the environment of workers that do not start at all, and do not end either.
const hungStart = "EXECUTOR_TEST_HUNG_START"

func init() {
	if os.Getenv(hungStart) != "" {
		<-time.After(time.Hour)
	}
	file := os.Getenv(brittleStart)
	if file == "" {
		return
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return
	}
	_, _ = f.WriteString("x")
	if at, err := f.Seek(0, 1); err == nil && at%3 == 2 {
		os.Exit(4)
	}
	_ = f.Close()
}

// The executor can be looked at in every way while it is resized and its workers are killed.
func TestC42LooksDuringResizeAndKills(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			events := testkit.NewRecorder(ofType)
			x := newExecutor(t, executor.Options{
				MaxWorkers: 2, Workers: ofKind(kind), Events: events.Record, Breaker: executor.Breaker{Max: -1, Backoff: quick},
			})
			stop := make(chan struct{})
			var lookers sync.WaitGroup
			for range 2 {
				lookers.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						s := x.Stats()
						if s.Workers.Idle > s.Workers.Now || s.Queued < 0 || s.Running < 0 {
							t.Errorf("what cannot be: %+v", s)
							return
						}
						_, _ = x.Snapshot(), x.Health(t.Context())
					}
				})
			}
			items, killed := 0, 0
			for item := range executor.MapUnordered(t.Context(), x, square, upTo(often(6_000, 2_000_000), nil), executor.Prefetch(100)) {
				if items++; item.Err != nil {
					require.Equal(t, supervisor.Process, kind, "item %d: %v", item.Index, item.Err)
					killed++
				}
				if items%600 == 0 {
					require.NoError(t, x.Resize(1+items/600%4), "Resize")
					if pids := pidsOf(events); kind == supervisor.Process && len(pids) > 0 {
						strike(pids[len(pids)-1])
					}
				}
			}
			close(stop)
			lookers.Wait()
			require.LessOrEqual(t, killed, items/600, "tasks that failed")
			shutdown(t, x)
		})
	}
}
