package executor_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/executor"
	"github.com/workerlink/supervisor/future"
	"github.com/workerlink/supervisor/internal/testkit"
)

// Many ask for differing sizes and settings at once. Each gets an executor that works until it is released, whatever
// takes its name meanwhile, and of those that were replaced nothing is left.
func TestE12ManyAskForDifferingExecutors(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			testkit.NoLeaks(t)
			name := uniqueName("differing")
			rounds := often(20, 1000)
			if kind == supervisor.Process {
				rounds = often(2, 100)
			}
			var askers sync.WaitGroup
			for a := range 16 {
				askers.Go(func() {
					for i := range rounds {
						o := executor.Options{Name: name, MaxWorkers: 1 + (a+i)%3, IdleTimeout: time.Duration(1+a%2) * time.Second, Workers: ofKind(kind)}
						l, err := executor.Reusable(context.Background(), o)
						if err != nil {
							t.Errorf("Reusable: %v", err)
							return
						}
						for n := range 5 {
							f, err := square.Submit(context.Background(), l.Executor, n)
							if err == nil {
								_, err = f.Result(testkit.Context(t))
							}
							if err != nil {
								t.Errorf("task %d of %d: %v", i, a, err)
							}
						}
						l.Release()
					}
				})
			}
			askers.Wait()
			last := lease(t, executor.Options{Name: name, Workers: ofKind(kind), Reuse: executor.ReuseAlways})
			require.NoError(t, last.KillWorkers(), "KillWorkers of the last one")
		})
	}
}

// An executor is replaced by one with other settings while it has work, again and again: everything is done.
func TestC35ReplacedWhileItShutsDown(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			testkit.NoLeaks(t)
			name := uniqueName("replaced")
			rounds := often(200, 2000)
			if kind == supervisor.Process {
				rounds = often(8, 200)
			}
			testkit.Within(t, 10*time.Second*time.Duration(1+rounds/200), func() {
				var results []*future.Future[int]
				for round := range rounds {
					o := executor.Options{Name: name, MaxWorkers: 2 + round%2, IdleTimeout: time.Duration(round+1) * time.Second, Workers: ofKind(kind)}
					l, err := executor.Reusable(context.Background(), o)
					require.NoError(t, err, "Reusable")
					require.False(t, l.Reused(), "round %d: reused", round)
					for i := range 20 {
						results = append(results, submit(t, square, l.Executor, i))
					}
					l.Release()
				}
				for i, f := range results {
					require.Equal(t, (i%20)*(i%20), value(t, f), "task %d", i)
				}
			})
			last := lease(t, executor.Options{Name: name, Workers: ofKind(kind), Reuse: executor.ReuseAlways})
			require.NoError(t, last.KillWorkers(), "KillWorkers of the last one")
		})
	}
}

var length = executor.Define("test.length", func(_ context.Context, b []byte) (int, error) { return len(b), nil })

// Arguments that fill every pipe and buffer hold up neither each other nor the small ones behind them.
func TestC36VeryLargeArguments(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			x := newExecutor(t, executor.Options{MaxWorkers: 2, Workers: ofKind(kind)})
			b := make([]byte, often(16, 64)<<20)
			for range 4 {
				large := []*future.Future[int]{submit(t, length, x, b), submit(t, length, x, b)}
				small := submit(t, length, x, b[:1])
				for _, f := range large {
					require.Equal(t, len(b), value(t, f), "length")
				}
				require.Equal(t, 1, value(t, small), "length of a small one")
			}
			items := 0
			for item := range executor.Map(t.Context(), x, length, func(yield func([]byte) bool) {
				for range 4 {
					if !yield(b) {
						return
					}
				}
			}, executor.Chunk(2)) { // two of them are one frame
				require.NoError(t, item.Err, "item %d", item.Index)
				require.Equal(t, len(b), item.Out, "item %d", item.Index)
				items++
			}
			require.Equal(t, 4, items, "items")
			shutdown(t, x)
		})
	}
}

// What is too large for a frame is that task's error alone, also in a chunk with others.
func TestC36TooLargeArguments(t *testing.T) {
	if !processes(t) {
		return
	}
	x := newExecutor(t, executor.Options{MaxWorkers: 1, Workers: []supervisor.ChildOption{supervisor.Limits{Frame: 1 << 20}}})
	sizes := []int{10, 2 << 20, 600 << 10, 600 << 10, 20}
	for _, chunk := range []int{1, 5} {
		items := 0
		for item := range executor.Map(t.Context(), x, length, func(yield func([]byte) bool) {
			for _, n := range sizes {
				if !yield(make([]byte, n)) {
					return
				}
			}
		}, executor.Chunk(chunk)) {
			items++
			what := fmt.Sprintf("item of %d bytes in chunks of %d", sizes[item.Index], chunk)
			if sizes[item.Index] > 1<<20 {
				require.ErrorIs(t, item.Err, supervisor.ErrTooLarge, what)
				continue
			}
			require.NoError(t, item.Err, what)
			require.Equal(t, sizes[item.Index], item.Out, what)
		}
		require.Equal(t, len(sizes), items, "items")
	}
	shutdown(t, x)
	require.Zero(t, x.Stats().Workers.Crashed, "workers that died")
}

// Many ask in every mode, and some of them end what they get: nobody waits, whoever is refused hears that his executor
// has been ended, and nothing is left.
func TestReusableStorm(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			testkit.NoLeaks(t)
			name := uniqueName("storm")
			rounds := often(60, 5000)
			if kind == supervisor.Process {
				rounds = often(6, 500)
			}
			var askers sync.WaitGroup
			for a := range 8 {
				askers.Go(func() {
					for i := range rounds {
						way := (a*7 + i) % 24
						o := executor.Options{
							Name: name, MaxWorkers: 2 + i%2, MinIdle: way % 2, Queue: 4, Workers: ofKind(kind), Reuse: []executor.ReuseMode{0, 0, 1, 2}[way%4],
						}
						l, err := executor.Reusable(context.Background(), o)
						if err != nil {
							t.Errorf("Reusable: %v", err)
							return
						}
						var results []*future.Future[int]
						for n := range 6 {
							if f, err := square.Submit(context.Background(), l.Executor, n); err == nil {
								results = append(results, f)
							} else if !anyIs(err, supervisor.ErrClosed) {
								t.Errorf("Submit: %v", err)
							}
						}
						switch way {
						case 5:
							_ = l.KillWorkers() // goroutines may be in the middle of a task
						case 11:
							_ = l.Shutdown(context.Background())
						}
						l.Release()
						for _, f := range results {
							if _, err := f.Result(testkit.Context(t)); err != nil && !anyIs(err, supervisor.ErrClosed) {
								t.Errorf("Result: %v", err)
							}
						}
					}
				})
			}
			askers.Wait()
			last := lease(t, executor.Options{Name: name, Workers: ofKind(kind), Reuse: executor.ReuseAlways})
			_ = last.KillWorkers()
		})
	}
}
