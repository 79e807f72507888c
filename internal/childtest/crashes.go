package childtest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

// The lives of kinds without a Kill end only when they are told to; for those there is nothing to check, but that they
// have nothing that could crash: a handler's worst is a panic, which is a reply.
var crashRules = []rule{
	{"a permanent child comes back", permanentReturns},
	{"a temporary child stays away until Restart", temporaryStays},
	{"a crash is the verdict of what was open", crashIsVerdict},
	{"a crash disturbs no sibling", crashAlone},
	{"a child that dies too often is given up", restartLimit},
	{"Send waits for the next life", sendBetweenLives},
	{"each request gets one verdict, and no crash executes it again", conservationInCrash},
}

// mayCrash reports whether lives of the kind can crash; otherwise it checks that a handler's worst ends none.
func mayCrash(t *testing.T, k Kind) bool {
	t.Helper()
	if k.Kill != nil {
		return true
	}
	panicIsError(t, k)
	return false
}

// crash kills a child's life and returns the event of its end.
func (r *Rig) crash(t *testing.T, id int) supervisor.Event {
	t.Helper()
	life := r.Child(t, id).Incarnation
	r.Kind.Kill(t, r.Sup, id)
	return r.Events.WaitFor(t, "end of the life", func(e supervisor.Event) bool {
		return e.Kind == supervisor.EventExited && e.Incarnation == life
	})
}

func permanentReturns(t *testing.T, k Kind) {
	if !mayCrash(t, k) {
		return
	}
	r := Start(t, k, supervisor.Restart{Type: supervisor.Permanent})
	CallOf[int](t, r, r.ID, "Add", 5)
	before := r.Child(t, r.ID)
	require.Error(t, r.crash(t, r.ID).Err, "the event says how")
	require.NoError(t, r.Sup.Healthy(), "a child that comes back")
	require.Equal(t, 11, CallOf[int](t, r, r.ID, "Add", 1), "a fresh object")
	after := r.Child(t, r.ID)
	require.Greater(t, after.Incarnation, before.Incarnation)
	require.Equal(t, 1, after.Restarts)
	require.NotEmpty(t, after.LastExit)
	require.Zero(t, r.Events.Wait(t, supervisor.EventRestarting).N, "the first restart is at once")
	require.Empty(t, r.Ledger.Counts(t), "a crash runs no Close")
}

func temporaryStays(t *testing.T, k Kind) {
	if !mayCrash(t, k) {
		return
	}
	r := Start(t, k, supervisor.Restart{Type: supervisor.Temporary}, supervisor.WithName("mayfly"))
	how := r.crash(t, r.ID).Err
	require.Error(t, how)
	require.Equal(t, r.ID, r.Events.Wait(t, supervisor.EventGivenUp).ProcID)
	testkit.Within(t, prompt, func() {
		_, err := supervisor.Call[int](r.Ctx, r.Sup, r.ID, "Int", 1)
		refusal := CallErrorOf(t, err, r.ID, "Int").Err
		require.ErrorIs(t, refusal, supervisor.ErrClosed, "it will not come back")
		require.EqualError(t, refusal, "supervisor: closed: "+strings.TrimPrefix(how.Error(), "supervisor: "), "the reason is how it ended")
		require.True(t, CallErrorOf(t, err, r.ID, "Int").Unexecuted, "%v", err)
		require.NotErrorIs(t, err, supervisor.ErrRestartLimit)
	})
	require.ErrorContains(t, r.Sup.Healthy(), "mayfly")
	require.Equal(t, supervisor.StateEnded, r.Child(t, r.ID).State)
	require.NoError(t, r.Sup.Restart(r.Ctx, r.ID))
	require.NoError(t, r.Sup.Healthy())
	r.Fine(t, r.ID)
	r.crash(t, r.ID)
	r.Events.Wait(t, supervisor.EventGivenUp)
	require.NoError(t, r.Sup.Shutdown(r.Ctx), "with a child that has ended")
	r.StartLink(t)
	r.Fine(t, r.ID)
}

