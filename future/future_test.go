package future_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/workerlink/supervisor/future"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFirstVerdictWins(t *testing.T) {
	resolve := func(r future.Resolver[int]) bool { return r.Resolve(1) }
	reject := func(r future.Resolver[int]) bool { return r.Reject(io.EOF) }
	for _, tt := range []struct {
		name          string
		first, second func(future.Resolver[int]) bool
		value         int
		err           error
	}{
		{"value then error", resolve, reject, 1, nil},
		{"error then value", reject, resolve, 0, io.EOF},
		{"value twice", resolve, func(r future.Resolver[int]) bool { return r.Resolve(2) }, 1, nil},
		{"error twice", reject, func(r future.Resolver[int]) bool { return r.Reject(io.ErrClosedPipe) }, 0, io.EOF},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, r := future.New[int]()
			require.True(t, tt.first(r), "the first verdict")
			require.False(t, tt.second(r), "the second verdict")
			value, err := f.Result(t.Context())
			require.Equal(t, tt.value, value, "value of Result")
			require.Equal(t, tt.err, err, "error of Result")
			require.Equal(t, tt.err, f.Err(), "Err")
			<-f.Done()
		})
	}
}

func TestPending(t *testing.T) {
	f, r := future.New[string]()
	require.NoError(t, f.Err(), "Err while pending")
	select {
	case <-f.Done():
		t.Fatal("Done is closed while pending")
	default:
	}
	require.Panics(t, func() { r.Reject(nil) }, "Reject(nil)")
	require.True(t, r.Resolve("x"), "the future is still pending after the panic")
}

func TestDoneIsOneChannel(t *testing.T) {
	f, r := future.New[int]()
	before := f.Done()
	r.Resolve(1)
	require.Equal(t, before, f.Done(), "Done before and after the end")
	<-before
}

func TestOneVerdictOfMany(t *testing.T) {
	f, r := future.New[int]()
	var wins, winner atomic.Int64
	var callers sync.WaitGroup
	for i := range 32 {
		callers.Go(func() {
			if r.Resolve(i) {
				wins.Add(1)
				winner.Store(int64(i))
			}
		})
		callers.Go(func() { _, _ = f.Result(context.Background()) })
	}
	callers.Wait()
	value, err := f.Result(t.Context())
	require.NoError(t, err, "Result")
	require.EqualValues(t, 1, wins.Load(), "verdicts that won")
	require.EqualValues(t, winner.Load(), value, "value of the verdict that won")
}

func TestResultWhenTheContextEnds(t *testing.T) {
	t.Run("deadline", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f, r := future.New[int]()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			start := time.Now()
			_, err := f.Result(ctx)
			require.Equal(t, future.ErrTimeout, err, "Result at the deadline")
			require.Equal(t, time.Second, time.Since(start), "time that Result waited")

			r.Resolve(7)
			value, err := f.Result(ctx)
			require.NoError(t, err, "Result of an ended future with an ended context")
			require.Equal(t, 7, value, "its value")
		})
	})
	t.Run("cancel while waiting", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f, _ := future.New[int]()
			ctx, cancel := context.WithCancel(t.Context())
			got := make(chan error, 1)
			go func() {
				_, err := f.Result(ctx)
				got <- err
			}()
			synctest.Wait()
			cancel()
			require.Equal(t, future.ErrCanceled, <-got, "Result after the cancel")
		})
	})
	t.Run("resolved while waiting", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f, r := future.New[int]()
			got := make(chan int, 1)
			go func() {
				value, _ := f.Result(t.Context())
				got <- value
			}()
			synctest.Wait()
			r.Resolve(3)
			require.Equal(t, 3, <-got, "Result")
		})
	})
}

func TestCancelHook(t *testing.T) {
	count := func(n *int) func() { return func() { *n++ } }
	t.Run("runs once and ends nothing", func(t *testing.T) {
		f, r := future.New[int]()
		var n int
		r.OnCancel(count(&n))
		f.Cancel()
		f.Cancel()
		require.Equal(t, 1, n, "runs of the hook after two Cancels")
		require.NoError(t, f.Err(), "Err after Cancel")
		require.True(t, r.Resolve(1), "a value after Cancel")
	})
	t.Run("set after Cancel", func(t *testing.T) {
		f, r := future.New[int]()
		f.Cancel()
		var n int
		r.OnCancel(count(&n))
		require.Equal(t, 1, n, "runs of a hook that came late")
	})
	t.Run("not after the end", func(t *testing.T) {
		f, r := future.New[int]()
		var n int
		r.OnCancel(count(&n))
		r.Resolve(1)
		f.Cancel()
		r.OnCancel(count(&n))
		require.Zero(t, n, "runs of the hook after the end")
	})
	t.Run("replaced", func(t *testing.T) {
		f, r := future.New[int]()
		var first, second int
		r.OnCancel(count(&first))
		r.OnCancel(count(&second))
		f.Cancel()
		require.Equal(t, [2]int{0, 1}, [2]int{first, second}, "runs of the first and the second hook")
	})
	t.Run("may reject", func(t *testing.T) {
		f, r := future.New[int]()
		r.OnCancel(func() { r.Reject(future.ErrCanceled) })
		f.Cancel()
		require.ErrorIs(t, f.Err(), context.Canceled, "Err")
	})
}

