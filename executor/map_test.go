package executor_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/executor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// upTo yields 0, 1, … n-1 and counts what was read.
func upTo(n int, read *atomic.Int64) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if read != nil {
				read.Add(1)
			}
			if !yield(i) {
				return
			}
		}
	}
}

func TestMap(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			x := newExecutor(t, executor.Options{MaxWorkers: 2, Workers: ofKind(kind)})
			for _, opts := range [][]executor.MapOption{
				nil, {executor.Chunk(1)}, {executor.Chunk(7)}, {executor.Chunk(5000)}, {executor.Prefetch(1)}, {executor.Prefetch(3), executor.Chunk(10)},
			} {
				const n = 3000
				at := 0
				for item := range executor.Map(t.Context(), x, square, upTo(n, nil), opts...) {
					require.NoError(t, item.Err, "%v: item %d", opts, at)
					require.Equal(t, executor.Item[int, int]{Index: at, In: at, Out: at * at, Attempts: 1}, item, "%v", opts)
					at++
				}
				require.Equal(t, n, at, "%v: items", opts)

				var seen []int
				for item := range executor.MapUnordered(t.Context(), x, square, upTo(n, nil), opts...) {
					require.NoError(t, item.Err, "%v: item %d", opts, item.Index)
					require.Equal(t, item.Index*item.Index, item.Out, "%v", opts)
					seen = append(seen, item.Index)
				}
				slices.Sort(seen)
				require.Equal(t, slices.Collect(upTo(n, nil)), seen, "%v: items", opts)
			}
			for item := range executor.Map(t.Context(), x, moved, slices.Values([]point{{1, 2, "a"}, {}})) {
				require.Equal(t, item.In.X+1, item.Out.X, "a struct")
				require.Equal(t, item.In.Name, item.Out.Name, "a struct")
			}
			for item := range executor.Map(t.Context(), x, square, slices.Values([]int(nil))) {
				t.Fatalf("an item of no input: %v", item)
			}
			shutdown(t, x)
		})
	}
}

type ownSeq func(yield func(int) bool)

func TestFormsOfInput(t *testing.T) {
	x := goroutines(t, executor.Options{})
	var got []string
	note := func(item executor.Item[int, int]) { got = append(got, fmt.Sprint(item.In, item.Out, item.Err)) }
	for item := range executor.Map(t.Context(), x, square, func(yield func(int) bool) { yield(2) }) {
		note(item)
	}
	for item := range executor.Map(t.Context(), x, square, ownSeq(func(yield func(int) bool) { yield(3) })) {
		note(item)
	}
	for item := range executor.Map(t.Context(), x, square, iter.Seq2[int, error](func(yield func(int, error) bool) {
		_ = yield(4, nil) && yield(5, io.EOF) && yield(6, nil)
	})) {
		note(item)
	}
	require.Equal(t, []string{"2 4 <nil>", "3 9 <nil>", "4 16 <nil>", "5 0 EOF", "6 36 <nil>"}, got)
	require.Panics(t, func() { executor.Map(t.Context(), x, square, iter.Seq[int](nil)) }, "Map of nil")
	for _, opt := range []func() executor.MapOption{
		func() executor.MapOption { return executor.Chunk(0) }, func() executor.MapOption { return executor.Chunk(-1) },
		func() executor.MapOption { return executor.Prefetch(0) },
	} {
		require.Panics(t, func() { executor.Map(t.Context(), x, square, upTo(1, nil), opt()) }, "Map with %v", opt())
	}
	shutdown(t, x)
}

// An error of the function is that item's, and the loop goes on.
func TestErrorsOfItems(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			x := newExecutor(t, executor.Options{MaxWorkers: 2, Workers: ofKind(kind)})
			input := []int{1, -1, 2, -1, 3}
			for item := range executor.Map(t.Context(), x, refuse, slices.Values(input), executor.Chunk(4)) {
				if input[item.Index] < 0 {
					var panicked *supervisor.PanicError
					require.ErrorAs(t, item.Err, &panicked, "item %d", item.Index)
				} else {
					require.ErrorIs(t, item.Err, errRefused, "item %d", item.Index)
				}
			}
			shutdown(t, x)
			require.EqualValues(t, len(input), x.Stats().Failed, "tasks that failed")
		})
	}
}

