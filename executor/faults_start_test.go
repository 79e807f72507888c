package executor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/executor"
	"github.com/workerlink/supervisor/future"
	"github.com/workerlink/supervisor/internal/testkit"
)

var (
	makings  atomic.Int64
	failing  = supervisor.Define("test.failing", func(context.Context) (*model, error) { makings.Add(1); return nil, errRefused })
	viaFails = executor.Method("test.viaFails", failing, (*model).greet)
)

// A factory that fails or hangs, and a worker that does not get as far as its factory, cost each waiting task an error in
// time, and are not tried for ever.
func TestE08InitializerFailsOrHangs(t *testing.T) {
	const most = 3 // failures
	wait := func(t *testing.T, x *executor.Executor, f *executor.Func[string, string], bound time.Duration) {
		testkit.Within(t, bound, func() {
			var results []*future.Future[string]
			for range 20 {
				if r, err := f.Submit(t.Context(), x, "you"); err == nil {
					results = append(results, r)
				} else {
					require.ErrorIs(t, err, executor.ErrBroken, "Submit")
				}
			}
			for i, r := range results {
				failed := failure(t, r)
				require.True(t, failed.Unexecuted, "task %d was not executed: %v", i, failed)
				_, load := errors.AsType[*executor.LoadError](failed)
				require.True(t, load || anyIs(failed, executor.ErrBroken), "task %d: %v", i, failed)
			}
		})
		testkit.Until(t, "the executor is broken", func() bool { return x.Health(t.Context()) != nil })
		until(t, x, "no worker is left", func(s executor.Stats) bool { return s.Workers.Now == 0 })
		shutdown(t, x)
	}
	for _, kind := range kinds() {
		t.Run("fails/"+kind.String(), func(t *testing.T) {
			makings.Store(0)
			x := newExecutor(t, executor.Options{MaxWorkers: 1, Workers: ofKind(kind), Breaker: executor.Breaker{Max: most, Backoff: quick}})
			wait(t, x, viaFails, 2*time.Second)
			require.ErrorIs(t, x.Health(t.Context()), errRefused, "cause")
			require.LessOrEqual(t, makings.Load(), int64(most+1), "tries in this process")
		})
	}
	if !processes(t) {
		return
	}
	t.Run("hangs", func(t *testing.T) {
		events := testkit.NewRecorder(ofType)
		x := newExecutor(t, executor.Options{
			MaxWorkers: 1, Breaker: executor.Breaker{Max: most, Backoff: quick}, Events: events.Record,
			Workers: []supervisor.ChildOption{supervisor.WithStartTimeout(startLimit / 2), supervisor.Stop{TermGrace: 10 * time.Millisecond}},
		})
		wait(t, x, stuck, (most+2)*startLimit)
		require.LessOrEqual(t, len(pidsOf(events)), most+1, "workers")
	})
	t.Run("hangs before its factory", func(t *testing.T) {
		x := newExecutor(t, executor.Options{
			MaxWorkers: 1, Breaker: executor.Breaker{Max: 1, Backoff: quick},
			Workers: []supervisor.ChildOption{
				supervisor.WithStartTimeout(startLimit / 2), supervisor.Stop{TermGrace: 10 * time.Millisecond}, supervisor.Proc{Env: []string{hungStart + "=1"}},
			},
		})
		wait(t, x, greet, 4*startLimit)
		require.ErrorIs(t, x.Health(t.Context()), supervisor.ErrTimeout, "cause")
	})
}

// An input that fails ends after the good items; one that blocks, or panics, keeps no worker.
func TestE10InputFailsOrBlocks(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			x := newExecutor(t, executor.Options{MaxWorkers: 2, Workers: ofKind(kind)})
			free := func() {
				t.Helper()
				require.Equal(t, 4, value(t, submit(t, square, x, 2)), "a task beside the loop")
			}
			var got []int
			for item := range executor.Map(t.Context(), x, square, func(yield func(int, error) bool) {
				for n := range 5 {
					if !yield(n, nil) {
						return
					}
				}
				yield(0, io.ErrUnexpectedEOF)
			}) {
				if item.Err != nil {
					require.Equal(t, io.ErrUnexpectedEOF, item.Err, "error of the input")
					require.Equal(t, 5, item.Index, "its place")
					free()
					continue
				}
				got = append(got, item.Out)
			}
			require.Equal(t, []int{0, 1, 4, 9, 16}, got, "items before the error")

			release := make(chan struct{})
			n := 0
			for item := range executor.Map(t.Context(), x, square, func(yield func(int) bool) {
				_ = yield(1) && yield(2)
				<-release
				yield(3)
			}) {
				require.NoError(t, item.Err, "item %d", item.Index)
				if n++; n == 2 {
					free()
					require.Zero(t, x.Stats().Running+x.Stats().Queued, "tasks while the input blocks")
					close(release)
				}
			}
			require.Equal(t, 3, n, "items of an input that blocked")
			require.PanicsWithValue(t, "input", func() {
				for range executor.Map(t.Context(), x, square, func(yield func(int) bool) { yield(1); panic("input") }) {
				}
			})
			free()
			shutdown(t, x)
		})
	}
}

// Code of the user that ends the goroutine on which it runs, wherever that is, costs its own task; Shutdown is bounded
// all the same.
func TestC49EndOfGoroutinesByUserCode(t *testing.T) {
	if !processes(t) {
		return
	}
	for _, step := range []string{"encode argument", "decode argument", "run", "encode result", "decode result"} {
		for _, chunk := range []int{1, 7} {
			t.Run(fmt.Sprintf("%s/in chunks of %d", step, chunk), func(t *testing.T) {
				testkit.NoLeaks(t)
				x := bare(t, executor.Options{MaxWorkers: 2, Breaker: executor.Breaker{Backoff: quick}})
				items := 0
				for item := range executor.Map(testkit.Context(t), x, carry, bombs(bomb{step, "goexit"}), executor.Chunk(chunk)) {
					items++
					if item.Index == 3 {
						require.Error(t, item.Err, "the item whose goroutine was ended")
					} else {
						require.NoError(t, item.Err, "item %d", item.Index)
					}
				}
				require.Equal(t, 7, items, "items")
				require.Equal(t, 4, value(t, submit(t, square, x, 2)), "the next task")
				testkit.Within(t, 2*time.Second, func() { shutdown(t, x) })
			})
		}
	}
}

// A listener whose goroutine ends, as that of a test that fails, hears of what comes after.
func TestC49EndOfTheListenersGoroutine(t *testing.T) {
	heard := make(chan executor.EventKind, 100)
	x := newExecutor(t, executor.Options{MaxWorkers: 1, Workers: ofKind(supervisor.Goroutine), Events: func(e executor.Event) {
		heard <- e.Kind
		runtime.Goexit()
	}})
	require.Equal(t, 4, value(t, submit(t, square, x, 2)), "a task")
	require.NoError(t, x.Resize(2), "Resize")
	shutdown(t, x)
	close(heard)
	var kinds []executor.EventKind
	for k := range heard {
		kinds = append(kinds, k)
	}
	require.Contains(t, kinds, executor.EventStarted, "events")
	require.Contains(t, kinds, executor.EventResized, "events")
	require.Equal(t, executor.EventShutdown, kinds[len(kinds)-1], "the last event")
}
