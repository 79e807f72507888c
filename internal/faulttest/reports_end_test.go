package faulttest_test

// Public bug reports about the end of workers.

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// isGate reports whether a goroutine is one of the test's own gate.
func isGate(stack string) bool { return strings.Contains(stack, "childtest.NewGate") }

// Nothing of a supervisor runs when Shutdown returns. A goroutine that has said so may need a moment to leave, but nothing
// that it would have to wait for.
func TestC59NothingRunsAfterShutdown(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		for range 3 {
			before := moduleGoroutines()
			r := childtest.StartTwo(t, k)
			for _, id := range []int{r.ID, r.Other} {
				r.Send(t, id, "Zeros", 1<<20)
				r.Send(t, id, "Panic", "text")
			}
			shutdown(t, r.Sup)
			var left string
			for range 200 { // yields, no waits
				left = ""
				for id, stack := range moduleGoroutines() {
					if _, old := before[id]; !old && !isGate(stack) {
						left += stack + "\n\n"
					}
				}
				if left == "" {
					break
				}
				runtime.Gosched()
			}
			require.Empty(t, left, "goroutines right after Shutdown")
		}
	})
}

// The old life writes into nothing that the new one has.
func TestC67StuckLifeAndNextGeneration(t *testing.T) {
	testkit.NoLeaks(t)
	r := childtest.Start(t, childtest.Goroutines(), supervisor.Stop{Grace: testkit.Limit})
	old := r.Send(t, r.ID, "HoldOn", "forever")
	v := r.Gate.Next(t)
	life := r.Child(t, r.ID).Incarnation
	began := time.Now()
	ctx, cancel := context.WithTimeout(r.Ctx, 200*time.Millisecond)
	defer cancel()
	err := r.Sup.Shutdown(ctx)
	shutdownTook(t, time.Since(began), 200*time.Millisecond)
	var stuck *supervisor.StuckError
	require.ErrorAs(t, err, &stuck, "Shutdown")
	require.Equal(t, life, stuck.Incarnation, "the life that is stuck")
	r.StartLink(t)
	held, w := r.Occupy(t, r.ID)
	v.Release(t, "of the old generation")
	testkit.Until(t, "the old object is closed", func() bool { return r.Ledger.Counts(t)["close"] == 1 })
	require.Zero(t, r.Sup.Snapshot().Unclaimed, "replies in the new generation")
	_, err = r.Sup.RecvAll(r.Ctx, []supervisor.SendPayload{old})
	require.ErrorIs(t, err, supervisor.ErrNoSuchRequest, "RecvAll of the old request")
	w.Release(t, "of the new one")
	p, err := r.Sup.Recv(r.Ctx)
	require.NoError(t, err, "Recv")
	require.Equal(t, []any{held.ReqID, "of the new one"}, []any{p.ReqID, p.Data}, "the only reply")
	require.Greater(t, p.Incarnation, life, "the life that gave it")
	require.EqualValues(t, 1, r.Child(t, r.ID).Load.Late, "replies that were late, and are counted")
	shutdown(t, r.Sup)
}

func TestC68RestartOfStuckChild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, most = 300 * time.Millisecond, 500 * time.Millisecond
		lives := make(chan *sleeper, 2)
		first := newSleeper()
		lives <- first
		lives <- newSleeper()
		sleeperQueue.Store(&lives)
		seen := testkit.NewRecorder(func(e supervisor.Event) supervisor.EventKind { return e.Kind })
		sup := newSupervisor(t, supervisor.Goroutine, supervisor.WithEvents(seen.Record))
		id := register(t, sup, newQueuedSleeper)
		require.NoError(t, sup.StartLink(context.Background()), "StartLink")
		stuck := supervisor.Go[int](context.Background(), sup, id, "Wait")
		queued := supervisor.Go[int](context.Background(), sup, id, "Echo", 1)
		synctest.Wait()
		before := sup.Snapshot().Children[id].Incarnation

		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		began := time.Now()
		err := sup.Restart(ctx, id)
		require.LessOrEqual(t, time.Since(began), most, "time of Restart")
		if err != nil {
			require.ErrorIs(t, err, supervisor.ErrTimeout, "Restart, if its ctx ended before there was a new life")
		}
		for _, f := range []interface{ Err() error }{stuck, queued} {
			require.ErrorIs(t, f.Err(), supervisor.ErrRestarted, "verdict of what was open")
		}
		n, err := supervisor.Call[int](context.Background(), sup, id, "Echo", 7)
		require.NoError(t, err, "Call of the new life")
		require.Equal(t, 7, n, "its answer")
		require.LessOrEqual(t, time.Since(began), most, "time until the new life answers")
		require.Greater(t, sup.Snapshot().Children[id].Incarnation, before, "the new life")
		var named *supervisor.StuckError
		require.ErrorAs(t, seen.Wait(t, supervisor.EventStuck).Err, &named, "the event about the old one")
		require.Equal(t, []any{before, "Wait"}, []any{named.Incarnation, named.Method}, "what is stuck")
		close(first.wake)
		<-first.closed
		synctest.Wait()
		shutdown(t, sup)
	})
}

// The time to stop is that of all children together, and the second Shutdown says the same as the first.
func TestC76ManyStuckChildren(t *testing.T) {
	const many = 8
	const grace, termGrace = 200 * time.Millisecond, 100 * time.Millisecond
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		r := childtest.NewRig(t, k)
		for range many {
			r.Register(t, r.Job(), supervisor.Stop{Grace: grace, TermGrace: termGrace})
		}
		r.StartLink(t)
		var reqs []supervisor.SendPayload
		var visitors []*childtest.Visitor
		for id := range many {
			reqs = append(reqs, r.Send(t, id, "HoldOn", "forever"))
			visitors = append(visitors, r.Gate.Next(t))
		}
		began := time.Now()
		err := r.Sup.Shutdown(r.Ctx)
		shutdownTook(t, time.Since(began), grace+termGrace)
		require.Equal(t, k.Can.Process, err == nil, "only what cannot be ended is an error: %v", err)
		require.Equal(t, err, r.Sup.Shutdown(r.Ctx), "Shutdown again")
		replies, recvErr := r.Sup.RecvAll(r.Ctx, reqs, supervisor.IgnoreErr())
		require.NoError(t, recvErr, "RecvAll")
		for id, p := range replies {
			require.ErrorIs(t, p.Err, supervisor.ErrClosed, "verdict of child %d", id)
			ends := 0
			for _, e := range r.Events.All() {
				if e.ProcID == id && e.Kind != supervisor.EventStarted {
					ends++
				}
			}
			require.Equal(t, 1, ends, "events of the end of child %d\n%s", id, r.Events)
		}
		for _, v := range visitors {
			if k.Can.Process {
				v.Gone(t)
			} else {
				v.Release(t, "")
			}
		}
	})
}
