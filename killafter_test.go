package supervisor_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// leashed is a request with a KillAfter.
func leashed(child int, killAfter time.Duration, method string, args ...any) supervisor.SendPayload {
	p := supervisor.NewSendPayload(child, method, args...)
	p.KillAfter = killAfter
	return p
}

// shortStop ends deaf lives soon.
var shortStop = supervisor.Stop{TermGrace: 50 * time.Millisecond}

// requireOutrun checks the verdict of a request that outran its KillAfter, and returns how the life ended.
func requireOutrun(t *testing.T, err error, was supervisor.ChildSnapshot, method string) *supervisor.ExitError {
	t.Helper()
	require.ErrorIs(t, err, supervisor.ErrTimeout, "verdict of %s", method)
	call := childtest.CallErrorOf(t, err, was.ProcID, method)
	require.False(t, call.Unexecuted, "Unexecuted of %v", err)
	require.Equal(t, was.Incarnation, call.Incarnation, "life in %v", err)
	var exit *supervisor.ExitError
	require.ErrorAs(t, err, &exit, "how the life ended")
	require.Equal(t, was.Pid, exit.Pid, "process of the life that ended")
	require.ErrorContains(t, exit.Err, method+" ran for longer than its KillAfter", "why the life ended")
	require.Contains(t, exit.Trace, "(*sickly)."+method, "stacks in the error")
	return exit
}

func TestKillAfterEndsHandlers(t *testing.T) {
	for _, tt := range []struct {
		method string
		heeds  bool
		stop   supervisor.Stop
	}{
		{"Heed", true, supervisor.Stop{TermGrace: testkit.Limit}},
		{"Spin", false, shortStop},
		{"Lock", false, shortStop},
	} {
		t.Run(tt.method, func(t *testing.T) {
			eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
				r := startSickly(t, kind, tt.stop, supervisor.WithName("ada"))
				was := echoes(t, r)
				const limit = 100 * time.Millisecond
				began := time.Now()
				p := leashed(r.ID, limit, tt.method, "one")
				require.NoError(t, r.Sup.Send(r.Ctx, p), "Send")
				v := r.Gate.Next(t)
				hung := r.Events.Wait(t, supervisor.EventHung)
				require.GreaterOrEqual(t, time.Since(began), limit, "time until the life counts as hung")
				require.Equal(t, []any{r.ID, "ada", was.Incarnation, was.Pid},
					[]any{hung.ProcID, hung.Name, hung.Incarnation, hung.Pid}, "child, name, life and process in the event")
				require.Contains(t, hung.Text, "(*sickly)."+tt.method, "stacks in the event")
				require.ErrorContains(t, hung.Err, tt.method+" ran for longer", "error of the event")
				if tt.heeds {
					v.Left(t)
				}
				err := r.Recv(t, p).Err
				exit := requireOutrun(t, err, was, tt.method)
				var stuck *supervisor.StuckError
				switch {
				case tt.heeds:
					require.Empty(t, exit.KilledBy, "who killed a worker that heeds its context")
				case kind == supervisor.Process:
					require.NotEmpty(t, exit.KilledBy, "it was the supervisor who killed the worker")
				default:
					require.ErrorAs(t, err, &stuck, "verdict of a handler that cannot be ended")
					require.Equal(t, []any{r.ID, "ada", was.Incarnation, tt.method},
						[]any{stuck.ProcID, stuck.Name, stuck.Incarnation, stuck.Method}, "what is stuck")
					require.Contains(t, stuck.Stack, "(*sickly)."+tt.method, "its stack")
				}
				now := echoes(t, r)
				require.NotEqual(t, was.Incarnation, now.Incarnation, "the life after it")
				require.Equal(t, 1, now.Restarts, "restarts by the policy")
				if stuck == nil {
					require.Zero(t, now.Stuck, "lives that could not be ended")
				} else {
					require.Equal(t, 1, now.Stuck, "lives that could not be ended")
					require.NotContains(t, r.Events.Kinds(), supervisor.EventExited, "an abandoned life is stuck, not gone")
					v.Release(t, "at last")
					testkit.Until(t, "the abandoned life is gone", func() bool { return r.Child(t, r.ID).Stuck == 0 })
					require.Equal(t, now.Incarnation, echoes(t, r).Incarnation, "the life that replaced it")
				}
				shutdown(t, r.Sup)
			})
		})
	}
}

