package faulttest_test

// Children that are started and restarted while other things happen.

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

func TestS01RestartWithOpenCalls(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		r := newBreakers(t, k, 1, nil, supervisor.WithConcurrency(8))
		var law testkit.Law
		var reqs []supervisor.SendPayload
		for range 100 {
			p := supervisor.NewSendPayload(0, "EnterAndHold", "")
			p.Args[0] = p.ReqID
			law.Accept(p.ReqID)
			reqs = append(reqs, send(t, r.Sup, p)...)
		}
		for range 8 {
			v := r.Gate.Next(t)
			if v.Name == reqs[2].ReqID || v.Name == reqs[5].ReqID {
				v.Release(t, v.Name)
			}
		}
		require.NoError(t, r.Recv(t, reqs[2]).Err, "a request that is answered before")
		law.Verdict(reqs[2].ReqID, testkit.Value)
		require.NoError(t, r.Sup.Restart(r.Ctx, 0), "Restart")
		got, err := r.Sup.RecvAll(r.Ctx, slices.Delete(slices.Clone(reqs), 2, 3), supervisor.IgnoreErr())
		require.NoError(t, err, "RecvAll")
		for _, p := range got {
			require.Equal(t, r.lives[0].Incarnation, p.Incarnation, "life of the verdict of %s", p.ReqID)
			law.Verdict(p.ReqID, childtest.OutcomeOf(p.Err))
			if p.Err == nil {
				require.Equal(t, p.ReqID, p.Data, "a value is the request's own")
				continue
			}
			require.ErrorIs(t, p.Err, supervisor.ErrRestarted, "verdict of %s", p.ReqID)
		}
		require.Equal(t, os.Getpid() == childtest.CallOf[int](t, r.Rig, 0, "Pid"), !k.Can.Process, "the next life answers")
		counts := r.Ledger.Counts(t)
		delete(counts, "start")
		law.Check(t, counts)
	})
}

// The siblings' side is that of the strategy: alone they notice nothing, together they are restarted as often.
func TestS02RestartStorm(t *testing.T) {
	for _, st := range []supervisor.Strategy{supervisor.OneForOne, supervisor.OneForAll} {
		t.Run(st.String(), func(t *testing.T) {
			eachKind(t, func(t *testing.T, k childtest.Kind) {
				r := newBreakers(t, k, 1, []supervisor.Option{supervisor.WithStrategy(st)})
				ledger := testkit.NewLedger(t)
				job := r.job()
				job.Path, job.Starts = ledger.Path, 1
				storm := register(t, r.Sup, newBreaker.With(job), supervisor.Restart{Max: 3, Within: 5 * time.Second})
				r.breaks(t, storm)
				given := r.Events.Wait(t, supervisor.EventGivenUp)
				_, err := supervisor.Call[int](context.Background(), r.Sup, storm, "Pid")
				for name, err := range map[string]error{"event": given.Err, "call": err, "Healthy": r.Sup.Healthy()} {
					require.ErrorIs(t, err, supervisor.ErrRestartLimit, name)
					require.ErrorIs(t, err, errBreaker, "%s: the last cause", name)
					require.ErrorContains(t, err, "start 4", "%s: the last cause", name)
				}
				require.Equal(t, 4, ledger.Counts(t)["start"], "starts by the ledger")
				sibling := childtest.CallOf[int](t, r.Rig, 0, "Pid") // its last regroup may be under way
				require.Equal(t, k.Can.Process, sibling != os.Getpid(), "a process answers")
				starts := r.Ledger.Counts(t)["start"]
				if st == supervisor.OneForOne {
					require.Equal(t, 1, starts, "starts of the sibling")
				} else {
					require.Greater(t, starts, 1, "starts of the sibling")
				}
				require.NoError(t, r.Sup.Unregister(r.Ctx, storm), "Unregister")
				require.NoError(t, r.Sup.Healthy(), "Healthy")
			})
		})
	}
	t.Run("nothing goes on afterwards", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ledger := testkit.NewLedger(t)
			sup := newSupervisor(t, supervisor.Goroutine)
			register(t, sup, newBreaker.With(breakerJob{Path: ledger.Path, Starts: 1}), supervisor.Restart{Max: 3, Within: 5 * time.Second})
			require.NoError(t, sup.StartLink(context.Background()), "StartLink")
			_, err := supervisor.Call[any](context.Background(), sup, 0, "Break")
			require.ErrorIs(t, err, errBreaker, "Call of Break")
			<-time.After(24 * time.Hour)
			require.Equal(t, 4, ledger.Counts(t)["start"], "starts by the ledger, a day later")
		})
	})
}

