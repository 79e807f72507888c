//go:build linux || darwin

package faulttest_test

// Workers that do nothing of what they are told: they are stopped by a signal, deaf to signals, or have cut their own wires.

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// deathFreeze stops a process, and returns when all its threads stand still.
func deathFreeze(t testing.TB, pid int) {
	t.Helper()
	deathSignal(t, pid, syscall.SIGSTOP)
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil)
		if !errors.Is(err, syscall.EINTR) {
			require.NoError(t, err, "wait until process %d is stopped", pid)
			break
		}
	}
	require.True(t, status.Stopped(), "process %d is stopped: status %x", pid, status)
}

func TestP13FreezeUntilTheDeadline(t *testing.T) {
	r := newDeathRig(t)
	c := r.worker(t)
	p := supervisor.NewSendPayload(c.ProcID, "HoldOn", "frozen")
	p.Timeout = time.Second * testkit.Slowdown // it has to get to the handler first
	began := time.Now()
	send(t, r.Sup, p)
	v := r.Gate.Next(t)
	deathFreeze(t, c.Pid)
	got := r.verdict(t, p)
	require.GreaterOrEqual(t, time.Since(began), p.Timeout, "time until the verdict")
	require.ErrorIs(t, got.Err, supervisor.ErrTimeout, "verdict of a call whose worker is stopped")
	require.ErrorIs(t, got.Err, context.DeadlineExceeded, "verdict of a call whose worker is stopped")
	require.False(t, childtest.CallErrorOf(t, got.Err, c.ProcID, "HoldOn").Unexecuted, "%v", got.Err)

	v.Release(t, "too late")
	deathSignal(t, c.Pid, syscall.SIGCONT)
	late := r.event(t, supervisor.EventLateReply, c.Incarnation)
	require.Equal(t, int64(1), late.N, "late replies by the event")
	require.Equal(t, "HoldOn", late.Text, "method of the late reply")
	require.Equal(t, int64(1), r.Child(t, c.ProcID).Load.Late, "late replies by the snapshot")
	r.Fine(t, c.ProcID)
	require.Equal(t, c.Incarnation, r.Child(t, c.ProcID).Incarnation, "the life goes on")
	_, err := r.Sup.RecvAll(r.Ctx, []supervisor.SendPayload{p})
	require.ErrorIs(t, err, supervisor.ErrNoSuchRequest, "the late reply goes to nobody")
}

// ponderer takes its time to describe itself.
type ponderer struct{ gate string }

var newPonderer = supervisor.DefineWith("faulttest.ponderer", func(_ context.Context, gate string) (*ponderer, error) {
	return &ponderer{gate}, nil
})

// Nothing does nothing.
func (p *ponderer) Nothing() {}

// Snapshot waits at the gate.
func (p *ponderer) Snapshot() any {
	_, _ = childtest.WaitAt(context.Background(), p.gate, "snapshot")
	return "deep thoughts"
}

// An answer to the supervisor's own question is no reply that a caller has missed.
func TestP13SlowSnapshotIsNoLateReply(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		r := childtest.NewRig(t, k)
		r.ID = register(t, r.Sup, newPonderer.With(r.Gate.Address))
		r.StartLink(t)
		require.Nil(t, r.Child(t, r.ID).Object, "what an object shows that is slow to answer")
		r.Gate.Next(t).Release(t, "now")
		childtest.CallOf[any](t, r, r.ID, "Nothing")
		shutdown(t, r.Sup)
		require.NotContains(t, r.Events.Kinds(), supervisor.EventLateReply, "events:\n%s", r.Events)
	})
}