func crashIsVerdict(t *testing.T, k Kind) {
	if !mayCrash(t, k) {
		return
	}
	r := Start(t, k)
	life := r.Child(t, r.ID)
	held, v := r.Occupy(t, r.ID)
	queued := r.Send(t, r.ID, "Enter", "executed")
	how := r.crash(t, r.ID).Err
	for _, p := range []supervisor.SendPayload{held, queued} {
		var got supervisor.RecvPayload
		testkit.Within(t, prompt, func() { got = r.Recv(t, p) })
		e := CallErrorOf(t, got.Err, r.ID, p.Method)
		require.Equal(t, how.Error(), e.Err.Error(), "reason of %s", p.Method)
		require.Equal(t, life.Incarnation, e.Incarnation)
		require.False(t, e.Unexecuted, "a crash says unknown: %v", e)
		if k.Can.Process {
			var exit *supervisor.ExitError
			require.ErrorAs(t, got.Err, &exit)
			require.Equal(t, life.Pid, exit.Pid)
		}
	}
	v.Gone(t)
	r.Fine(t, r.ID)
	require.Zero(t, r.Ledger.Counts(t)["executed"], "the next life does not execute it")
}

func crashAlone(t *testing.T, k Kind) {
	if !mayCrash(t, k) {
		return
	}
	r := StartTwo(t, k)
	life := r.Child(t, r.Other).Incarnation
	held, v := r.Occupy(t, r.Other)
	r.crash(t, r.ID)
	v.Release(t, "undisturbed")
	require.Equal(t, "undisturbed", r.Recv(t, held).Data)
	require.Equal(t, life, r.Child(t, r.Other).Incarnation)
	r.Fine(t, r.ID)
}

func restartLimit(t *testing.T, k Kind) {
	if !mayCrash(t, k) {
		return
	}
	r := NewRig(t, k)
	job := r.Job()
	job.Mode = WorksOnce
	r.ID = r.Register(t, job)
	r.StartLink(t)
	began := time.Now()
	r.crash(t, r.ID) // each further start fails
	e := r.Events.Wait(t, supervisor.EventGivenUp)
	require.ErrorIs(t, e.Err, supervisor.ErrRestartLimit)
	require.ErrorIs(t, e.Err, ErrSentinel, "the last cause is kept")
	require.Less(t, time.Since(began), testkit.Limit/2, "time until it is given up")
	failures := 0
	for _, kind := range r.Events.Kinds() {
		if kind == supervisor.EventStartFailed {
			failures++
		}
	}
	require.Equal(t, 5, failures, "restarts within ten seconds")
	_, err := supervisor.Call[int](r.Ctx, r.Sup, r.ID, "Int", 1)
	require.ErrorIs(t, err, supervisor.ErrRestartLimit)
	require.ErrorIs(t, r.Sup.Healthy(), supervisor.ErrRestartLimit)
}

func sendBetweenLives(t *testing.T, k Kind) {
	if !mayCrash(t, k) {
		return
	}
	r := Start(t, k)
	var err error
	for crashes := 0; crashes < 4 && !errors.Is(err, supervisor.ErrBusy); crashes++ { // each restart but the first is delayed more
		r.crash(t, r.nextLife(t))
		err = r.Sup.TrySend(supervisor.NewSendPayload(r.ID, "Int", 1))
	}
	require.ErrorIs(t, err, supervisor.ErrBusy, "TrySend between two lives")
	p := r.Send(t, r.ID, "Int", 2)
	require.Equal(t, 2, r.Recv(t, p).Data)
}

// nextLife waits until the child is up again and returns its id.
func (r *Rig) nextLife(t *testing.T) int {
	t.Helper()
	testkit.Until(t, "the next life is up", func() bool { return r.Child(t, r.ID).State == supervisor.StateUp })
	return r.ID
}

func conservationInCrash(t *testing.T, k Kind) {
	if !mayCrash(t, k) {
		return
	}
	r := Start(t, k)
	var law testkit.Law
	var senders []*task.Task
	for range 4 {
		senders = append(senders, task.Go(func(context.Context) {
			for range 60 {
				p := supervisor.NewSendPayload(r.ID, "Enter", "")
				p.Args[0] = p.ReqID
				got, err := r.Sup.Do(r.Ctx, p)
				law.Accept(p.ReqID)
				law.Verdict(got.ReqID, OutcomeOf(err))
			}
		}))
	}
	for range 2 {
		r.crash(t, r.nextLife(t))
	}
	for _, s := range senders {
		s.Wait()
	}
	law.Check(t, r.Ledger.Counts(t))
}
