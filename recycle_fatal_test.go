package supervisor_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

// wearsOut is a brittle child whose every life has had enough after one request, and whose panics are fatal.
func wearsOut(t *testing.T, kind supervisor.ChildType, rolling bool, policy supervisor.Restart) *brittleRig {
	t.Helper()
	policy.OnPanic = supervisor.EndLife
	return withBrittle(t, kind, 1, supervisor.OneForOne, policy, supervisor.Recycle{MaxRequests: 1, Rolling: rolling})
}

// collapse sends the request that wears out the present life, and kills it, by an error or a panic.
func (r *brittleRig) collapse(t *testing.T, method string) {
	t.Helper()
	r.seen.Wait(t, supervisor.EventStarted)
	p, v := r.hold(t, 0, method)
	v.Release(t, "")
	require.ErrorIs(t, r.verdict(t, p), errBrittle, "verdict of %s", method)
}

// requireNothingRecycled asserts that no end was taken for a planned one.
func (r *brittleRig) requireNothingRecycled(t *testing.T) {
	t.Helper()
	require.Zero(t, r.sup.Snapshot().Children[0].Recycled, "lives recycled")
	shutdown(t, r.sup)
	require.NotContains(t, r.seen.Kinds(), supervisor.EventRecycled, "events:\n%s", r.seen)
}

// A life that fails in the very request that wears it out has died: a Temporary child stays ended.
func TestFatalInTheLastRequestOfATemporaryChild(t *testing.T) {
	for _, method := range []string{"BreakAt", "PanicAt"} {
		t.Run(method, func(t *testing.T) {
			eachRecycling(t, func(t *testing.T, kind supervisor.ChildType, rolling bool) {
				r := wearsOut(t, kind, rolling, supervisor.Restart{Type: supervisor.Temporary})
				r.collapse(t, method)
				require.ErrorIs(t, r.seen.Wait(t, supervisor.EventExited).Err, errBrittle, "how the life ended")
				require.ErrorIs(t, r.seen.Wait(t, supervisor.EventGivenUp).Err, errBrittle, "why the child does not come back")
				require.Equal(t, supervisor.StateEnded, r.sup.Snapshot().Children[0].State, "state")
				p := supervisor.NewSendPayload(0, "Count")
				requireRefused(t, r.sup.Send(testkit.Context(t), p), supervisor.ErrClosed, p)
				r.requireNothingRecycled(t)
			})
		})
	}
}

// Each such death counts, so that a child that does nothing else is given up.
func TestFatalInTheLastRequestReachesTheLimit(t *testing.T) {
	for _, method := range []string{"BreakAt", "PanicAt"} {
		t.Run(method, func(t *testing.T) {
			eachRecycling(t, func(t *testing.T, kind supervisor.ChildType, rolling bool) {
				r := wearsOut(t, kind, rolling, supervisor.Restart{Max: 2, Within: time.Hour, Backoff: supervisor.Backoff{Min: time.Millisecond}})
				for range 3 {
					r.collapse(t, method)
				}
				given := r.seen.Wait(t, supervisor.EventGivenUp)
				require.ErrorIs(t, given.Err, supervisor.ErrRestartLimit, "why the child was given up")
				require.ErrorIs(t, given.Err, errBrittle, "the last cause is beside it")
				require.Equal(t, 2, r.sup.Snapshot().Children[0].Restarts, "restarts by the policy")
				require.Len(t, r.ran(supervisor.EventExited, 0), 3, "deaths:\n%s", r.seen)
				r.requireNothingRecycled(t)
			})
		})
	}
}

// The supervisor's own questions do not wear a life out: it has had as many requests as its callers have sent.
func TestSnapshotsDoNotWearOut(t *testing.T) {
	eachRecycling(t, func(t *testing.T, kind supervisor.ChildType, rolling bool) {
		const most = 5 // too few to be lowered at random
		r := childtest.Start(t, kindOf(t, kind), supervisor.Recycle{MaxRequests: most, Rolling: rolling})
		look := func() {
			for range 3 * most {
				testkit.Until(t, "the object is asked", func() bool { return r.Child(t, r.ID).Object != nil })
			}
		}
		look()
		first := lifeOf(t, r)
		for n := range most - 1 {
			look()
			require.Equal(t, first, r.Child(t, r.ID).Incarnation, "the life that is up after %d requests", n+1)
			if n < most-2 {
				require.Equal(t, first, lifeOf(t, r), "the life that answers request %d", n+2)
			}
		}
		require.NotContains(t, r.Events.Kinds(), supervisor.EventRecycled, "events before the last request:\n%s", r.Events)
		require.Equal(t, first, lifeOf(t, r), "the life that answers the last request")
		require.Equal(t, first, r.Events.Wait(t, supervisor.EventRecycled).Incarnation, "the life that was recycled")
		require.Greater(t, lifeOf(t, r), first, "the life that serves now")
		requireNoCrash(t, r)
	})
}

