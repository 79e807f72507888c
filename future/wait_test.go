package future_test

import (
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/workerlink/supervisor/future"
)

// three returns futures of different types and functions that end them.
func three() (futures []future.Any, value, other, fail func()) {
	a, ra := future.New[int]()
	b, rb := future.New[string]()
	c, rc := future.New[bool]()
	return []future.Any{a, b, c}, func() { ra.Resolve(1) }, func() { rb.Resolve("b") }, func() { rc.Reject(io.EOF) }
}

func TestWait(t *testing.T) {
	for _, tt := range []struct {
		name          string
		mode          future.WaitMode
		before, after []int // which of the three end before and during the wait: value, other, fail
		done          []int // places of those that are done
		err           error
	}{
		{"all", future.All, nil, []int{0, 2, 1}, []int{0, 1, 2}, nil},
		{"all had ended", future.All, []int{2, 1, 0}, nil, []int{0, 1, 2}, nil},
		{"all, and one is late", future.All, []int{1}, []int{0}, []int{0, 1}, future.ErrTimeout},
		{"first", future.First, nil, []int{1}, []int{1}, nil},
		{"first had ended", future.First, []int{2}, nil, []int{2}, nil},
		{"first, and others had ended as well", future.First, []int{2, 0}, nil, []int{0, 2}, nil},
		{"first, and none does", future.First, nil, nil, nil, future.ErrTimeout},
		{"first error after a value", future.FirstError, nil, []int{0, 2}, []int{0, 2}, nil},
		{"first error had ended", future.FirstError, []int{2}, nil, []int{2}, nil},
		{"first error, and there is none yet", future.FirstError, []int{0}, []int{1}, []int{0, 1}, future.ErrTimeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				futures, value, other, fail := three()
				ends := []func(){value, other, fail}
				for _, i := range tt.before {
					ends[i]()
				}
				go func() {
					for _, i := range tt.after {
						<-time.After(time.Millisecond)
						ends[i]()
					}
				}()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				done, pending, err := future.Wait(ctx, tt.mode, futures...)
				require.Equal(t, tt.err, err, "error of Wait")
				var wantDone, wantPending []future.Any
				for i, f := range futures {
					if contains(tt.done, i) {
						wantDone = append(wantDone, f)
					} else {
						wantPending = append(wantPending, f)
					}
				}
				require.Equal(t, wantDone, done, "futures that have ended")
				require.Equal(t, wantPending, pending, "futures that have not")
				for _, end := range ends {
					end() // nobody who has gone away is in the way
				}
			})
		})
	}
}

func contains(list []int, n int) bool {
	for _, v := range list {
		if v == n {
			return true
		}
	}
	return false
}

func TestWaitForNothing(t *testing.T) {
	for _, mode := range []future.WaitMode{future.All, future.First, future.FirstError} {
		done, pending, err := future.Wait(t.Context(), mode)
		require.NoError(t, err, "Wait(%v) without futures", mode)
		require.Empty(t, done, "done of Wait(%v)", mode)
		require.Empty(t, pending, "pending of Wait(%v)", mode)
	}
	require.Panics(t, func() { _, _, _ = future.Wait(t.Context(), 7) }, "Wait with a mode that is none")
	require.Equal(t, "First", future.First.String(), "text of a mode")
	require.Equal(t, "WaitMode(-1)", future.WaitMode(-1).String(), "text of no mode")
}

func TestWaitWithAnEndedContext(t *testing.T) {
	futures, value, _, _ := three()
	value()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	done, pending, err := future.Wait(ctx, future.First, futures...)
	require.NoError(t, err, "Wait(First) when one had ended")
	require.Equal(t, futures[:1], done, "done")
	require.Equal(t, futures[1:], pending, "pending")
	done, _, err = future.Wait(ctx, future.All, futures...)
	require.Equal(t, future.ErrCanceled, err, "Wait(All)")
	require.Equal(t, futures[:1], done, "done, in spite of the error")
}

func TestWaitCountsAFutureOnce(t *testing.T) {
	f, r := future.New[int]()
	r.Resolve(1)
	done, pending, err := future.Wait(t.Context(), future.All, f, f)
	require.NoError(t, err, "Wait")
	require.Equal(t, []future.Any{f}, done, "done")
	require.Empty(t, pending, "pending")
}

func TestAsCompleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		futures, value, other, fail := three()
		other()
		var order []future.Any
		for f := range future.AsCompleted(t.Context(), append(futures, futures...)...) {
			order = append(order, f)
			switch len(order) {
			case 1:
				time.AfterFunc(time.Second, fail)
			case 2:
				value()
			}
		}
		require.Equal(t, []future.Any{futures[1], futures[2], futures[0]}, order, "order in which they ended")
	})
}

func TestAsCompletedEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		futures, value, _, _ := three()
		value()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var order []future.Any
		for f := range future.AsCompleted(ctx, futures...) {
			order = append(order, f)
		}
		require.Equal(t, futures[:1], order, "futures that ended in time")
		require.Error(t, ctx.Err(), "the context has ended by then")
	})
}

func TestAsCompletedCanBeLeft(t *testing.T) {
	futures, value, other, fail := three()
	value()
	for range future.AsCompleted(t.Context(), futures...) {
		break
	}
	other()
	fail()
	require.NoError(t, goleak.Find(), "goroutines after the loop was left")
}

func TestAsCompletedOfMany(t *testing.T) {
	const n = 10000
	futures := make([]future.Any, n)
	resolvers := make([]future.Resolver[int], n)
	for i := range futures {
		futures[i], resolvers[i] = future.New[int]()
	}
	go func() {
		for _, r := range resolvers {
			r.Resolve(1)
		}
	}()
	seen := make(map[future.Any]bool)
	for f := range future.AsCompleted(t.Context(), futures...) {
		require.False(t, seen[f], "a future came twice")
		seen[f] = true
	}
	require.Len(t, seen, n, "futures that came")
}

func ExampleWait() {
	quick, r := future.New[string]()
	slow, _ := future.New[int]()
	r.Resolve("done")
	done, pending, err := future.Wait(context.Background(), future.First, quick, slow)
	fmt.Println(len(done), len(pending), err)
	// Output: 1 1 <nil>
}