func TestS04StuckLifeBesideTheNextOne(t *testing.T) {
	testkit.NoLeaks(t)
	r := newBreakers(t, childtest.Goroutines(), 1, nil, supervisor.Stop{Grace: 20 * time.Millisecond, TermGrace: 20 * time.Millisecond})
	p, v := r.hold(t, 0, "HoldOn")
	require.NoError(t, r.Sup.Restart(r.Ctx, 0), "Restart")
	stuck := r.Events.Wait(t, supervisor.EventStuck)
	var e *supervisor.StuckError
	require.ErrorAs(t, stuck.Err, &e, "the event")
	require.Equal(t, []any{r.lives[0].Incarnation, "HoldOn"}, []any{e.Incarnation, e.Method}, "what is stuck")
	require.Contains(t, e.Stack, "(*breaker).HoldOn", "its stack")
	got := r.Recv(t, p)
	require.ErrorIs(t, got.Err, supervisor.ErrRestarted, "verdict of what is stuck")
	require.Equal(t, r.lives[0].Incarnation, got.Incarnation, "its life")
	require.Equal(t, os.Getpid(), childtest.CallOf[int](t, r.Rig, 0, "Pid"), "the next life answers")
	require.Equal(t, 1, r.Child(t, 0).Stuck, "lives that are stuck")
	v.Release(t, "too late")
	testkit.Until(t, "nothing is stuck any more", func() bool { return r.Child(t, 0).Stuck == 0 })
	late := r.Events.Wait(t, supervisor.EventLateReply)
	require.Equal(t, []any{r.lives[0].Incarnation, "HoldOn"}, []any{late.Incarnation, late.Text}, "the late reply")
	_, err := r.Sup.RecvAll(r.Ctx, []supervisor.SendPayload{p})
	require.ErrorIs(t, err, supervisor.ErrNoSuchRequest, "the late reply goes to nobody")
	shutdown(t, r.Sup)
}

// A file that each life makes, and that must not be there yet, tells two lives at once.
func TestS05ManyRestartsAtOnce(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		r := newBreakers(t, k, 0, nil)
		job := r.job()
		job.Lock = filepath.Join(t.TempDir(), "alive")
		register(t, r.Sup, newBreaker.With(job))
		for round := range times(3, 50) {
			barrier, results := make(chan struct{}), make(chan error, 8)
			for range cap(results) {
				task.Go(func(context.Context) {
					<-barrier
					results <- r.Sup.Restart(r.Ctx, 0)
				})
			}
			close(barrier)
			for range cap(results) {
				require.NoError(t, testkit.Receive(t, results, "Restart"), "Restart in round %d", round)
			}
		}
		starts := r.Ledger.Counts(t)["start"]
		require.GreaterOrEqual(t, starts, 1+times(3, 50), "starts")
		require.LessOrEqual(t, starts, 1+8*times(3, 50), "starts")
		require.NotContains(t, r.Events.Kinds(), supervisor.EventStartFailed, "events")
		shutdown(t, r.Sup)
		require.NoFileExists(t, job.Lock, "the last life was closed")
	})
}

func TestS06RestartRacesShutdown(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		before := testkit.Children()
		r := newBreakers(t, k, 0, nil)
		job := r.job()
		job.Lock = filepath.Join(t.TempDir(), "alive")
		register(t, r.Sup, newBreaker.With(job))
		for round := range times(10, 500) {
			require.NoError(t, r.Sup.StartLink(context.Background()), "StartLink in round %d", round)
			barrier, restarted := make(chan struct{}), make(chan error, 1)
			task.Go(func(context.Context) {
				<-barrier
				restarted <- r.Sup.Restart(r.Ctx, 0)
			})
			close(barrier)
			require.NoError(t, r.Sup.Shutdown(testkit.Context(t)), "Shutdown in round %d", round)
			require.NoFileExists(t, job.Lock, "the life that there was in round %d", round)
			require.Equal(t, before, testkit.Children(), "processes in round %d", round)
			require.Equal(t, supervisor.StateIdle, r.Child(t, 0).State, "state in round %d", round)
			if err := testkit.Receive(t, restarted, "Restart"); err != nil {
				require.ErrorIs(t, err, supervisor.ErrClosed, "Restart in round %d", round)
			}
		}
	})
}