// newTardy makes brittle objects at the gate, in the time that its context gives it.
var newTardy = supervisor.DefineWith("supervisor_test.tardy", func(ctx context.Context, gate string) (*brittle, error) {
	if _, err := childtest.WaitAt(ctx, gate, "factory"); err != nil {
		return nil, err
	}
	return &brittle{gate: gate}, nil
})

// tardyRolling is a child whose first life has a request open that heeds nothing, and is worn out; its successor's factory
// is at the gate.
func tardyRolling(t *testing.T, kind supervisor.ChildType) (r *brittleRig, open supervisor.SendPayload, deaf, factory *childtest.Visitor) {
	t.Helper()
	r = &brittleRig{gate: childtest.NewGate(t), seen: newRecorder()}
	r.sup = newSupervisor(t, kind, supervisor.WithEvents(r.seen.Record))
	register(t, r.sup, newTardy.With(r.gate.Address), supervisor.Recycle{MaxRequests: 1, Rolling: true},
		supervisor.WithConcurrency(2), supervisor.WithStartTimeout(time.Hour), supervisor.Stop{Grace: 50 * time.Millisecond, TermGrace: 50 * time.Millisecond})
	starting := task.Go(func(context.Context) { require.NoError(t, r.sup.StartLink(context.Background()), "StartLink") })
	r.gate.Next(t).Release(t, "")
	starting.Wait()
	open = send(t, r.sup, supervisor.NewSendPayload(0, "BreakAt", "deaf"))[0]
	for range 2 {
		if v := r.gate.Next(t); v.Name == "deaf" {
			deaf = v
		} else {
			factory = v
		}
	}
	require.NotNil(t, deaf, "the handler at the gate")
	require.NotNil(t, factory, "the successor's factory at the gate")
	return r, open, deaf, factory
}

// The verdicts of a life that crashes do not wait for its successor, whose start is called off.
func TestCrashWhileTheSuccessorStarts(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		crashes := map[string]func(t *testing.T, r *brittleRig){
			"fatal": func(t *testing.T, r *brittleRig) {
				t.Helper()
				p, v := r.hold(t, 0, "BreakAt")
				v.Release(t, "")
				require.ErrorIs(t, r.verdict(t, p), errBrittle, "verdict of the request that breaks the life")
			},
		}
		if kind == supervisor.Process {
			crashes["kill"] = func(t *testing.T, r *brittleRig) { t.Helper(); childtest.KillProcess(t, r.sup, 0) }
		}
		for name, crash := range crashes {
			t.Run(name, func(t *testing.T) {
				testkit.NoLeaks(t)
				r, open, deaf, factory := tardyRolling(t, kind)
				before := lives(r.sup)[0]
				crash(t, r)
				verdict := r.verdict(t, open) // while nobody lets the factory go
				require.Equal(t, before, verdict.Incarnation, "life of %v", verdict)
				require.False(t, verdict.Unexecuted, "%v", verdict)
				if kind == supervisor.Goroutine {
					require.Contains(t, factory.Left(t), "the life that it was to follow has ended", "why the factory's context ended")
				} else {
					factory.Gone(t)
				}
				r.gate.Next(t).Release(t, "") // the factory of the life that comes by the policy
				require.Equal(t, 1, r.count(t, 0), "calls that the next object has counted")
				c := r.sup.Snapshot().Children[0]
				require.Equal(t, []int{1, 0}, []int{c.Restarts, c.Recycled}, "restarts by the policy, and lives recycled")
				require.NotContains(t, r.seen.Kinds(), supervisor.EventStartFailed, "events: who calls a start off knows:\n%s", r.seen)
				if kind == supervisor.Goroutine {
					deaf.Release(t, "")
				}
			})
		}
	})
}
