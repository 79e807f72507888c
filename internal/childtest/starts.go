package childtest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

var startRules = []rule{
	{"a factory that fails says why, and none of the children is left", startFails},
	{"a factory that takes too long ends with its time", startTakesTooLong},
	{"a factory that heeds nothing is left behind", startHangs},
	{"the end of StartLink's ctx ends a start", startCancelled},
	{"a child that is registered later starts at once or is gone", lateStartFails},
	{"a start may be tried again", startAgain},
	{"StartLink may be called by many", startedByMany},
}

// startError checks that err says which child did not start.
func startError(t *testing.T, err error, id int, name string) {
	t.Helper()
	var e *supervisor.StartError
	require.ErrorAs(t, err, &e)
	require.Equal(t, id, e.ProcID, "ProcID of %v", e)
	require.Equal(t, name, e.Name, "Name of %v", e)
	require.NotZero(t, e.Incarnation, "Incarnation of %v", e)
}

func startFails(t *testing.T, k Kind) {
	for _, mode := range []Mode{Fails, Panics, Exits} {
		r := newRig(t, k)
		r.register(t, r.job())
		job := r.job()
		job.Mode = mode
		id := r.register(t, job, supervisor.WithName("broken"))
		var err error
		testkit.Within(t, prompt, func() { err = r.sup.StartLink(r.ctx) })
		startError(t, err, id, "broken")
		require.ErrorContains(t, err, "broken", mode)
		if mode != Exits {
			require.ErrorIs(t, err, ErrSentinel, mode)
		}
		if mode == Fails {
			require.ErrorContains(t, err, "no worker today")
		} else {
			var p *supervisor.PanicError
			require.ErrorAs(t, err, &p, mode)
			require.Contains(t, p.Stack, "NewWorker", "%s: the stack names the factory", mode)
		}
		e := r.events.WaitFor(t, "failure of the start", func(e supervisor.Event) bool {
			return e.Kind == supervisor.EventStartFailed && e.Name == "broken"
		})
		require.Equal(t, id, e.ProcID, mode)
		if slices.Contains(r.events.Kinds(), supervisor.EventStarted) { // the sibling may not have got so far
			require.Equal(t, map[string]int{"close": 1}, r.ledger.Counts(t), "%s: the sibling was closed", mode)
		}
		require.Equal(t, supervisor.StateIdle, r.child(t, 0).State, "%s: the sibling is not left", mode)
		require.ErrorIs(t, r.sup.Send(r.ctx, supervisor.NewSendPayload(0, "Int", 1)), supervisor.ErrClosed, mode)
	}
}

func startTakesTooLong(t *testing.T, k Kind) {
	r := newRig(t, k)
	job := r.job()
	job.Mode = Waits
	id := r.register(t, job, supervisor.WithStartTimeout(100*time.Millisecond))
	began := time.Now()
	err := r.sup.StartLink(r.ctx)
	require.Less(t, time.Since(began), prompt*testkit.Slowdown, "time of the start")
	startError(t, err, id, "")
	require.ErrorIs(t, err, supervisor.ErrTimeout)
}

func startHangs(t *testing.T, k Kind) {
	r := newRig(t, k)
	job := r.job()
	job.Mode = Hangs
	limit := 100 * time.Millisecond
	if k.Can.Process {
		limit = time.Second * testkit.Slowdown // enough to get as far as the factory
	}
	id := r.register(t, job, supervisor.WithStartTimeout(limit))
	began := time.Now()
	err := r.sup.StartLink(r.ctx)
	require.Less(t, time.Since(began), limit+prompt*testkit.Slowdown, "time of the start")
	startError(t, err, id, "")
	require.ErrorIs(t, err, supervisor.ErrTimeout)
	v := r.gate.next(t)
	if k.Can.Process {
		v.gone(t) // with its process
		return
	}
	var stuck *supervisor.StuckError
	require.ErrorAs(t, err, &stuck, "a goroutine cannot be ended")
	require.Equal(t, "Factory", stuck.Method)
	v.release(t, "")
	testkit.Until(t, "the object that came up late is closed", func() bool { return r.ledger.Counts(t)["close"] == 1 })
}

func startCancelled(t *testing.T, k Kind) {
	r := newRig(t, k)
	r.register(t, r.job())
	job := r.job()
	job.Mode = Waits
	r.register(t, job)
	ctx, cancel := context.WithCancelCause(r.ctx)
	starting := make(chan error, 1)
	task.Go(func(context.Context) { starting <- r.sup.StartLink(ctx) })
	r.events.Wait(t, supervisor.EventStarted) // the other one waits by now
	cancel(errors.New("changed my mind"))
	err := testkit.Receive(t, starting, "StartLink, whose ctx has ended")
	require.ErrorIs(t, err, supervisor.ErrCanceled)
	testkit.Closed(t, r.sup.Done(), "the generation")
	require.ErrorContains(t, r.sup.Err(), "changed my mind")
	require.Equal(t, 1, r.ledger.Counts(t)["close"], "the child that was up was closed")
}

func lateStartFails(t *testing.T, k Kind) {
	r := start(t, k)
	job := r.job()
	job.Mode = Fails
	id, err := k.Register(r.ctx, r.sup, job, supervisor.WithName("late"))
	require.ErrorIs(t, err, ErrSentinel)
	require.Equal(t, -1, id)
	startError(t, err, r.id+1, "late")
	require.ErrorIs(t, r.sup.Send(r.ctx, supervisor.NewSendPayload(r.id+1, "Int", 1)), supervisor.ErrNoSuchChild)
	job.Mode = Waits
	ctx, cancel := context.WithTimeout(r.ctx, 100*time.Millisecond)
	defer cancel()
	_, err = k.Register(ctx, r.sup, job)
	require.ErrorIs(t, err, supervisor.ErrTimeout, "Register, whose ctx ends first")
	r.fine(t, r.id)
	require.Len(t, r.sup.Snapshot().Children, 1)
	require.NoError(t, r.sup.Healthy())
}

func startAgain(t *testing.T, k Kind) {
	r := newRig(t, k)
	job := r.job()
	job.Mode = Fails
	bad := r.register(t, job)
	good := r.register(t, r.job())
	require.ErrorIs(t, r.sup.StartLink(r.ctx), ErrSentinel)
	require.ErrorIs(t, r.sup.Unregister(r.ctx, bad+9), supervisor.ErrNoSuchChild)
	require.NoError(t, r.sup.Unregister(r.ctx, bad))
	r.startLink(t)
	r.fine(t, good)
	require.ErrorIs(t, r.sup.Send(r.ctx, supervisor.NewSendPayload(bad, "Int", 1)), supervisor.ErrNoSuchChild)
}

func startedByMany(t *testing.T, k Kind) {
	r := newRig(t, k)
	r.id = r.register(t, r.job())
	results := make(chan error, 8)
	for range cap(results) {
		task.Go(func(context.Context) { results <- r.sup.StartLink(r.ctx) })
	}
	for range cap(results) {
		require.NoError(t, testkit.Receive(t, results, "StartLink"))
	}
	r.startLink(t)
	r.fine(t, r.id)
	require.NoError(t, r.sup.Shutdown(r.ctx))
	r.events.Wait(t, supervisor.EventStarted)
	for _, kind := range r.events.Kinds()[1:] {
		require.NotEqual(t, supervisor.EventStarted, kind, "one life, whoever starts it")
	}
}