// Of a long input only so much is read as the workers need.
func TestInputIsReadAsNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := goroutines(t, executor.Options{MaxWorkers: 2})
		g := newGate(t, "0")
		var read atomic.Int64
		names := func(yield func(string) bool) {
			for i := range upTo(1_000_000, &read) {
				if !yield(fmt.Sprint(i)) {
					return
				}
			}
		}
		next, stop := iter.Pull(executor.Map(t.Context(), x, pass, names, executor.Prefetch(5)))
		defer stop()
		go func() { <-g.begun; synctest.Wait(); close(g.open) }()
		item, ok := next()
		require.True(t, ok, "first item")
		require.Equal(t, "0", item.Out, "first item")
		synctest.Wait()
		require.LessOrEqual(t, read.Load(), int64(11), "values read after one result of a Prefetch(5)")
		stop()
		shutdown(t, x)
	})
}

func TestLeavingTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := goroutines(t, executor.Options{MaxWorkers: 2})
		g := newGate(t, "1")
		names := func(yield func(string) bool) {
			for i := 0; yield(fmt.Sprint(i)); i++ {
			}
		}
		for item := range executor.MapUnordered(t.Context(), x, pass, names) {
			require.Equal(t, "0", item.Out, "first item")
			<-g.begun
			break
		}
		synctest.Wait()
		stats := x.Stats()
		require.Zero(t, stats.Queued+stats.Running, "tasks after the loop was left: %+v", stats)
		require.Equal(t, 2, stats.Workers.Idle, "idle workers")
		shutdown(t, x)
	})
}

func TestPanicOfTheLoopsBody(t *testing.T) {
	x := goroutines(t, executor.Options{MaxWorkers: 2})
	require.PanicsWithValue(t, "body", func() {
		for range executor.Map(t.Context(), x, square, upTo(1000, nil)) {
			panic("body")
		}
	})
	shutdown(t, x)
}

func TestPanicOfTheInput(t *testing.T) {
	x := goroutines(t, executor.Options{MaxWorkers: 2})
	items := 0
	require.PanicsWithValue(t, "input", func() {
		for range executor.Map(t.Context(), x, square, func(yield func(int) bool) {
			_ = yield(1) && yield(2)
			panic("input")
		}) {
			items++
		}
	})
	require.Equal(t, 2, items, "items before the panic")
	exited := make(chan bool, 1)
	go func() {
		defer func() { exited <- true }()
		for range executor.Map(context.Background(), x, square, func(func(int) bool) { runtime.Goexit() }) {
		}
		t.Error("the loop went on after a Goexit of its input")
	}()
	<-exited
	shutdown(t, x)
}

// An input that blocks keeps nobody from the results before it.
func TestInputThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := goroutines(t, executor.Options{MaxWorkers: 2})
		more := make(chan int)
		ctx, cancel := context.WithCancel(t.Context())
		var got []int
		for item := range executor.Map(ctx, x, square, func(yield func(int) bool) {
			for n := 1; n < 4 && yield(n); n++ {
			}
			for n := range more {
				if !yield(n) {
					return
				}
			}
		}) {
			if got = append(got, item.Out); len(got) == 3 {
				break
			}
		}
		require.Equal(t, []int{1, 4, 9}, got, "results")
		cancel()
		close(more)
		shutdown(t, x)
	})
}

func TestEndOfTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := goroutines(t, executor.Options{MaxWorkers: 1})
		newGate(t, "1")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		names := func(yield func(string) bool) {
			for i := 0; yield(fmt.Sprint(i)); i++ {
			}
		}
		var errs []error
		for item := range executor.Map(ctx, x, pass, names, executor.Prefetch(100)) {
			require.Equal(t, len(errs), item.Index, "order")
			errs = append(errs, item.Err)
		}
		require.NoError(t, errs[0], "the first item")
		require.GreaterOrEqual(t, len(errs), 100, "items")
		for i, err := range errs[1:] {
			require.ErrorIs(t, err, supervisor.ErrTimeout, "item %d", i+1)
		}
		shutdown(t, x)
	})
}

func TestMapOfAClosedExecutor(t *testing.T) {
	x := goroutines(t, executor.Options{})
	shutdown(t, x)
	items := 0
	for item := range executor.Map(t.Context(), x, square, upTo(100, nil)) {
		require.ErrorIs(t, item.Err, supervisor.ErrClosed, "item %d", item.Index)
		items++
	}
	require.Equal(t, 1, items, "values read")
}

// Two million values run in the memory of a few thousand.
func TestMemoryOfALongMap(t *testing.T) {
	n := 2_000_000
	if testkit.Slowdown > 1 {
		n /= 10
	}
	x := goroutines(t, executor.Options{MaxWorkers: 2})
	var stats runtime.MemStats
	most := uint64(0)
	for item := range executor.Map(t.Context(), x, square, upTo(n, nil)) {
		if item.Err != nil || item.Out != item.In*item.In {
			t.Fatalf("item %+v", item)
		}
		if item.Index%(n/20) == 0 {
			runtime.GC()
			runtime.ReadMemStats(&stats)
			most = max(most, stats.HeapAlloc)
			if item.Index == n/20 {
				most = stats.HeapAlloc // it has its working size by now
			}
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&stats)
	require.Less(t, most, uint64(32<<20), "bytes of heap while it ran")
	shutdown(t, x)
}

// Short tasks travel together, and one that turns out to be long holds up none of the others.
func TestLongTaskAmongShortOnes(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			x := newExecutor(t, executor.Options{MaxWorkers: 2, Workers: ofKind(kind)})
			for range executor.Map(t.Context(), x, misbehave, func(yield func(string) bool) { // now it is known to be short
				for i := 0; i < 5000 && yield("x"); i++ {
				}
			}) {
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			long := 0
			for item := range executor.MapUnordered(ctx, x, misbehave, func(yield func(string) bool) {
				for i := range 5000 {
					text := "x"
					if i == 2500 {
						text = "wait"
					}
					if !yield(text) {
						return
					}
				}
			}, executor.Prefetch(6000)) {
				if item.Index == 2500 {
					require.ErrorIs(t, item.Err, supervisor.ErrCanceled, "the long one")
					require.Equal(t, 4999, long, "results before it")
					continue
				}
				require.NoError(t, item.Err, "item %d", item.Index)
				if long++; long == 4999 {
					cancel()
				}
			}
			shutdown(t, x)
		})
	}
}

// Cancelling one task of a chunk costs none of the others.
func TestCancelInAChunk(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			x := newExecutor(t, executor.Options{MaxWorkers: 1, Workers: ofKind(kind)})
			for range executor.Map(t.Context(), x, misbehave, func(yield func(string) bool) {
				for i := 0; i < 5000 && yield("x"); i++ {
				}
			}) {
			}
			block := submit(t, misbehave, x, "wait") // so that the next ones gather
			before := submit(t, misbehave, x, "before")
			waits := submit(t, misbehave, x, "wait")
			after := submit(t, misbehave, x, "after")
			until(t, x, "the first one runs", func(s executor.Stats) bool { return s.Running >= 1 })
			block.Cancel()
			require.ErrorIs(t, failure(t, block), supervisor.ErrCanceled, "the first one")
			require.Equal(t, "before", value(t, before), "the one before")
			waits.Cancel()
			require.ErrorIs(t, failure(t, waits), supervisor.ErrCanceled, "the cancelled one")
			require.Equal(t, "after", value(t, after), "the one behind")
			shutdown(t, x)
			require.Zero(t, x.Stats().Workers.Crashed, "workers that died")
		})
	}
}
