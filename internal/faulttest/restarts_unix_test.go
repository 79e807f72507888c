//go:build linux || darwin

package faulttest_test

import (
	"context"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// breakerFall ends the life of a child: a process by force, a goroutine by the request that waits at v.
func breakerFall(t *testing.T, r *breakerRig, id int, v *childtest.Visitor) {
	t.Helper()
	if r.Kind.Can.Process {
		deathSignal(t, r.lives[id].Pid, syscall.SIGKILL)
	} else {
		v.Release(t, "")
	}
	r.Events.WaitFor(t, "the end of child "+strconv.Itoa(id), func(e supervisor.Event) bool {
		return e.Kind == supervisor.EventExited && e.ProcID == id
	})
}

// breakerKillStart has a start fail that is at the gate: a process is killed.
func breakerKillStart(t *testing.T, k childtest.Kind, v *childtest.Visitor) {
	t.Helper()
	if !k.Can.Process {
		v.Release(t, "fail")
		return
	}
	pid, err := strconv.Atoi(v.Name)
	require.NoError(t, err, "process at the gate")
	deathSignal(t, pid, syscall.SIGKILL)
}

// The third of five children is killed.
func TestS03StrategiesAndAKill(t *testing.T) {
	for _, tt := range []struct {
		st      supervisor.Strategy
		stopped []int
		started []int
	}{
		{supervisor.OneForAll, []int{4, 3, 1, 0}, []int{0, 1, 2, 3, 4}},
		{supervisor.RestForOne, []int{4, 3}, []int{2, 3, 4}},
	} {
		t.Run(tt.st.String(), func(t *testing.T) {
			eachKind(t, func(t *testing.T, k childtest.Kind) {
				r := newBreakers(t, k, 5, []supervisor.Option{supervisor.WithStrategy(tt.st)})
				reqs, visitors := make([]supervisor.SendPayload, 5), make([]*childtest.Visitor, 5)
				for id := range reqs {
					method := "Hold"
					if id == 2 {
						method = "BreakAt"
					}
					reqs[id], visitors[id] = r.hold(t, id, method)
				}
				breakerFall(t, r, 2, visitors[2])
				testkit.Until(t, "all are up again", func() bool {
					return len(r.order(supervisor.EventStarted)) == 5+len(tt.started)
				})
				require.Equal(t, tt.stopped, r.order(supervisor.EventStopped), "order of the stops:\n%s", r.Events)
				require.Equal(t, tt.started, r.order(supervisor.EventStarted)[5:], "order of the starts:\n%s", r.Events)
				for id, p := range reqs {
					switch {
					case id == 2:
						require.Error(t, r.Recv(t, p).Err, "verdict of what fell")
					case slices.Contains(tt.stopped, id):
						got := r.Recv(t, p)
						require.ErrorIs(t, got.Err, supervisor.ErrRestarted, "verdict of child %d", id)
						require.ErrorContains(t, got.Err, "child 2", "why")
						require.ErrorContains(t, got.Err, tt.st.String(), "why")
						if k.Can.Process {
							require.ErrorContains(t, got.Err, "killed by signal 9", "why")
						}
						require.Equal(t, r.lives[id].Incarnation, got.Incarnation, "life of the verdict")
					default:
						visitors[id].Release(t, "undisturbed")
						require.Equal(t, "undisturbed", r.Recv(t, p).Data, "reply of child %d", id)
					}
				}
				require.Equal(t, 5+len(tt.started), r.Ledger.Counts(t)["start"], "starts by the ledger")
				shutdown(t, r.Sup)
			})
		})
	}
}

// A transient child is gone after an exit in order, and comes back after any other.
func TestP07TransientExitWhileIdle(t *testing.T) {
	r := newDeathRig(t)
	transient := supervisor.Restart{Type: supervisor.Transient}
	t.Run("in order", func(t *testing.T) {
		c := r.mortal(t, transient)
		require.NoError(t, r.call(t, c, "ExitLater"), "ExitLater")
		r.Gate.Next(t).Release(t, "now")
		require.Zero(t, deathOf(t, r.event(t, supervisor.EventExited, c.Incarnation).Err, c).Code)
		require.NoError(t, r.event(t, supervisor.EventDone, c.Incarnation).Err, "its work is done")
		r.refuses(t, c, supervisor.NewSendPayload(c.ProcID, "Pid"), 0, 0)
		_, err := supervisor.Call[int](context.Background(), r.Sup, c.ProcID, "Pid")
		require.NotErrorIs(t, err, supervisor.ErrRestartLimit, "a Call afterwards")
		require.Zero(t, r.Child(t, c.ProcID).Restarts, "restarts")
	})
	t.Run("with a panic", func(t *testing.T) {
		c := r.mortal(t, transient)
		require.NoError(t, r.call(t, c, "PanicLater"), "PanicLater")
		r.Gate.Next(t).Release(t, "now")
		require.Equal(t, 2, deathOf(t, r.event(t, supervisor.EventExited, c.Incarnation).Err, c).Code, "code of a panic")
		r.next(t, c)
	})
	t.Run("in order, but with an open call", func(t *testing.T) {
		c := r.worker(t, transient)
		require.Zero(t, deathVerdict(t, r.call(t, c, "Exit", 0), c, "Exit").Code, "exit code")
		r.next(t, c)
		r.Fine(t, c.ProcID)
	})
}
