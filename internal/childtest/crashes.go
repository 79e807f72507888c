package childtest

import (
	"context"
	"errors"
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
func (r *rig) crash(t *testing.T, id int) supervisor.Event {
	t.Helper()
	life := r.child(t, id).Incarnation
	r.kind.Kill(t, r.sup, id)
	return r.events.WaitFor(t, "end of the life", func(e supervisor.Event) bool {
		return e.Kind == supervisor.EventExited && e.Incarnation == life
	})
}

func permanentReturns(t *testing.T, k Kind) {
	if !mayCrash(t, k) {
		return
	}
	r := start(t, k, supervisor.Restart{Type: supervisor.Permanent})
	call[int](t, r, r.id, "Add", 5)
	before := r.child(t, r.id)
	require.Error(t, r.crash(t, r.id).Err, "the event says how")
	require.NoError(t, r.sup.Healthy(), "a child that comes back")
	require.Equal(t, 11, call[int](t, r, r.id, "Add", 1), "a fresh object")
	after := r.child(t, r.id)
	require.Greater(t, after.Incarnation, before.Incarnation)
	require.Equal(t, 1, after.Restarts)
	require.NotEmpty(t, after.LastExit)
	require.Zero(t, r.events.Wait(t, supervisor.EventRestarting).N, "the first restart is at once")
	require.Empty(t, r.ledger.Counts(t), "a crash runs no Close")
}

func temporaryStays(t *testing.T, k Kind) {
	if !mayCrash(t, k) {
		return
	}
	r := start(t, k, supervisor.Restart{Type: supervisor.Temporary}, supervisor.WithName("mayfly"))
	how := r.crash(t, r.id).Err
	require.Error(t, how)
	require.Equal(t, r.id, r.events.Wait(t, supervisor.EventGivenUp).ProcID)
	testkit.Within(t, prompt, func() {
		_, err := supervisor.Call[int](r.ctx, r.sup, r.id, "Int", 1)
		require.EqualError(t, callError(t, err, r.id, "Int").Err, how.Error(), "the reason is how it ended")
		require.True(t, callError(t, err, r.id, "Int").Unexecuted, "%v", err)
		require.NotErrorIs(t, err, supervisor.ErrRestartLimit)
	})
	require.ErrorContains(t, r.sup.Healthy(), "mayfly")
	require.Equal(t, supervisor.StateEnded, r.child(t, r.id).State)
	require.NoError(t, r.sup.Restart(r.ctx, r.id))
	require.NoError(t, r.sup.Healthy())
	r.fine(t, r.id)
	r.crash(t, r.id)
	r.events.Wait(t, supervisor.EventGivenUp)
	require.NoError(t, r.sup.Shutdown(r.ctx), "with a child that has ended")
	r.startLink(t)
	r.fine(t, r.id)
}

func crashIsVerdict(t *testing.T, k Kind) {
	if !mayCrash(t, k) {
		return
	}
	r := start(t, k)
	life := r.child(t, r.id)
	held, v := r.occupy(t, r.id)
	queued := r.send(t, r.id, "Enter", "executed")
	how := r.crash(t, r.id).Err
	for _, p := range []supervisor.SendPayload{held, queued} {
		var got supervisor.RecvPayload
		testkit.Within(t, prompt, func() { got = r.recv(t, p) })
		e := callError(t, got.Err, r.id, p.Method)
		require.Equal(t, how.Error(), e.Err.Error(), "reason of %s", p.Method)
		require.Equal(t, life.Incarnation, e.Incarnation)
		require.False(t, e.Unexecuted, "a crash says unknown: %v", e)
		if k.Can.Process {
			var exit *supervisor.ExitError
			require.ErrorAs(t, got.Err, &exit)
			require.Equal(t, life.Pid, exit.Pid)
		}
	}
	v.gone(t)
	r.fine(t, r.id)
	require.Zero(t, r.ledger.Counts(t)["executed"], "the next life does not execute it")
}

func crashAlone(t *testing.T, k Kind) {
	if !mayCrash(t, k) {
		return
	}
	r := startTwo(t, k)
	life := r.child(t, r.other).Incarnation
	held, v := r.occupy(t, r.other)
	r.crash(t, r.id)
	v.release(t, "undisturbed")
	require.Equal(t, "undisturbed", r.recv(t, held).Data)
	require.Equal(t, life, r.child(t, r.other).Incarnation)
	r.fine(t, r.id)
}

func restartLimit(t *testing.T, k Kind) {
	if !mayCrash(t, k) {
		return
	}
	r := newRig(t, k)
	job := r.job()
	job.Mode = WorksOnce
	r.id = r.register(t, job)
	r.startLink(t)
	began := time.Now()
	r.crash(t, r.id) // each further start fails
	e := r.events.Wait(t, supervisor.EventGivenUp)
	require.ErrorIs(t, e.Err, supervisor.ErrRestartLimit)
	require.ErrorIs(t, e.Err, ErrSentinel, "the last cause is kept")
	require.Less(t, time.Since(began), testkit.Limit/2, "time until it is given up")
	failures := 0
	for _, kind := range r.events.Kinds() {
		if kind == supervisor.EventStartFailed {
			failures++
		}
	}
	require.Equal(t, 5, failures, "restarts within ten seconds")
	_, err := supervisor.Call[int](r.ctx, r.sup, r.id, "Int", 1)
	require.ErrorIs(t, err, supervisor.ErrRestartLimit)
	require.ErrorIs(t, r.sup.Healthy(), supervisor.ErrRestartLimit)
}

func sendBetweenLives(t *testing.T, k Kind) {
	if !mayCrash(t, k) {
		return
	}
	r := start(t, k)
	var err error
	for crashes := 0; crashes < 4 && !errors.Is(err, supervisor.ErrBusy); crashes++ { // each restart but the first is delayed more
		r.crash(t, r.nextLife(t))
		err = r.sup.TrySend(supervisor.NewSendPayload(r.id, "Int", 1))
	}
	require.ErrorIs(t, err, supervisor.ErrBusy, "TrySend between two lives")
	p := r.send(t, r.id, "Int", 2)
	require.Equal(t, 2, r.recv(t, p).Data)
}

// nextLife waits until the child is up again and returns its id.
func (r *rig) nextLife(t *testing.T) int {
	t.Helper()
	testkit.Until(t, "the next life is up", func() bool { return r.child(t, r.id).State == supervisor.StateUp })
	return r.id
}

func conservationInCrash(t *testing.T, k Kind) {
	if !mayCrash(t, k) {
		return
	}
	r := start(t, k)
	var law testkit.Law
	var senders []*task.Task
	for range 4 {
		senders = append(senders, task.Go(func(context.Context) {
			for range 60 {
				p := supervisor.NewSendPayload(r.id, "Enter", "")
				p.Args[0] = p.ReqID
				got, err := r.sup.Do(r.ctx, p)
				law.Accept(p.ReqID)
				law.Verdict(got.ReqID, outcome(err))
			}
		}))
	}
	for range 2 {
		r.crash(t, r.nextLife(t))
	}
	for _, s := range senders {
		s.Wait()
	}
	law.Check(t, r.ledger.Counts(t))
}
