package executor_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/executor"
	"github.com/workerlink/supervisor/future"
	"github.com/workerlink/supervisor/internal/testkit"
)

// callbackHost is a host whose callback panics while two workers are busy.
var callbackHost = testkit.Helper("callback host", func() {
	ctx, ledger := context.Background(), os.Args[1]
	x := must(executor.New(executor.Options{MaxWorkers: 2}))
	must(obey.Submit(ctx, x, order{Ledger: ledger, ID: "busy", Do: "deaf"}))
	f := must(obey.Submit(ctx, x, order{Ledger: ledger, ID: "second", Until: os.Args[2]}))
	f.Then(func(int, error) { panic("callback") })
	select {}
})

// A callback that submits works; one that shuts the executor down too (TestC54); a panic of one ends the host, as on any
// goroutine, and that ends the workers.
func TestE07CallbacksThatSubmitAndPanic(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			x := newExecutor(t, executor.Options{MaxWorkers: 2, Workers: ofKind(kind)})
			sum := make(chan int, 1)
			var descend func(n, total int)
			descend = func(n, total int) {
				f, err := square.Submit(context.Background(), x, n)
				if err != nil {
					t.Errorf("Submit in a callback: %v", err)
					sum <- 0
					return
				}
				f.Then(func(v int, err error) {
					if err != nil || n == 0 {
						sum <- total
						return
					}
					descend(n-1, total+v)
				})
			}
			descend(50, 0)
			require.Equal(t, 50*51*101/6, testkit.Receive(t, sum, "the last callback"), "sum of the squares")
			shutdown(t, x)
		})
	}
	if !processes(t) {
		return
	}
	ledger, open := testkit.NewLedger(t), filepath.Join(t.TempDir(), "open")
	testkit.NoLeaks(t)
	h := startHost(t, callbackHost, ledger.Path, open)
	pids := []int{pidIn(t, ledger, "busy"), pidIn(t, ledger, "second")}
	create(t, open)
	require.False(t, h.lines.Scan(), "output of the host")
	require.ErrorContains(t, h.Wait(), "exit status 2", "end of the host")
	orphansEnd(t)
	allEnded(t, 2*time.Second, pids...)
}

// Every callback of many may shut down the executor and wait for it.
func TestC54ShutdownInCallbacks(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			x := newExecutor(t, executor.Options{MaxWorkers: 2, Workers: ofKind(kind)})
			const n = 10
			ends := make(chan error, n)
			var results []*future.Future[int]
			for i := range n {
				f := submit(t, square, x, i)
				results = append(results, f)
			}
			for _, f := range results {
				f.Then(func(int, error) { ends <- x.Shutdown(context.Background()) })
			}
			for i, f := range results {
				require.Equal(t, i*i, value(t, f), "value of task %d", i)
				require.NoError(t, testkit.Receive(t, ends, "a callback"), "Shutdown")
			}
		})
	}
}

// lateHost shuts its executor down without waiting, and has the results all the same. It ends right after them.
var lateHost = testkit.Helper("late host", func() {
	ctx := context.Background()
	x := must(executor.New(executor.Options{MaxWorkers: 2}))
	var results []*future.Future[int]
	for i := range 200 {
		results = append(results, must(square.Submit(ctx, x, i)))
	}
	pid := must(must(getpid.Submit(ctx, x, 0)).Result(ctx))
	fmt.Println("worker", pid)
	go func() { _ = x.Shutdown(ctx) }()
	for i, f := range results {
		if v := must(f.Result(ctx)); v != i*i {
			panic(v)
		}
	}
	fmt.Println("done")
})

// Nobody has to wait for Shutdown: what was accepted is finished, and the host may end at any moment after that.
func TestE13ShutdownThatNobodyWaitsFor(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			open := filepath.Join(t.TempDir(), "open")
			x := newExecutor(t, executor.Options{MaxWorkers: 1, Workers: ofKind(kind)})
			var results []*future.Future[int]
			for range 10 {
				results = append(results, submit(t, obey, x, order{Until: open}))
			}
			go func() { _ = x.Shutdown(context.Background()) }()
			testkit.Until(t, "Shutdown has begun", func() bool { return x.Resize(1) != nil })
			create(t, open)
			for _, f := range results {
				value(t, f)
			}
		})
	}
	if !processes(t) {
		return
	}
	testkit.NoLeaks(t)
	h := startHost(t, lateHost)
	pids := h.numbers(t, "worker")
	h.line(t, "done")
	require.NoError(t, h.Wait(), "end of the host")
	orphansEnd(t)
	allEnded(t, 2*time.Second, pids...)
}