// What waits behind a handler that hangs gets the end of the life, and is not executed.
func TestKillAfterOfBystanders(t *testing.T) {
	for _, method := range []string{"Heed", "Lock"} {
		t.Run(method, func(t *testing.T) {
			eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
				stop := shortStop
				if method == "Heed" {
					stop.TermGrace = testkit.Limit
				}
				r := startSickly(t, kind, stop)
				reqs := []supervisor.SendPayload{leashed(r.ID, 100*time.Millisecond, method, "one")}
				for range 3 {
					reqs = append(reqs, supervisor.NewSendPayload(r.ID, "Enter", "executed"))
				}
				reqs = append(reqs, leashed(r.ID, time.Millisecond, "Enter", "executed")) // it waits for much longer
				send(t, r.Sup, reqs...)
				got, err := r.Sup.RecvAll(r.Ctx, reqs, supervisor.IgnoreErr())
				require.NoError(t, err, "RecvAll")
				require.ErrorIs(t, got[0].Err, supervisor.ErrTimeout, "the one that hung")
				for i, p := range got[1:] {
					require.NotErrorIs(t, p.Err, supervisor.ErrTimeout, "bystander %d", i)
					var exit *supervisor.ExitError
					require.ErrorAs(t, p.Err, &exit, "bystander %d", i)
					require.ErrorContains(t, exit, method+" ran for longer", "bystander %d", i)
				}
				echoes(t, r)
				require.Empty(t, r.Ledger.Counts(t), "executions of the bystanders")
				r.Gate.Next(t).Release(t, "go")
			})
		})
	}
}

// The handler's time counts, not that in the queue.
func TestKillAfterLeavesTheQueueOut(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		r := startSickly(t, kind)
		was := echoes(t, r)
		held := r.Send(t, r.ID, "Heed", "occupier")
		v := r.Gate.Next(t)
		queued := leashed(r.ID, 300*time.Millisecond*testkit.Slowdown, "Echo", 3)
		clock := supervisor.NewSendPayload(r.ID, "Echo", 4)
		clock.Timeout = 2 * queued.KillAfter
		send(t, r.Sup, queued, clock)
		require.ErrorIs(t, r.Recv(t, clock).Err, supervisor.ErrTimeout, "a request that times out in the queue")
		v.Release(t, "go")
		require.NoError(t, r.Recv(t, held).Err, "the handler before them, which has no KillAfter")
		got := r.Recv(t, queued)
		require.NoError(t, got.Err, "queued longer than its KillAfter")
		require.Equal(t, 3, got.Data, "its result")
		require.Equal(t, was.Incarnation, echoes(t, r).Incarnation, "the life goes on")
		shutdown(t, r.Sup)
		require.NotContains(t, r.Events.Kinds(), supervisor.EventHung, "events:\n%s", r.Events)
	})
}

// A Timeout before it gives the verdict, and the handler's time runs on.
func TestKillAfterOutlastsTheVerdict(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		r := startSickly(t, kind, shortStop)
		p := leashed(r.ID, 500*time.Millisecond, "Lock", "one")
		p.Timeout = 20 * time.Millisecond
		require.NoError(t, r.Sup.Send(r.Ctx, p), "Send")
		err := r.Recv(t, p).Err
		require.ErrorIs(t, err, supervisor.ErrTimeout, "verdict at the Timeout")
		var exit *supervisor.ExitError
		require.NotErrorAs(t, err, &exit, "the life has not ended")
		v := r.Gate.Next(t)
		require.Contains(t, r.Events.Wait(t, supervisor.EventHung).Text, "(*sickly).Lock", "stacks in the event")
		r.Events.Wait(t, supervisor.EventRestarting)
		require.Equal(t, 1, echoes(t, r).Restarts, "restarts")
		if kind == supervisor.Goroutine {
			v.Release(t, "go")
		}
	})
}

