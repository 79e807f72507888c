package faulttest_test

// What is under way when a supervisor is shut down, and what comes after.

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

// shutdownSlack is what an end may take beyond the times that it was given.
const shutdownSlack = time.Second

// shutdownTook asserts that an end took its time, and not much more.
func shutdownTook(t testing.TB, took, least time.Duration) {
	t.Helper()
	require.GreaterOrEqual(t, took, least, "time of the end")
	require.Less(t, took, least+shutdownSlack*testkit.Slowdown, "time of the end")
}

func TestX02UseAfterShutdown(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		r := childtest.Start(t, k)
		taken, kept := r.Send(t, r.ID, "Int", 1), r.Send(t, r.ID, "Int", 2)
		require.Equal(t, 1, r.Recv(t, taken).Data, "the reply that is taken in time")
		shutdown(t, r.Sup)
		processes := testkit.Children()
		testkit.Within(t, shutdownSlack, func() {
			_, err := r.Sup.RecvAll(r.Ctx, []supervisor.SendPayload{taken})
			require.ErrorIs(t, err, supervisor.ErrNoSuchRequest, "RecvAll of a reply that was taken")
			require.Equal(t, 2, r.Recv(t, kept).Data, "RecvAll of a reply that came in time")
			p := supervisor.NewSendPayload(r.ID, "Enter", "executed")
			require.ErrorIs(t, r.Sup.Send(r.Ctx, p), supervisor.ErrClosed, "Send")
			_, err = r.Sup.RecvAll(r.Ctx, []supervisor.SendPayload{p})
			require.ErrorIs(t, err, supervisor.ErrNoSuchRequest, "RecvAll of what was refused")
			_, err = r.Sup.Recv(r.Ctx)
			require.ErrorIs(t, err, supervisor.ErrClosed, "Recv")
			for range 3 {
				require.ErrorIs(t, r.Sup.Restart(r.Ctx, r.ID), supervisor.ErrClosed, "Restart")
			}
		})
		require.Equal(t, processes, testkit.Children(), "processes: nothing was started")
		require.Equal(t, map[string]int{"close": 1}, r.Ledger.Counts(t), "what ran")
		require.Equal(t, supervisor.StateIdle, r.Child(t, r.ID).State, "state of the child")
	})
}

// inCall waits until a goroutine is inside a function.
func inCall(t testing.TB, function string) {
	t.Helper()
	testkit.Until(t, "somebody is in "+function, func() bool { return strings.Contains(testkit.Stacks(), function+"(") })
}

func TestX03RecvWhenShutdownComes(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		r := childtest.Start(t, k)
		woken := make(chan error, 1)
		task.Go(func(context.Context) {
			_, err := r.Sup.Recv(r.Ctx)
			woken <- err
		})
		inCall(t, "(*Supervisor).Recv")
		shutdown(t, r.Sup)
		testkit.Within(t, shutdownSlack, func() {
			require.ErrorIs(t, testkit.Receive(t, woken, "Recv"), supervisor.ErrClosed, "Recv when Shutdown comes")
		})
	})
	t.Run("to the instant", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			sup := newSupervisor(t, supervisor.Goroutine)
			register(t, sup, newCrowdMember)
			require.NoError(t, sup.StartLink(context.Background()), "StartLink")
			woken := make(chan error, 1)
			task.Go(func(context.Context) {
				_, err := sup.Recv(context.Background())
				woken <- err
			})
			synctest.Wait()
			began := time.Now()
			shutdown(t, sup)
			require.ErrorIs(t, <-woken, supervisor.ErrClosed, "Recv when Shutdown comes")
			require.Zero(t, time.Since(began), "time until Recv returns")
		})
	})
	t.Run("with requests that stay open", func(t *testing.T) { eachKind(t, waitersAtShutdown) })
}

// waitersAtShutdown has somebody wait in every way while the child is held up for longer than it may be.
func waitersAtShutdown(t *testing.T, k childtest.Kind) {
	r := childtest.Start(t, k, supervisor.Limits{Queue: 2}, supervisor.Stop{Grace: -1, TermGrace: testkit.Limit})
	held, v := r.Occupy(t, r.ID)
	woken := make(map[string]chan error)
	wait := func(how, function string, f func() error) {
		result := make(chan error, 1)
		woken[how] = result
		task.Go(func(context.Context) { result <- f() })
		inCall(t, function)
	}
	wait("Recv", "(*Supervisor).Recv", func() error { _, err := r.Sup.Recv(r.Ctx); return err })
	wait("RecvAll", "(*Supervisor).RecvAll", func() error {
		replies, err := r.Sup.RecvAll(r.Ctx, []supervisor.SendPayload{held}, supervisor.IgnoreErr())
		if err != nil {
			return err
		}
		return replies[0].Err
	})
	wait("Do", "(*Supervisor).Do", func() error {
		_, err := r.Sup.Do(r.Ctx, supervisor.NewSendPayload(r.ID, "Enter", "by Do"))
		return err
	})
	testkit.Until(t, "the queue is full", func() bool { return r.Child(t, r.ID).Load == supervisor.Load{Queued: 1, InFlight: 1} })
	wait("Send", "(*Supervisor).Send", func() error { return r.Sup.Send(r.Ctx, supervisor.NewSendPayload(r.ID, "Enter", "by Send")) })
	shutdown(t, r.Sup)
	for how, result := range woken {
		require.ErrorIs(t, testkit.Receive(t, result, how), supervisor.ErrClosed, how)
	}
	v.Gone(t)
	require.Equal(t, map[string]int{"close": 1}, r.Ledger.Counts(t), "what ran")
}