// Workers that ignore SIGTERM, and some that get one from elsewhere at the same time, end with KillWorkers.
func TestC39KillWorkersThatIgnoreSIGTERM(t *testing.T) {
	if !processes(t) {
		return
	}
	for range often(2, 100) {
		ledger := testkit.NewLedger(t)
		x := bare(t, executor.Options{MaxWorkers: 3})
		var pids []int
		var results []*future.Future[int]
		for i := range 3 {
			results = append(results, submit(t, obey, x, order{Ledger: ledger.Path, ID: fmt.Sprint(i), Do: "deaf"}))
		}
		for i := range 3 {
			pids = append(pids, pidIn(t, ledger, fmt.Sprint(i)))
		}
		var signals sync.WaitGroup
		for _, pid := range pids[:2] {
			signals.Go(func() { terminate(pid) })
		}
		signals.Go(func() { strike(pids[1]) })
		testkit.Within(t, time.Second, func() { require.NoError(t, x.KillWorkers(), "KillWorkers") })
		signals.Wait()
		for i, f := range results {
			err := failure(t, f)
			require.True(t, anyIs(err, supervisor.ErrClosed) || i == 1 && err.Exit() != nil, "task %d: %v", i, err)
		}
		allEnded(t, time.Second, pids...)
	}
}

// An executor that has ended has no process and no goroutine, and there was no helper process while it was there.
func TestC46NothingRunsAfterShutdown(t *testing.T) {
	testkit.NoLeaks(t)
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			before, children := strings.Count(testkit.Stacks(), "supervisor/executor.(*"), testkit.Children()
			x := bare(t, executor.Options{MaxWorkers: 2, MinIdle: 2, Workers: ofKind(kind)})
			for range executor.Map(t.Context(), x, square, upTo(1000, nil)) {
			}
			require.LessOrEqual(t, len(testkit.Children()), len(children)+2, "processes while it is there")
			shutdown(t, x)
			require.Subset(t, children, testkit.Children(), "processes after Shutdown")
			testkit.Until(t, "no goroutine is left", func() bool {
				return strings.Count(testkit.Stacks(), "supervisor/executor.(*") <= before
			})
		})
	}
}

// Nothing complains about a normal life and its end, and nothing is on a list to be cleaned up (see also NoLeaks).
func TestC47NormalEndIsSilent(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			core, logged := observer.New(zap.WarnLevel)
			events := testkit.NewRecorder(ofType)
			x := newExecutor(t, executor.Options{
				MaxWorkers: 2, Workers: ofKind(kind), Events: events.Record, Supervisor: []supervisor.Option{supervisor.WithLogger(zap.New(core))},
			})
			for item := range executor.Map(t.Context(), x, square, upTo(5000, nil)) {
				require.NoError(t, item.Err, "item %d", item.Index)
			}
			submit(t, misbehave, x, "wait").Cancel()
			require.NoError(t, x.Resize(1), "Resize")
			shutdown(t, x)
			require.Empty(t, logged.All(), "warnings")
			for _, e := range events.All() {
				require.NoError(t, e.Err, "event %v", e)
				require.NotEqual(t, executor.EventDropped, e.Kind, "events")
			}
		})
	}
}

// Submit, cancel and Shutdown, again and again: each task has its verdict, and Shutdown returns.
func TestC52SubmitCancelShutdown(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			testkit.NoLeaks(t)
			rounds := often(300, 1000)
			if kind == supervisor.Process {
				rounds = often(10, 1000)
			}
			for round := range rounds {
				x := bare(t, executor.Options{MaxWorkers: 1 + round%2, Workers: ofKind(kind)})
				var results []*future.Future[string]
				for i := range 5 {
					results = append(results, submit(t, misbehave, x, []string{"wait", "x"}[i%2]))
				}
				var cancellers sync.WaitGroup
				for _, f := range results {
					cancellers.Go(f.Cancel)
				}
				shutdown(t, x)
				cancellers.Wait()
				for i, f := range results {
					if _, err := f.Result(testkit.Context(t)); err != nil {
						require.ErrorIs(t, err, supervisor.ErrCanceled, "round %d, task %d", round, i)
					}
				}
			}
		})
	}
}

