package faulttest_test

// Many requests at once, for one id, one reply, one inbox, or one child.

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// The same id at once from many: one of them has it.
func TestR12SameIDAtOnce(t *testing.T) {
	const senders = 8
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		sup := clerks(t, k, 1)
		ctx := testkit.Context(t)
		for round := range times(100, 2000) {
			var accepted atomic.Int32
			var all sync.WaitGroup
			var winner atomic.Int64
			errs := make(chan error, senders)
			for i := range senders {
				all.Go(func() {
					if err := sup.Send(ctx, clerkPayload("the id", 0, "Echo", i)); err != nil {
						errs <- err
						return
					}
					winner.Store(int64(i))
					accepted.Add(1)
				})
			}
			all.Wait()
			require.EqualValues(t, 1, accepted.Load(), "Sends that were accepted in round %d", round)
			close(errs)
			for err := range errs {
				require.ErrorIs(t, err, supervisor.ErrDuplicateRequest, "the others")
				var call *supervisor.CallError
				require.ErrorAs(t, err, &call, "the others")
				require.True(t, call.Unexecuted, "they were surely not executed: %v", err)
			}
			got, err := sup.Recv(ctx)
			require.NoError(t, err, "Recv")
			require.EqualValues(t, winner.Load(), got.Data, "value of the one that was accepted")
			nothingLeft(t, sup)
		}
		shutdown(t, sup)
	})
}

// A reply that a Recv and a RecvAll want goes to one of them; the other one does not hang.
func TestR13RecvAndRecvAllRace(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		sup := clerks(t, k, 1)
		ctx := testkit.Context(t)
		byRecv := 0
		rounds := times(1000, 10_000)
		for round := range rounds {
			req := send(t, sup, supervisor.NewSendPayload(0, "Echo", round))
			waiting, cancel := context.WithCancel(ctx)
			var recvErr error
			var got supervisor.RecvPayload
			var receiver sync.WaitGroup
			receiver.Go(func() { got, recvErr = sup.Recv(waiting) })
			all, allErr := sup.RecvAll(ctx, req)
			cancel()
			receiver.Wait()
			if recvErr == nil {
				require.Equal(t, round, got.Data, "value of Recv")
				require.ErrorIs(t, allErr, supervisor.ErrNoSuchRequest, "RecvAll, when Recv has the reply")
				byRecv++
				continue
			}
			require.ErrorIs(t, recvErr, supervisor.ErrCanceled, "Recv")
			require.NoError(t, allErr, "RecvAll, when Recv has nothing")
			require.Equal(t, round, all[0].Data, "value of RecvAll")
		}
		t.Logf("Recv had %d of %d", byRecv, rounds)
		nothingLeft(t, sup)
		shutdown(t, sup)
	})
}

// Nobody receives. The inbox fills up to its limit and no further; whoever sends is told so at once.
func TestR14NobodyReceives(t *testing.T) {
	limit := times(10_000, 1<<20)
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		sup := newSupervisor(t, k.Type, supervisor.WithInboxLimit(limit))
		register(t, sup, newClerk)
		require.NoError(t, sup.StartLink(context.Background()), "StartLink")
		ctx := context.Background()
		for i := range limit {
			if err := sup.Send(ctx, clerkPayload(strconv.Itoa(i), 0, "Echo", i)); err != nil {
				require.NoError(t, err, "Send %d", i)
			}
		}
		testkit.Within(t, 5*time.Second, func() {
			for range 100 {
				p := clerkPayload("too many", 0, "Echo", 0)
				require.ErrorIs(t, sup.Send(ctx, p), supervisor.ErrBusy, "Send with a full inbox")
				require.ErrorIs(t, sup.TrySend(p), supervisor.ErrBusy, "TrySend with a full inbox")
			}
			n, err := supervisor.Call[int](ctx, sup, 0, "Echo", 7)
			require.NoError(t, err, "Call takes no place")
			require.Equal(t, 7, n, "its result")
		})
		s := sup.Snapshot()
		require.Equal(t, limit, s.Open+s.Unclaimed, "places that are taken")
		for i := range limit {
			p, err := sup.Recv(ctx)
			if err != nil || p.Data != i {
				t.Fatalf("reply %d: %v, %v", i, p.Data, err)
			}
		}
		nothingLeft(t, sup)
		send(t, sup, supervisor.NewSendPayload(0, "Echo", 1))
		shutdown(t, sup)
	})
}

// What one of very many open requests costs is what one of few costs. A search through all of them would make it a
// hundred times dearer; the bar leaves room for cold caches, the rounds for a busy machine.
func TestR17ManyOpenRequests(t *testing.T) {
	const few, rounds = 1000, 8
	many := times(20_000, 100_000)
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		r := childtest.NewRig(t, k)
		r.Ctx = context.Background() // many take their time
		r.ID = r.Register(t, r.Job(), supervisor.Limits{Queue: many + 1})
		r.StartLink(t)
		perReply := func(n int) time.Duration {
			held, v := r.Occupy(t, r.ID)
			reqs := make([]supervisor.SendPayload, n)
			for i := range reqs {
				reqs[i] = supervisor.NewSendPayload(r.ID, "Int", i)
				if err := r.Sup.Send(r.Ctx, reqs[i]); err != nil {
					require.NoError(t, err, "Send %d", i)
				}
			}
			v.Release(t, "")
			began := time.Now()
			got, err := r.Sup.RecvAll(r.Ctx, append(reqs, held))
			took := time.Since(began)
			require.NoError(t, err, "RecvAll of %d", n)
			for i := range reqs {
				if got[i].Data != i {
					t.Fatalf("value %d is %v", i, got[i].Data)
				}
			}
			return took / time.Duration(n)
		}
		perReply(few) // warms up
		var ratios []float64
		for range rounds {
			var small time.Duration
			for range 5 {
				small += perReply(few) / 5
			}
			ratio := float64(perReply(many)) / float64(small)
			ratios = append(ratios, ratio)
			if ratio < 3 {
				t.Logf("a reply among %d takes %.2f times as long as one among %d", many, ratio, few)
				return
			}
		}
		t.Fatalf("a reply among %d takes %.1f times as long as one among %d, want less than 3 once", many, ratios, few)
	})
}