// stopsIn asserts that Shutdown ends a worker by force once its times are over, and not before.
func stopsIn(t *testing.T, r *childtest.Rig, c supervisor.ChildSnapshot, stop supervisor.Stop) {
	t.Helper()
	began := time.Now()
	testkit.Within(t, stop.Grace+stop.TermGrace+deathPrompt, func() {
		require.NoError(t, r.Sup.Shutdown(r.Ctx), "Shutdown: a process can always be ended")
	})
	require.GreaterOrEqual(t, time.Since(began), stop.Grace+stop.TermGrace, "time of Shutdown")
	e := r.Events.WaitFor(t, "end of the worker", func(e supervisor.Event) bool {
		return e.Kind == supervisor.EventStopped && e.Incarnation == c.Incarnation
	})
	exit := deathOf(t, e.Err, c)
	require.Equal(t, syscall.SIGKILL, exit.Signal, "%v", exit)
	require.NotEmpty(t, exit.KilledBy, "it was the supervisor")
	require.ErrorIs(t, syscall.Kill(c.Pid, 0), syscall.ESRCH, "process %d", c.Pid)
	require.Equal(t, map[string]int{"close": 1}, r.Ledger.Counts(t), "the other child ends in order")
}

// deathStop is short, but long enough for the others.
var deathStop = supervisor.Stop{Grace: 100 * time.Millisecond, TermGrace: 100 * time.Millisecond}

func TestP14ShutdownWhileFrozen(t *testing.T) {
	for _, busy := range []bool{false, true} {
		t.Run(map[bool]string{false: "idle", true: "busy"}[busy], func(t *testing.T) {
			testkit.NoLeaks(t)
			r := childtest.StartTwo(t, childtest.Processes(), deathStop)
			c := r.Child(t, r.ID)
			var held supervisor.SendPayload
			if busy {
				held, _ = r.Occupy(t, r.ID)
			}
			deathFreeze(t, c.Pid)
			stopsIn(t, r, c, deathStop)
			if busy {
				require.ErrorIs(t, r.Recv(t, held).Err, supervisor.ErrClosed, "verdict of what was open")
			}
		})
	}
}

func TestP17DeafToSignals(t *testing.T) {
	testkit.NoLeaks(t)
	r := childtest.NewRig(t, childtest.Processes())
	r.Other = r.Register(t, r.Job())
	r.ID = register(t, r.Sup, newMortal.With(r.Gate.Address), deathStop)
	r.StartLink(t)
	c := r.Child(t, r.ID)
	first, last := r.Send(t, r.ID, "Deafen", "first"), r.Send(t, r.ID, "Deafen", "last")
	v := r.Gate.Next(t)
	for range 3 {
		deathSignal(t, c.Pid, syscall.SIGTERM, syscall.SIGINT)
	}
	v.Release(t, "what?")
	require.Equal(t, "what?", r.Recv(t, first).Data, "it has survived the signals")
	r.Gate.Next(t)
	stopsIn(t, r, c, deathStop)
	require.ErrorIs(t, r.Recv(t, last).Err, supervisor.ErrClosed, "verdict of what was open")
}

// A worker that can be reached no more is ended, though it lives on.
func TestP15SeveredWires(t *testing.T) {
	const requests, replies = 3, 4 // descriptors of every worker
	r := newDeathRig(t)
	for _, tt := range []struct {
		name string
		fds  []int
	}{
		{"replies", []int{replies}},
		{"both", []int{requests, replies}},
		{"requests", []int{requests}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := r.mortal(t, mayfly)
			p := r.Send(t, c.ProcID, "Sever", tt.fds)
			v := r.Gate.Next(t)
			if len(tt.fds) == 1 && tt.fds[0] == requests { // a pipe that nobody reads shows when it is written to
				if next := supervisor.NewSendPayload(c.ProcID, "Pid"); r.Sup.Send(r.Ctx, next) == nil {
					_ = deathOf(t, r.verdict(t, next).Err, c)
				}
			}
			exit := deathVerdict(t, r.verdict(t, p).Err, c, "Sever")
			require.NotEmpty(t, exit.KilledBy, "the supervisor ended it: %v", exit)
			v.Gone(t)
			r.event(t, supervisor.EventGivenUp, c.Incarnation)
			require.ErrorIs(t, syscall.Kill(c.Pid, 0), syscall.ESRCH, "process %d", c.Pid)
		})
	}
}
