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
		r := NewRig(t, k)
		r.Register(t, r.Job())
		job := r.Job()
		job.Mode = mode
		id := r.Register(t, job, supervisor.WithName("broken"))
		var err error
		testkit.Within(t, prompt, func() { err = r.Sup.StartLink(r.Ctx) })
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
		e := r.Events.WaitFor(t, "failure of the start", func(e supervisor.Event) bool {
			return e.Kind == supervisor.EventStartFailed && e.Name == "broken"
		})
		require.Equal(t, id, e.ProcID, mode)
		if slices.Contains(r.Events.Kinds(), supervisor.EventStarted) { // the sibling may not have got so far
			require.Equal(t, map[string]int{"close": 1}, r.Ledger.Counts(t), "%s: the sibling was closed", mode)
		}
		require.Equal(t, supervisor.StateIdle, r.Child(t, 0).State, "%s: the sibling is not left", mode)
		require.ErrorIs(t, r.Sup.Send(r.Ctx, supervisor.NewSendPayload(0, "Int", 1)), supervisor.ErrClosed, mode)
	}
}

func startTakesTooLong(t *testing.T, k Kind) {
	r := NewRig(t, k)
	job := r.Job()
	job.Mode = Waits
	id := r.Register(t, job, supervisor.WithStartTimeout(100*time.Millisecond))
	began := time.Now()
	err := r.Sup.StartLink(r.Ctx)
	require.Less(t, time.Since(began), prompt*testkit.Slowdown, "time of the start")
	startError(t, err, id, "")
	require.ErrorIs(t, err, supervisor.ErrTimeout)
}

func startHangs(t *testing.T, k Kind) {
	r := NewRig(t, k)
	job := r.Job()
	job.Mode = Hangs
	limit := 100 * time.Millisecond
	if k.Can.Process {
		limit = time.Second * testkit.Slowdown // enough to get as far as the factory
	}
	id := r.Register(t, job, supervisor.WithStartTimeout(limit))
	began := time.Now()
	err := r.Sup.StartLink(r.Ctx)
	require.Less(t, time.Since(began), limit+prompt*testkit.Slowdown, "time of the start")
	startError(t, err, id, "")
	require.ErrorIs(t, err, supervisor.ErrTimeout)
	v := r.Gate.Next(t)
	if k.Can.Process {
		v.Gone(t) // with its process
		return
	}
	var stuck *supervisor.StuckError
	require.ErrorAs(t, err, &stuck, "a goroutine cannot be ended")
	require.Equal(t, "Factory", stuck.Method)
	v.Release(t, "")
	testkit.Until(t, "the object that came up late is closed", func() bool { return r.Ledger.Counts(t)["close"] == 1 })
}

func startCancelled(t *testing.T, k Kind) {
	r := NewRig(t, k)
	r.Register(t, r.Job())
	job := r.Job()
	job.Mode = Waits
	r.Register(t, job)
	ctx, cancel := context.WithCancelCause(r.Ctx)
	starting := make(chan error, 1)
	task.Go(func(context.Context) { starting <- r.Sup.StartLink(ctx) })
	r.Events.Wait(t, supervisor.EventStarted) // the other one waits by now
	cancel(errors.New("changed my mind"))
	err := testkit.Receive(t, starting, "StartLink, whose ctx has ended")
	require.ErrorIs(t, err, supervisor.ErrCanceled)
	testkit.Closed(t, r.Sup.Done(), "the generation")
	require.ErrorContains(t, r.Sup.Err(), "changed my mind")
	require.Equal(t, 1, r.Ledger.Counts(t)["close"], "the child that was up was closed")
}

func lateStartFails(t *testing.T, k Kind) {
	r := Start(t, k)
	job := r.Job()
	job.Mode = Fails
	id, err := k.Register(r.Ctx, r.Sup, job, supervisor.WithName("late"))
	require.ErrorIs(t, err, ErrSentinel)
	require.Equal(t, -1, id)
	startError(t, err, r.ID+1, "late")
	require.ErrorIs(t, r.Sup.Send(r.Ctx, supervisor.NewSendPayload(r.ID+1, "Int", 1)), supervisor.ErrNoSuchChild)
	job.Mode = Waits
	ctx, cancel := context.WithTimeout(r.Ctx, 100*time.Millisecond)
	defer cancel()
	_, err = k.Register(ctx, r.Sup, job)
	require.ErrorIs(t, err, supervisor.ErrTimeout, "Register, whose ctx ends first")
	r.Fine(t, r.ID)
	require.Len(t, r.Sup.Snapshot().Children, 1)
	require.NoError(t, r.Sup.Healthy())
}

func startAgain(t *testing.T, k Kind) {
	r := NewRig(t, k)
	job := r.Job()
	job.Mode = Fails
	bad := r.Register(t, job)
	good := r.Register(t, r.Job())
	require.ErrorIs(t, r.Sup.StartLink(r.Ctx), ErrSentinel)
	require.ErrorIs(t, r.Sup.Unregister(r.Ctx, bad+9), supervisor.ErrNoSuchChild)
	require.NoError(t, r.Sup.Unregister(r.Ctx, bad))
	r.StartLink(t)
	r.Fine(t, good)
	require.ErrorIs(t, r.Sup.Send(r.Ctx, supervisor.NewSendPayload(bad, "Int", 1)), supervisor.ErrNoSuchChild)
}

func startedByMany(t *testing.T, k Kind) {
	r := NewRig(t, k)
	r.ID = r.Register(t, r.Job())
	results := make(chan error, 8)
	for range cap(results) {
		task.Go(func(context.Context) { results <- r.Sup.StartLink(r.Ctx) })
	}
	for range cap(results) {
		require.NoError(t, testkit.Receive(t, results, "StartLink"))
	}
	r.StartLink(t)
	r.Fine(t, r.ID)
	require.NoError(t, r.Sup.Shutdown(r.Ctx))
	r.Events.Wait(t, supervisor.EventStarted)
	for _, kind := range r.Events.Kinds()[1:] {
		require.NotEqual(t, supervisor.EventStarted, kind, "one life, whoever starts it")
	}
}
