package faulttest_test

// Replies find their requests, in order, however many there are and whoever wants them.

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// clerk is the object of children whose replies are to find their way.
type clerk struct{ taken, misplaced int }

var newClerk = supervisor.Define("faulttest.clerk", func(context.Context) (*clerk, error) { return &clerk{}, nil })

// Echo returns its argument.
func (c *clerk) Echo(n int) int { return n }

// Nap returns its argument after a while.
func (c *clerk) Nap(n int, d time.Duration) int {
	<-time.After(d)
	return n
}

// Take counts its calls, and those that come out of turn.
func (c *clerk) Take(n int, _ []byte) {
	if n != c.taken {
		c.misplaced++
	}
	c.taken++
}

// Taken returns both numbers.
func (c *clerk) Taken() []int { return []int{c.taken, c.misplaced} }

// Blob returns so many bytes.
func (c *clerk) Blob(size int) []byte { return make([]byte, size) }

// Heap returns how many bytes are in use where the object lives.
func (c *clerk) Heap() uint64 { return clerkHeap() }

func clerkHeap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first one moved out of the pools
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// clerks returns a running supervisor of n children.
func clerks(t testing.TB, k childtest.Kind, n int, opts ...supervisor.ChildOption) *supervisor.Supervisor {
	t.Helper()
	sup := newSupervisor(t, k.Type)
	for range n {
		register(t, sup, newClerk, opts...)
	}
	require.NoError(t, sup.StartLink(context.Background()), "StartLink")
	return sup
}

// clerkPayload is a request with an id of one's own choice.
func clerkPayload(id string, child int, method string, args ...any) supervisor.SendPayload {
	return supervisor.SendPayload{ProcID: child, ReqID: id, Method: method, Args: args}
}

// nothingLeft asserts that the inbox is empty.
func nothingLeft(t testing.TB, sup *supervisor.Supervisor) {
	t.Helper()
	s := sup.Snapshot()
	require.Zero(t, s.Open, "open requests that are left")
	require.Zero(t, s.Unclaimed, "unclaimed replies that are left")
}

func TestR05RequestOrder(t *testing.T) {
	const children, requests = 8, 1000
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		sup := clerks(t, k, children)
		rnd := rand.New(rand.NewPCG(5, 5))
		var reqs []supervisor.SendPayload
		for i := range requests {
			nap := time.Duration(rnd.IntN(400)) * time.Microsecond
			reqs = append(reqs, supervisor.NewSendPayload(rnd.IntN(children), "Nap", i, nap))
		}
		var arrived []int
		got, err := sup.RecvAll(testkit.Context(t), send(t, sup, reqs...),
			supervisor.OnReply(func(_ *supervisor.Waiting, p supervisor.RecvPayload) error {
				n, err := supervisor.Value[int](p)
				arrived = append(arrived, n)
				return err
			}))
		require.NoError(t, err, "RecvAll")
		require.False(t, slices.IsSorted(arrived), "the replies came in request order, so nothing was tested")
		require.Len(t, got, requests, "entries")
		for i, p := range got {
			require.Equal(t, reqs[i].ReqID, p.ReqID, "request of entry %d", i)
			require.Equal(t, reqs[i].ProcID, p.ProcID, "child of entry %d", i)
			require.Equal(t, i, p.Data, "value of entry %d", i)
		}
		nothingLeft(t, sup)
		shutdown(t, sup)
	})
}

// Some requests are so large that they go through a pipe in pieces. Nothing overtakes them.
func TestR06OrderOfOneChild(t *testing.T) {
	const calls, large = 10_000, 1500
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		sup := clerks(t, k, 1)
		ctx := testkit.Context(t)
		var reqs []supervisor.SendPayload
		for i := range calls {
			var pad []byte
			if i%large == large-1 {
				pad = make([]byte, 300<<10)
			}
			p := supervisor.NewSendPayload(0, "Take", i, pad)
			require.NoError(t, sup.Send(ctx, p), "Send %d", i)
			reqs = append(reqs, p)
		}
		next := 0
		_, err := sup.RecvAll(ctx, reqs, supervisor.OnReply(func(_ *supervisor.Waiting, p supervisor.RecvPayload) error {
			require.Equal(t, reqs[next].ReqID, p.ReqID, "reply %d", next)
			next++
			return nil
		}))
		require.NoError(t, err, "RecvAll")
		counts, err := supervisor.Call[[]int](ctx, sup, 0, "Taken")
		require.NoError(t, err, "Taken")
		require.Equal(t, []int{calls, 0}, counts, "executions, and those out of turn")
		shutdown(t, sup)
	})
}

// The ids are the callers' own, and may be the same elsewhere: nothing crosses over.
func TestR18TwoSupervisors(t *testing.T) {
	const requests = 100
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		ctx := testkit.Context(t)
		sups := []*supervisor.Supervisor{clerks(t, k, 2), clerks(t, k, 2)}
		var reqs [2][]supervisor.SendPayload
		for i := range requests {
			for s, sup := range sups {
				p := clerkPayload(string(rune('A'+i)), i%2, "Echo", 1000*s+i)
				reqs[s] = append(reqs[s], send(t, sup, p)...)
			}
		}
		for s, sup := range sups {
			got, err := sup.RecvAll(ctx, reqs[s][:requests/2])
			require.NoError(t, err, "RecvAll of supervisor %d", s)
			for i, p := range got {
				require.Equal(t, 1000*s+i, p.Data, "value %d of supervisor %d", i, s)
			}
		}
		require.NoError(t, sups[0].Restart(ctx, 0), "Restart of a child of the first supervisor")
		_ = sups[0].Cancel(reqs[0][requests-1].ReqID) // answered or not
		shutdown(t, sups[0])
		got, err := sups[1].RecvAll(ctx, reqs[1][requests/2:])
		require.NoError(t, err, "RecvAll of the second supervisor after the end of the first")
		for i, p := range got {
			require.Equal(t, 1000+requests/2+i, p.Data, "value %d of the second supervisor", i)
		}
		nothingLeft(t, sups[1])
		shutdown(t, sups[1])
	})
}