func TestThen(t *testing.T) {
	type verdict struct {
		value int
		err   error
	}
	got := make(chan verdict) // unbuffered: a Then on the resolver's own goroutine would not come back
	pass := func(value int, err error) { got <- verdict{value, err} }

	f, r := future.New[int]()
	f.Then(pass)
	f.Then(pass)
	r.Resolve(5)
	require.Equal(t, verdict{5, nil}, <-got, "the first function")
	require.Equal(t, verdict{5, nil}, <-got, "the second function")
	f.Then(pass)
	require.Equal(t, verdict{5, nil}, <-got, "a function that came after the end")

	f, r = future.New[int]()
	f.Then(pass)
	r.Reject(io.EOF)
	require.Equal(t, verdict{0, io.EOF}, <-got, "the function of a future that was rejected")
}

func TestAnyMixesTypes(t *testing.T) {
	a, ra := future.New[int]()
	b, rb := future.New[string]()
	ra.Resolve(1)
	rb.Reject(io.EOF)
	var errs []error
	for _, f := range []future.Any{a, b} {
		f.Cancel()
		<-f.Done()
		errs = append(errs, f.Err())
	}
	require.Equal(t, []error{nil, io.EOF}, errs, "Err of both futures")
}

func TestErrors(t *testing.T) {
	require.EqualError(t, future.ErrTimeout, "supervisor: timeout")
	require.EqualError(t, future.ErrCanceled, "supervisor: canceled")
	require.ErrorIs(t, future.ErrTimeout, context.DeadlineExceeded)
	require.ErrorIs(t, future.ErrCanceled, context.Canceled)
	require.NotErrorIs(t, future.ErrTimeout, context.Canceled)
	require.NotErrorIs(t, future.ErrCanceled, context.DeadlineExceeded)
	var timeout interface{ Timeout() bool }
	require.ErrorAs(t, future.ErrTimeout, &timeout, "an error that says Timeout()")
	require.True(t, timeout.Timeout(), "Timeout() of ErrTimeout")
}

func TestCause(t *testing.T) {
	canceled := func(cause error) context.Context {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(cause)
		return ctx
	}
	late := func(cause error) context.Context {
		ctx, cancel := context.WithDeadlineCause(context.Background(), time.Unix(0, 0), cause)
		cancel()
		return ctx
	}
	other := errors.New("the lid was opened")
	for _, tt := range []struct {
		name string
		ctx  context.Context
		is   []error
		text string
	}{
		{"canceled", canceled(nil), []error{future.ErrCanceled}, "supervisor: canceled"},
		{
			"canceled with a cause", canceled(other),
			[]error{future.ErrCanceled, context.Canceled, other},
			"supervisor: canceled: the lid was opened",
		},
		{"canceled by our timeout", canceled(future.ErrTimeout), []error{future.ErrTimeout}, "supervisor: timeout"},
		{"deadline", late(nil), []error{future.ErrTimeout}, "supervisor: timeout"},
		{
			"deadline with a cause", late(other),
			[]error{future.ErrTimeout, context.DeadlineExceeded, other},
			"supervisor: timeout: the lid was opened",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := future.Cause(tt.ctx)
			require.EqualError(t, err, tt.text)
			for _, is := range tt.is {
				require.ErrorIs(t, err, is)
			}
		})
	}
	require.NoError(t, future.Cause(context.Background()), "Cause of a live context")
}

func TestNoGoroutineWithoutEnd(t *testing.T) {
	f, _ := future.New[int]()
	f.Then(func(int, error) { t.Error("called although nobody ended the future") })
	f.Done()
	require.NoError(t, goleak.Find(), "goroutines that belong to a pending future")
}

func TestCost(t *testing.T) {
	allocs := testing.AllocsPerRun(100, func() {
		f, r := future.New[int]()
		r.Resolve(1)
		_, _ = f.Result(context.Background())
	})
	require.LessOrEqual(t, allocs, 1.0, "allocations of a future that was ended before it was asked")
}

func BenchmarkFuture(b *testing.B) {
	ctx := context.Background()
	b.Run("ended first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f, r := future.New[int]()
			r.Resolve(1)
			_, _ = f.Result(ctx)
		}
	})
	b.Run("plain channel", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c := make(chan int, 1)
			c <- 1
			select {
			case <-c:
			case <-ctx.Done():
			}
		}
	})
}