// Shutdown at any moment of tasks whose arguments or results cannot cross: no deadlock, also where the two sides of the
// end take their locks.
func TestC38ShutdownRacesValuesThatCannotCross(t *testing.T) {
	if !processes(t) {
		return
	}
	testkit.NoLeaks(t)
	for round := range often(12, 1000) {
		x := bare(t, executor.Options{MaxWorkers: 2})
		if round%4 == 0 {
			value(t, submit(t, square, x, 1)) // the workers are there
		}
		var results []*future.Future[result]
		for i := range 12 {
			step := []string{"encode argument", "encode result", "decode result", "none"}[i%4]
			f, err := carry.Submit(context.Background(), x, argument{bomb{step, "error"}})
			require.NoError(t, err, "Submit")
			results = append(results, f)
		}
		limit := context.Background()
		if round%2 == 0 {
			var cancel context.CancelFunc
			limit, cancel = context.WithTimeout(limit, rand.N(2*time.Millisecond))
			defer cancel()
		}
		testkit.Within(t, 2*time.Second, func() {
			if err := x.Shutdown(limit); limit == context.Background() {
				require.NoError(t, err, "Shutdown")
			} else if err != nil {
				require.ErrorIs(t, err, supervisor.ErrTimeout, "Shutdown")
			}
		})
		for i, f := range results {
			if _, err := f.Result(testkit.Context(t)); err == nil {
				require.Equal(t, 3, i%4, "round %d: a value that cannot cross", round)
			} else {
				require.True(t, anyIs(err, supervisor.ErrEncode, supervisor.ErrDecode, supervisor.ErrClosed), "round %d, task %d: %v", round, i, err)
			}
		}
	}
}

// Cycles of making and ending executors under load leave nothing and lose nobody.
func TestC95CyclesUnderLoad(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			testkit.NoLeaks(t)
			rounds := often(100, 10_000)
			if kind == supervisor.Process {
				rounds = often(8, 1000)
			}
			for round := range rounds {
				x := bare(t, executor.Options{MaxWorkers: 2, Queue: 8, IdleTimeout: time.Millisecond, Workers: ofKind(kind)})
				var law testkit.Law
				var submitters sync.WaitGroup
				for s := range 3 {
					submitters.Go(func() {
						for i := range 100 {
							f, err := square.Submit(context.Background(), x, i)
							if err != nil {
								if !anyIs(err, supervisor.ErrClosed) {
									t.Errorf("Submit: %v", err)
								}
								return
							}
							id := fmt.Sprint(s, " ", i)
							law.Accept(id)
							submitters.Go(func() {
								outcome := testkit.Value
								if _, err := f.Result(testkit.Context(t)); err != nil {
									outcome = testkit.Transport
								}
								law.Verdict(id, outcome)
							})
						}
					})
				}
				testkit.Until(t, "some are accepted", func() bool {
					accepted, _ := law.Counts()
					return accepted >= round%50
				})
				if round%2 == 0 {
					if err := x.KillWorkers(); err != nil { // a goroutine that was in the middle of a task
						require.Equal(t, supervisor.Goroutine, kind, "KillWorkers: %v", err)
						require.ErrorAs(t, err, new(*supervisor.StuckError), "KillWorkers")
					}
				} else {
					shutdown(t, x)
				}
				submitters.Wait()
				law.Check(t, nil)
				_, err := square.Submit(context.Background(), x, 1)
				require.ErrorIs(t, err, supervisor.ErrClosed, "Submit after the end")
			}
		})
	}
}

// A context that ends with a hundred tasks in the queue ends them all at once.
func TestC97ContextOfAFullQueueEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := goroutines(t, executor.Options{MaxWorkers: 2})
		ctx, cancel := context.WithCancel(t.Context())
		var futures []future.Any
		for range 100 {
			f, err := misbehave.Submit(ctx, x, "wait")
			require.NoError(t, err, "Submit")
			futures = append(futures, f)
		}
		synctest.Wait()
		begin := time.Now()
		cancel()
		done, pending, err := future.Wait(t.Context(), future.All, futures...)
		require.NoError(t, err, "Wait")
		require.Less(t, time.Since(begin), 100*time.Millisecond, "time of Wait")
		require.Len(t, done, 100, "tasks that have ended")
		require.Empty(t, pending, "tasks that have not")
		for i, f := range done {
			require.ErrorIs(t, f.Err(), supervisor.ErrCanceled, "task %d", i)
		}
		require.Equal(t, 4, value(t, submit(t, square, x, 2)), "the next task")
		shutdown(t, x)
	})
}
