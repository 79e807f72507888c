package executor_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/executor"
	"github.com/workerlink/supervisor/future"
	"github.com/workerlink/supervisor/internal/testkit"
)

// Tasks that panic cost no worker and keep nobody waiting who waits for room.
func TestC94PoolOfOneWhoseTasksPanic(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			x := newExecutor(t, executor.Options{MaxWorkers: 1, Queue: 1, Workers: ofKind(kind)})
			pid := value(t, submit(t, getpid, x, 0)) // the worker is there
			testkit.Within(t, 300*time.Millisecond, func() {
				var submitters sync.WaitGroup
				for range 5 {
					submitters.Go(func() {
						f, err := refuse.Submit(t.Context(), x, -1)
						if err != nil {
							t.Errorf("Submit: %v", err)
							return
						}
						_, err = f.Result(testkit.Context(t))
						if panicked, ok := errors.AsType[*supervisor.PanicError](err); !ok || panicked.Value != "negative" {
							t.Errorf("verdict: %v", err)
						}
					})
				}
				submitters.Wait()
			})
			require.Equal(t, pid, value(t, submit(t, getpid, x, 0)), "the worker after the panics")
			shutdown(t, x)
			require.Zero(t, x.Stats().Workers.Crashed, "workers that died")
		})
	}
}

// astray is a task whose own goroutine panics.
var astray = executor.Define("test.astray", func(context.Context, int) (int, error) {
	go func() { panic("astray") }()
	select {}
})

// The rule of panics as package doc has it: on the goroutine of the task it is the task's error; with OnPanic it ends the
// worker too; on another goroutine it ends the worker's process.
func TestC96RuleOfPanics(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			x := newExecutor(t, executor.Options{MaxWorkers: 1, Workers: ofKind(kind)})
			var panicked *supervisor.PanicError
			require.ErrorAs(t, failure(t, submit(t, refuse, x, -1)), &panicked, "a panic")
			require.Equal(t, "negative", panicked.Value, "its value")
			require.Contains(t, panicked.Stack, "fixtures_test.go", "its stack")
			shutdown(t, x)
			require.Zero(t, x.Stats().Workers.Crashed, "workers that died")

			y := newExecutor(t, executor.Options{MaxWorkers: 1, Workers: ofKind(kind, supervisor.Restart{OnPanic: supervisor.EndLife}), Breaker: executor.Breaker{Backoff: quick}})
			require.ErrorAs(t, failure(t, submit(t, refuse, y, -1)), &panicked, "a panic that ends the worker")
			require.Equal(t, 4, value(t, submit(t, square, y, 2)), "the next task")
			shutdown(t, y)
			require.EqualValues(t, 1, y.Stats().Workers.Crashed, "workers that died")
		})
	}
	if !processes(t) {
		return
	}
	x := newExecutor(t, executor.Options{MaxWorkers: 1, Breaker: executor.Breaker{Backoff: quick}})
	failed := failure(t, submit(t, astray, x, 1))
	require.NotNil(t, failed.Exit(), "how the worker ended: %v", failed)
	require.Contains(t, failed.Exit().Error()+failed.Exit().Tail+failed.Exit().Trace, "astray", "why")
	require.Equal(t, 4, value(t, submit(t, square, x, 2)), "the next task")
	shutdown(t, x)
}

// endsAll is a task that ends its own executor, in the way that its value says.
var endsAll = executor.Define("test.endsAll", func(ctx context.Context, way string) (string, error) {
	x := current.Load()
	if way == "kill" {
		go func() { _ = x.KillWorkers() }()
		<-ctx.Done()
		return way, nil
	}
	return way, x.Shutdown(ctx)
})