// Others that run at the same time end with the life, which is named for the one that outran its time.
func TestKillAfterAmongOthers(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		r := startSickly(t, kind, supervisor.WithConcurrency(3), supervisor.Stop{TermGrace: testkit.Limit})
		was := echoes(t, r)
		reqs := send(t, r.Sup, supervisor.NewSendPayload(r.ID, "Heed", "a"), supervisor.NewSendPayload(r.ID, "Heed", "b"))
		visitors := []*childtest.Visitor{r.Gate.Next(t), r.Gate.Next(t)}
		hangs := leashed(r.ID, 100*time.Millisecond, "Lock", "c")
		send(t, r.Sup, hangs)
		third := r.Gate.Next(t)
		hung := r.Events.Wait(t, supervisor.EventHung)
		require.ErrorContains(t, hung.Err, "Lock ran for longer", "error of the event")
		require.Contains(t, hung.Text, "(*sickly).Lock", "stacks in the event")
		for _, v := range visitors {
			v.Left(t)
		}
		third.Release(t, "go") // before it is abandoned, or killed
		got, err := r.Sup.RecvAll(r.Ctx, append(reqs, hangs), supervisor.IgnoreErr())
		require.NoError(t, err, "RecvAll")
		_ = requireOutrun(t, got[2].Err, was, "Lock")
		for _, p := range got[:2] {
			require.Error(t, p.Err, "verdict of a handler that ran beside it")
			require.NotErrorIs(t, p.Err, supervisor.ErrTimeout, "verdict of a handler that ran beside it")
		}
		require.Equal(t, 1, echoes(t, r).Restarts, "restarts")
	})
}

// The time is never cut short, whatever the vigil was doing before, and overdrawn by no more than a quarter.
func TestKillAfterIsExact(t *testing.T) {
	for name, opts := range map[string][]supervisor.ChildOption{
		"nothing else to watch": nil,
		"rare signs of life":    {supervisor.Liveness{Every: time.Hour}},
		"frequent ones":         {supervisor.Liveness{Every: 50 * time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c := newCloser()
				sup, seen := withCloser(t, c, opts...)
				for range 3 { // in time: a nap takes a second
					send(t, sup, leashed(0, 1200*time.Millisecond, "Nap"))
				}
				for range 3 {
					_, err := sup.Recv(t.Context())
					require.NoError(t, err, "a handler that takes most of its time, and waited for longer")
				}
				for range 8 { // from any moment between two looks
					<-time.After(time.Minute + 930*time.Millisecond)
					began := time.Since(c.made)
					send(t, sup, leashed(0, time.Second, "Heed"))
					_, err := sup.Recv(t.Context())
					require.ErrorIs(t, err, supervisor.ErrTimeout, "the one that outruns its time")
					took := c.notes().ctxEnd - began
					require.GreaterOrEqual(t, took, time.Second, "time of the handler")
					require.LessOrEqual(t, took, 1250*time.Millisecond, "time of the handler")
				}
				require.Len(t, seen.of(supervisor.EventHung), 8, "lives that hung")
				shutdown(t, sup)
			})
		})
	}
}

func TestKillAfterRefusals(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup, _ := withScripted(t, &scripted{})
		built := register(t, sup, supervisor.Object(newCloser()))
		for _, tt := range []struct {
			child int
			limit time.Duration
			want  error
		}{
			{0, time.Second, supervisor.ErrUnsupported},
			{0, -1, supervisor.ErrBadArgs},
			{built, -1, supervisor.ErrBadArgs},
		} {
			p := leashed(tt.child, tt.limit, "Nap")
			requireRefused(t, sup.Send(t.Context(), p), tt.want, p)
			requireRefused(t, sup.TrySend(p), tt.want, p)
			_, err := sup.Do(context.Background(), p)
			requireRefused(t, err, tt.want, p)
		}
		synctest.Wait()
		require.Zero(t, sup.Snapshot().Open, "open requests")
	})
}
