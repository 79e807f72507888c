package supervisor_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// The ways in which an object can end its own life, by request.
var fatalWays = []struct {
	method string
	opt    supervisor.Restart
	is     func(t *testing.T, err error) // what the request's own error is
}{
	{"BreakAt", supervisor.Restart{}, func(t *testing.T, err error) {
		t.Helper()
		var remote *supervisor.RemoteError
		require.ErrorAs(t, err, &remote, "the error of the request")
		require.Equal(t, errBrittle.Error(), remote.Text, "its text")
	}},
	{"PanicAt", supervisor.Restart{OnPanic: supervisor.EndLife}, func(t *testing.T, err error) {
		t.Helper()
		var p *supervisor.PanicError
		require.ErrorAs(t, err, &p, "the error of the request")
		require.Equal(t, errBrittle.Error(), p.Value, "its value")
		require.Contains(t, p.Stack, "PanicAt", "its stack")
	}},
}

// The reply comes first; what waits behind is surely not executed; the policy decides what follows.
func TestFatalEndsTheLife(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		for _, way := range fatalWays {
			t.Run(way.method, func(t *testing.T) {
				r := withBrittle(t, kind, 1, supervisor.OneForOne, way.opt)
				before := lives(r.sup)[0]
				require.Equal(t, 1, r.count(t, 0), "calls that the object has counted")
				last, v := r.hold(t, 0, way.method)
				var behind []supervisor.SendPayload
				for range 3 {
					behind = append(behind, send(t, r.sup, supervisor.NewSendPayload(0, "Count"))...)
				}
				require.NoError(t, r.sup.Healthy(), "Healthy: a worker has read what was sent before")
				v.Release(t, "")

				e := r.verdict(t, last)
				require.ErrorIs(t, e, errBrittle, "verdict of the last request")
				way.is(t, e)
				require.False(t, e.Unexecuted, "%v", e)
				require.Equal(t, before, e.Incarnation, "life of %v", e)
				for _, p := range behind {
					e := r.verdict(t, p)
					var exit *supervisor.ExitError
					require.ErrorAs(t, e, &exit, "verdict of a request behind it")
					require.ErrorIs(t, e, errBrittle, "its cause")
					require.True(t, e.Unexecuted, "%v", e)
					require.Equal(t, before, e.Incarnation, "life of %v", e)
				}
				exited := r.seen.Wait(t, supervisor.EventExited)
				require.Equal(t, before, exited.Incarnation, "the life that ended")
				var exit *supervisor.ExitError
				require.ErrorAs(t, exited.Err, &exit, "how")
				require.ErrorIs(t, exited.Err, errBrittle, "why")
				require.Equal(t, kind == supervisor.Process, exit.Pid != 0, "a process in %v", exit)
				require.Equal(t, 1, r.count(t, 0), "calls that the next object has counted")
				require.Equal(t, 1, r.sup.Snapshot().Children[0].Restarts, "restarts by the policy")
				shutdown(t, r.sup)
			})
		}
	})
}

// What runs beside the last request is told by its context, and is not said to be unexecuted.
func TestFatalWithConcurrency(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		for _, way := range fatalWays {
			t.Run(way.method, func(t *testing.T) {
				r := withBrittle(t, kind, 1, supervisor.OneForOne, way.opt, supervisor.WithConcurrency(3))
				var beside []supervisor.SendPayload
				var visitors []*childtest.Visitor
				for range 2 {
					p, v := r.hold(t, 0, "Hold")
					beside, visitors = append(beside, p), append(visitors, v)
				}
				last, v := r.hold(t, 0, way.method)
				behind := send(t, r.sup, supervisor.NewSendPayload(0, "Count"), supervisor.NewSendPayload(0, "Count"))
				require.NoError(t, r.sup.Healthy(), "Healthy: a worker has read what was sent before")
				v.Release(t, "")
				way.is(t, r.verdict(t, last))
				for _, v := range visitors {
					require.NotEmpty(t, v.Left(t), "why the handler beside it has left")
				}
				for _, p := range beside {
					e := r.verdict(t, p)
					require.ErrorIs(t, e, errBrittle, "verdict of a request beside it")
					require.False(t, e.Unexecuted, "%v", e)
				}
				for _, p := range behind {
					e := r.verdict(t, p)
					require.ErrorIs(t, e, errBrittle, "verdict of a request behind it")
					require.True(t, e.Unexecuted, "%v", e)
				}
				require.Equal(t, 1, r.count(t, 0), "calls that the next object has counted")
				shutdown(t, r.sup)
			})
		}
	})
}

// Deaths by Fatal count as deaths: the limit ends them, with the last one as the cause.
func TestFatalReachesTheLimit(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		r := withBrittle(t, kind, 2, supervisor.OneForOne, supervisor.Restart{Type: supervisor.Transient, Max: 2})
		sibling := lives(r.sup)[1]
		for _, why := range []string{"once", "twice", "thrice"} {
			_, err := supervisor.Call[int](testkit.Context(t), r.sup, 0, "Break", why)
			require.ErrorIs(t, err, errBrittle, "Call of Break")
			require.ErrorContains(t, err, why, "Call of Break")
			require.ErrorContains(t, r.seen.Wait(t, supervisor.EventExited).Err, why, "the event of the end")
		}
		given := r.seen.Wait(t, supervisor.EventGivenUp)
		_, err := supervisor.Call[int](context.Background(), r.sup, 0, "Count")
		for name, err := range map[string]error{"event": given.Err, "call": err, "Healthy": r.sup.Healthy()} {
			require.ErrorIs(t, err, supervisor.ErrRestartLimit, name)
			require.ErrorIs(t, err, errBrittle, "%s: the last cause", name)
			require.ErrorContains(t, err, "thrice", "%s: the last cause", name)
		}
		require.Equal(t, sibling, lives(r.sup)[1], "life of the sibling")
		require.NoError(t, r.sup.Restart(testkit.Context(t), 0), "Restart")
		require.Equal(t, 1, r.count(t, 0), "calls of the new object")
		shutdown(t, r.sup)
	})
}

// What is not fatal keeps the object: no error, and a panic by default.
func TestNotFatal(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		require.NoError(t, supervisor.Fatal(nil), "Fatal(nil)")
		require.ErrorIs(t, supervisor.Fatal(errBrittle), errBrittle, "Fatal")
		require.EqualError(t, supervisor.Fatal(errBrittle), errBrittle.Error(), "its text")
		r := withBrittle(t, kind, 1, supervisor.OneForOne)
		life := lives(r.sup)
		require.Equal(t, 1, r.count(t, 0), "calls that the object has counted")
		_, err := supervisor.Call[any](testkit.Context(t), r.sup, 0, "Fine")
		require.NoError(t, err, "Call of Fine")
		p, v := r.hold(t, 0, "PanicAt")
		v.Release(t, "")
		fatalWays[1].is(t, r.verdict(t, p))
		require.Equal(t, 2, r.count(t, 0), "calls that the same object has counted")
		require.Equal(t, life, lives(r.sup), "the life")
		shutdown(t, r.sup)
		require.NotContains(t, r.seen.Kinds(), supervisor.EventExited, "events")
	})
}