// A task may end its own executor: what was accepted before gets verdicts, what comes after is refused.
func TestC98EndFromInsideATask(t *testing.T) {
	for _, way := range []string{"shutdown", "kill"} {
		t.Run(way, func(t *testing.T) {
			testkit.NoLeaks(t)
			for range often(20, 1000) {
				x := goroutines(t, executor.Options{MaxWorkers: 2})
				current.Store(x)
				var results []*future.Future[int]
				before := func() {
					for i := range 20 {
						if f, err := square.Submit(t.Context(), x, i); err == nil {
							results = append(results, f)
						}
					}
				}
				before()
				f := submit(t, endsAll, x, way)
				before()
				for _, f := range results {
					if _, err := f.Result(testkit.Context(t)); err != nil {
						require.Equal(t, "kill", way, "a task before the end: %v", err)
						require.ErrorIs(t, err, supervisor.ErrClosed, "a task before the end")
					}
				}
				if way == "shutdown" {
					require.Equal(t, way, value(t, f), "the task that ends it")
				}
				shutdown(t, x)
				_, err := square.Submit(t.Context(), x, 1)
				require.ErrorIs(t, err, supervisor.ErrClosed, "Submit after that")
			}
		})
	}
}

// Nothing to do is done at once.
func TestC99NoTasks(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			x := newExecutor(t, executor.Options{Workers: ofKind(kind)})
			for _, opts := range [][]executor.MapOption{nil, {executor.Chunk(10)}, {executor.Prefetch(1)}} {
				for item := range executor.Map(t.Context(), x, square, slices.Values([]int{}), opts...) {
					t.Fatalf("an item of nothing: %+v", item)
				}
				for item := range executor.MapUnordered(t.Context(), x, square, slices.Values([]int(nil)), opts...) {
					t.Fatalf("an item of nothing: %+v", item)
				}
			}
			for _, mode := range []future.WaitMode{future.All, future.First, future.FirstError} {
				done, pending, err := future.Wait(t.Context(), mode)
				require.NoError(t, err, "Wait(%v) for nothing", mode)
				require.Empty(t, append(done, pending...), "Wait(%v) for nothing", mode)
			}
			require.Zero(t, x.Stats().Workers.Now, "workers without a task")
			shutdown(t, x)
		})
	}
}

// Small executors on any number of processors miss none of very many very short tasks.
func TestC100SmallExecutors(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	for _, cpus := range []int{1, 2, 8} {
		for size := 1; size <= 3; size++ {
			t.Run(fmt.Sprintf("%d workers on %d processors", size, cpus), func(t *testing.T) {
				runtime.GOMAXPROCS(cpus)
				x := goroutines(t, executor.Options{MaxWorkers: size, Queue: size})
				n := often(3_000, 1_000_000)
				var sum atomic.Int64
				var submitters sync.WaitGroup
				for s := range 3 {
					submitters.Go(func() {
						for i := s; i < n; i += 3 {
							f, err := square.Submit(context.Background(), x, i)
							if err != nil {
								t.Errorf("Submit: %v", err)
								return
							}
							if i%10 == 0 {
								v, _ := f.Result(testkit.Context(t))
								sum.Add(int64(v - i*i))
							}
						}
					})
				}
				submitters.Wait()
				for item := range executor.Map(t.Context(), x, square, upTo(n, nil)) {
					if item.Err != nil || item.Out != item.In*item.In {
						t.Fatalf("item %+v", item)
					}
				}
				shutdown(t, x)
				require.Zero(t, sum.Load(), "wrong values")
				require.EqualValues(t, 2*n, x.Stats().Done, "tasks with a value")
			})
		}
	}
}

// Very many Submits meet a full queue whose workers stand still for a while; all of them get through.
func TestC51SubmitsWhileWorkersStandStill(t *testing.T) {
	x := newExecutor(t, executor.Options{MaxWorkers: 2, Queue: 1000, Workers: ofKind(supervisor.Goroutine)})
	gates, held := gated(t, x, 2)
	for _, g := range gates {
		<-g.begun
	}
	n := often(96_000, 1_000_000) / 16
	var submitters sync.WaitGroup
	for range 16 {
		submitters.Go(func() {
			for i := range n {
				if _, err := square.Submit(context.Background(), x, i); err != nil {
					t.Errorf("Submit: %v", err)
					return
				}
			}
		})
	}
	until(t, x, "the queue is full", func(s executor.Stats) bool { return s.Queued == 1000 })
	for i, g := range gates {
		close(g.open)
		value(t, held[i])
	}
	submitters.Wait()
	shutdown(t, x)
	require.EqualValues(t, 16*n+2, x.Stats().Done, "tasks with a value")
}
