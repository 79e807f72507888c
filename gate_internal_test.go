package supervisor

// The gate is tested from inside: the order of those who wait for room cannot be seen from outside.

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// entering has somebody wait for room; its error comes through the channel.
func entering(ctx context.Context, g *gate, size int64) <-chan error {
	result := make(chan error, 1)
	go func() { result <- g.enter(ctx, size) }()
	synctest.Wait()
	return result
}

// decided reports whether the one who waits has got its answer.
func decided(result <-chan error) bool {
	synctest.Wait()
	return len(result) > 0
}

func TestGateGrantsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(Limits{Queue: 10, QueueBytes: 100})
		require.NoError(t, g.tryEnter(60), "the first")
		large := entering(t.Context(), g, 90)
		small := entering(t.Context(), g, 1)
		require.False(t, decided(large), "90 bytes beside 60")
		require.False(t, decided(small), "a small one does not overtake")
		require.ErrorIs(t, g.tryEnter(1), ErrBusy, "tryEnter while others wait")
		g.leave(60)
		require.NoError(t, <-large, "the large one, when there is room")
		require.NoError(t, <-small, "the small one beside it")
		require.Equal(t, 2, g.held(), "requests inside")
	})
}

func TestGateLargerThanTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(Limits{Queue: 10, QueueBytes: 100})
		require.NoError(t, g.tryEnter(1000), "one that is larger than the limit, into an empty queue")
		require.ErrorIs(t, g.tryEnter(1), ErrBusy, "another beside it")
		g.leave(1000)
		require.NoError(t, g.tryEnter(1), "one of a byte")
		large := entering(t.Context(), g, 1000)
		require.False(t, decided(large), "the larger one waits until the queue is empty")
		g.leave(1)
		require.NoError(t, <-large, "and enters then")
	})
}

func TestGateContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(Limits{Queue: 10, QueueBytes: 100})
		require.NoError(t, g.tryEnter(50), "the first")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		large := entering(ctx, g, 90)
		small := entering(t.Context(), g, 50)
		require.ErrorIs(t, <-large, ErrTimeout, "the one whose ctx has ended")
		require.NoError(t, <-small, "the one behind it, which fits")
		require.Equal(t, 2, g.held(), "requests inside")
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, g.enter(ended, 1), ErrCanceled, "without room and with a ctx that has ended")
		require.Equal(t, 2, g.held(), "requests inside")
	})
}

func TestGateShut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reason := errors.New("closing time")
		g := newGate(Limits{Queue: 1, QueueBytes: 100})
		require.NoError(t, g.tryEnter(0), "the first")
		waiting := []<-chan error{entering(t.Context(), g, 0), entering(t.Context(), g, 0)}
		g.shut(reason)
		for _, w := range waiting {
			require.Same(t, reason, <-w, "those who wait")
		}
		require.Same(t, reason, g.tryEnter(0), "those who come later")
		require.Same(t, reason, g.enter(t.Context(), 0), "those who would wait")
		g.leave(0)
		require.Zero(t, g.held(), "requests inside: who was refused is not")
		g.open()
		require.NoError(t, g.enter(t.Context(), 0), "after open")
	})
}

// Random steps against a list: who waits is granted in order, and the limits hold.
func TestGateAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := Limits{Queue: rapid.IntRange(1, 4).Draw(t, "queue"), QueueBytes: int64(rapid.IntRange(1, 20).Draw(t, "bytes"))}
		g := newGate(limit)
		var inside []int64
		sum := func() (n int64) {
			for _, size := range inside {
				n += size
			}
			return n
		}
		t.Repeat(map[string]func(*rapid.T){
			"enter": func(t *rapid.T) {
				size := int64(rapid.IntRange(0, 30).Draw(t, "size"))
				fits := len(inside) < limit.Queue && (sum() == 0 || sum()+size <= limit.QueueBytes)
				err := g.tryEnter(size)
				require.Equal(t, fits, err == nil, "tryEnter(%d) with %v inside returned %v", size, inside, err)
				if fits {
					inside = append(inside, size)
				}
			},
			"leave": func(t *rapid.T) {
				if len(inside) == 0 {
					t.Skip("nobody is inside")
				}
				g.leave(inside[0])
				inside = inside[1:]
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(inside), g.held(), "requests inside")
				require.Equal(t, sum(), g.bytes, "bytes inside")
			},
		})
	})
}