func TestX04RepliesOfAnOldGeneration(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		r := childtest.Start(t, k)
		for range 3 {
			life := r.Child(t, r.ID).Incarnation
			old := []supervisor.SendPayload{r.Send(t, r.ID, "Int", 1), r.Send(t, r.ID, "Int", 2), r.Send(t, r.ID, "Fail", "sentinel")}
			shutdown(t, r.Sup)
			require.Equal(t, 3, r.Sup.Snapshot().Unclaimed, "replies until the next start")
			r.StartLink(t)
			require.Zero(t, r.Sup.Snapshot().Unclaimed, "replies after it")
			again := old[0] // its id is free
			again.Args = []any{3}
			require.NoError(t, r.Sup.Send(r.Ctx, again), "Send under an id of the old generation")
			p, err := r.Sup.Recv(r.Ctx)
			require.NoError(t, err, "Recv")
			require.Equal(t, 3, p.Data, "the only reply")
			require.Greater(t, p.Incarnation, life, "the life that answered")
			_, err = r.Sup.RecvAll(r.Ctx, old)
			require.ErrorIs(t, err, supervisor.ErrNoSuchRequest, "RecvAll of the old generation")
			require.Zero(t, r.Sup.Snapshot().Unclaimed+r.Sup.Snapshot().Open, "what is left")
		}
	})
}

func TestX06ShutdownContextShorterThanTheGrace(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		const limit = 50 * time.Millisecond
		r := childtest.StartTwo(t, k, supervisor.WithName("mule"))
		p := r.Send(t, r.ID, "HoldOn", "forever")
		v := r.Gate.Next(t)
		life := r.Child(t, r.ID)
		began := time.Now()
		ctx, cancel := context.WithTimeout(r.Ctx, limit)
		defer cancel()
		err := r.Sup.Shutdown(ctx)
		shutdownTook(t, time.Since(began), limit)
		require.ErrorIs(t, err, supervisor.ErrTimeout, "Shutdown")
		var stuck *supervisor.StuckError
		require.ErrorAs(t, err, &stuck, "Shutdown")
		require.Equal(t, []any{r.ID, "mule", life.Incarnation, "HoldOn"}, []any{stuck.ProcID, stuck.Name, stuck.Incarnation, stuck.Method}, "who was at work, named first")
		require.ErrorIs(t, r.Recv(t, p).Err, supervisor.ErrClosed, "verdict of what was under way")
		testkit.Closed(t, r.Sup.Done(), "Done")
		if k.Can.Process {
			require.True(t, stuck.Killed, "it is gone: %v", stuck)
			require.NotContains(t, testkit.Children(), life.Pid, "processes")
			v.Gone(t)
		} else {
			v.Release(t, "") // a goroutine is left, and nothing else
		}
	})
}

// What is open at Shutdown is executed within the grace, and what is not gets a verdict that says so.
func TestX07OpenRequestsAtShutdown(t *testing.T) {
	const open = 100
	for _, tt := range []struct {
		name    string
		grace   time.Duration
		release bool // the request that holds up the others ends within the grace
		values  int  // of the requests
	}{
		{"within the grace", testkit.Limit, true, open},
		{"after the grace", 50 * time.Millisecond, false, open / 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eachKind(t, func(t *testing.T, k childtest.Kind) {
				r := childtest.Start(t, k, supervisor.Stop{Grace: tt.grace, TermGrace: testkit.Limit})
				var law testkit.Law
				var reqs []supervisor.SendPayload
				enter := func(n int) {
					for range n {
						p := supervisor.NewSendPayload(r.ID, "Enter", "")
						p.Args[0] = p.ReqID
						reqs = append(reqs, send(t, r.Sup, p)...)
						law.Accept(p.ReqID)
					}
				}
				enter(open / 2)
				held, v := r.Occupy(t, r.ID) // those are done
				enter(open / 2)
				done := make(chan error, 1)
				task.Go(func(context.Context) { done <- r.Sup.Shutdown(r.Ctx) })
				testkit.Until(t, "the supervisor takes no more", func() bool { return !r.Sup.Snapshot().Running })
				if tt.release {
					v.Release(t, "")
				}
				require.NoError(t, testkit.Receive(t, done, "Shutdown"), "Shutdown")
				require.Equal(t, tt.release, r.Recv(t, held).Err == nil, "whether the request in the way was answered")
				replies, err := r.Sup.RecvAll(r.Ctx, reqs, supervisor.IgnoreErr())
				require.NoError(t, err, "RecvAll")
				for i, p := range replies {
					law.Verdict(p.ReqID, childtest.OutcomeOf(p.Err))
					if i < tt.values {
						require.NoError(t, p.Err, "request %d", i)
					} else {
						require.ErrorIs(t, p.Err, supervisor.ErrClosed, "request %d", i)
						require.True(t, childtest.CallErrorOf(t, p.Err, r.ID, "Enter").Unexecuted, "request %d: %v", i, p.Err)
					}
				}
				counts := r.Ledger.Counts(t)
				require.Equal(t, 1, counts["close"], "calls of Close")
				delete(counts, "close")
				law.Check(t, counts)
				require.Len(t, counts, tt.values, "requests that were executed")
			})
		})
	}
}
