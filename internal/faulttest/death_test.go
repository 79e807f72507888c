//go:build linux || darwin

package faulttest_test

// Worker processes that die, whatever they are doing: whose requests were open is told at once, and nobody else notices.

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// deathPrompt is how long the news of a death may take, and whatever else comes at once.
const deathPrompt = 10 * time.Second

// mayfly lives once.
var mayfly = supervisor.Restart{Type: supervisor.Temporary}

// deathRig is a running supervisor whose first child, the witness, must answer all along.
type deathRig struct{ *childtest.Rig }

func newDeathRig(t *testing.T) *deathRig {
	t.Helper()
	testkit.NoLeaks(t)
	r := &deathRig{childtest.NewRig(t, childtest.Processes())}
	r.Other = r.Register(t, r.Job(), supervisor.WithName("witness"))
	require.NoError(t, r.Sup.StartLink(context.Background()), "StartLink") // the witness outlasts the test's context
	life := r.Child(t, r.Other)
	t.Cleanup(func() { // after the last call
		require.Equal(t, life.Incarnation, r.Child(t, r.Other).Incarnation, "life of the witness")
	})
	witness(t, r.Sup, r.Other, "Int", deathPrompt)
	return r
}

// worker adds a worker of the suite, and returns its first life.
func (r *deathRig) worker(t *testing.T, opts ...supervisor.ChildOption) supervisor.ChildSnapshot {
	t.Helper()
	return r.Child(t, r.Register(t, r.Job(), opts...))
}

// mortal adds a worker that knows more ways to die.
func (r *deathRig) mortal(t *testing.T, opts ...supervisor.ChildOption) supervisor.ChildSnapshot {
	t.Helper()
	return r.Child(t, register(t, r.Sup, newMortal.With(r.Gate.Address), opts...))
}

// call calls a child that may die of it. It returns without a deadline of its own.
func (r *deathRig) call(t *testing.T, c supervisor.ChildSnapshot, method string, args ...any) (err error) {
	t.Helper()
	testkit.Within(t, deathPrompt, func() {
		_, err = supervisor.Call[any](context.Background(), r.Sup, c.ProcID, method, args...)
	})
	return err
}

// verdict waits for that of a request.
func (r *deathRig) verdict(t *testing.T, p supervisor.SendPayload) (got supervisor.RecvPayload) {
	t.Helper()
	testkit.Within(t, deathPrompt, func() { got = r.Recv(t, p) })
	return got
}

// event waits for one that tells of a life.
func (r *deathRig) event(t *testing.T, kind supervisor.EventKind, life uint64) (e supervisor.Event) {
	t.Helper()
	testkit.Within(t, deathPrompt, func() {
		e = r.Events.WaitFor(t, fmt.Sprintf("%v of life %d", kind, life), func(e supervisor.Event) bool {
			return e.Kind == kind && e.Incarnation == life
		})
	})
	return e
}

// next waits until the life after c is ready.
func (r *deathRig) next(t *testing.T, c supervisor.ChildSnapshot) (e supervisor.Event) {
	t.Helper()
	testkit.Within(t, deathPrompt, func() {
		e = r.Events.WaitFor(t, "start of the next life", func(e supervisor.Event) bool {
			return e.Kind == supervisor.EventStarted && e.ProcID == c.ProcID && e.Incarnation > c.Incarnation
		})
	})
	require.NotEqual(t, c.Pid, e.Pid, "process of the next life")
	return e
}

// deathOf asserts that err tells the end of a process, and returns what it says.
func deathOf(t *testing.T, err error, c supervisor.ChildSnapshot) *supervisor.ExitError {
	t.Helper()
	var exit *supervisor.ExitError
	require.ErrorAs(t, err, &exit, "end of process %d", c.Pid)
	require.Equal(t, c.Pid, exit.Pid, "process of %v", err)
	return exit
}

// deathVerdict asserts that err is the verdict of a request that this life held when it ended.
func deathVerdict(t *testing.T, err error, c supervisor.ChildSnapshot, method string) *supervisor.ExitError {
	t.Helper()
	e := childtest.CallErrorOf(t, err, c.ProcID, method)
	require.Equal(t, c.Incarnation, e.Incarnation, "life of %v", err)
	return deathOf(t, err, c)
}

func deathSignal(t testing.TB, pid int, signals ...syscall.Signal) {
	t.Helper()
	for _, s := range signals {
		require.NoError(t, syscall.Kill(pid, s), "send %v to %d", s, pid)
	}
}

func TestP01KillWhileBusy(t *testing.T) {
	r := newDeathRig(t)
	c := r.worker(t)
	held, v := r.Occupy(t, c.ProcID)
	queued := r.Send(t, c.ProcID, "Enter", "executed")
	deathSignal(t, c.Pid, syscall.SIGKILL)
	for _, p := range []supervisor.SendPayload{held, queued} {
		exit := deathVerdict(t, r.verdict(t, p).Err, c, p.Method)
		require.Equal(t, syscall.SIGKILL, exit.Signal, "%v", exit)
		require.Equal(t, -1, exit.Code, "%v", exit)
		require.Empty(t, exit.KilledBy, "it was not the supervisor")
	}
	v.Gone(t)
	require.Greater(t, r.next(t, c).Incarnation, c.Incarnation, "the life that follows")
	r.Fine(t, c.ProcID)
	require.Empty(t, r.Ledger.Counts(t), "what was queued is executed by nobody")
}

func TestP02KillWhileIdle(t *testing.T) {
	r := newDeathRig(t)
	t.Run("permanent, C09", func(t *testing.T) {
		c := r.worker(t)
		deathSignal(t, c.Pid, syscall.SIGKILL)
		exit := deathOf(t, r.event(t, supervisor.EventExited, c.Incarnation).Err, c)
		require.Equal(t, syscall.SIGKILL, exit.Signal, "%v", exit)
		r.next(t, c) // without any call
		require.Equal(t, 1, r.Child(t, c.ProcID).Restarts, "restarts")
		r.Fine(t, c.ProcID)
	})
	t.Run("temporary", func(t *testing.T) {
		c := r.worker(t, mayfly)
		deathSignal(t, c.Pid, syscall.SIGKILL)
		require.Equal(t, syscall.SIGKILL, deathOf(t, r.event(t, supervisor.EventGivenUp, c.Incarnation).Err, c).Signal)
		r.refuses(t, c, supervisor.NewSendPayload(c.ProcID, "Int", 1), syscall.SIGKILL, -1)
	})
}

// refuses asserts that a child that is gone for good says how it ended, to whoever asks, at once.
func (r *deathRig) refuses(t *testing.T, c supervisor.ChildSnapshot, p supervisor.SendPayload, s syscall.Signal, code int) {
	t.Helper()
	require.Equal(t, supervisor.StateEnded, r.Child(t, c.ProcID).State, "state after the end of a temporary child")
	for name, ask := range map[string]func() error{
		"Send":    func() error { return r.Sup.Send(context.Background(), p) },
		"TrySend": func() error { return r.Sup.TrySend(p) },
		"Do":      func() error { _, err := r.Sup.Do(context.Background(), p); return err },
	} {
		var err error
		testkit.Within(t, deathPrompt, func() { err = ask() })
		require.True(t, childtest.CallErrorOf(t, err, c.ProcID, p.Method).Unexecuted, "%s: %v", name, err)
		exit := deathOf(t, err, c)
		require.Equal(t, s, exit.Signal, "%s: %v", name, err)
		require.Equal(t, code, exit.Code, "%s: %v", name, err)
	}
}

// A clean code is a death all the same when calls are open.
func TestP06ExitWithOpenCalls(t *testing.T) {
	r := newDeathRig(t)
	t.Run("calls before and behind", func(t *testing.T) {
		c := r.worker(t)
		var law testkit.Law
		var reqs []supervisor.SendPayload
		_, v := r.Occupy(t, c.ProcID)
		for i := range 21 {
			p := supervisor.NewSendPayload(c.ProcID, "Enter", "")
			p.Args[0] = p.ReqID
			if i == 10 {
				p = supervisor.NewSendPayload(c.ProcID, "Exit", 0)
			} else {
				law.Accept(p.ReqID)
			}
			reqs = append(reqs, send(t, r.Sup, p)...)
		}
		v.Release(t, "")
		for i, p := range reqs {
			got := r.verdict(t, p)
			if i != 10 {
				law.Verdict(got.ReqID, childtest.OutcomeOf(got.Err))
			}
			if i < 10 && got.Err == nil {
				continue // else its reply did not get out in time
			}
			exit := deathVerdict(t, got.Err, c, p.Method)
			require.Zero(t, exit.Code, "request %d: %v", i, got.Err)
			require.Zero(t, exit.Signal, "request %d: %v", i, got.Err)
		}
		law.Check(t, r.Ledger.Counts(t))
		r.Fine(t, c.ProcID)
	})
	t.Run("C82, nobody waits for ever", func(t *testing.T) {
		c := r.worker(t)
		require.Zero(t, deathVerdict(t, r.call(t, c, "Exit", 0), c, "Exit").Code, "exit code")
		r.Fine(t, c.ProcID)
	})
}

func TestP07ExitWhileIdle(t *testing.T) {
	r := newDeathRig(t)
	leave := func(t *testing.T, c supervisor.ChildSnapshot) {
		t.Helper()
		require.NoError(t, r.call(t, c, "ExitLater"), "ExitLater")
		r.Gate.Next(t).Release(t, "now")
		exit := deathOf(t, r.event(t, supervisor.EventExited, c.Incarnation).Err, c)
		require.Zero(t, exit.Code, "%v", exit)
		require.Zero(t, exit.Signal, "%v", exit)
		require.Empty(t, exit.KilledBy, "%v", exit)
	}
	t.Run("permanent", func(t *testing.T) {
		c := r.mortal(t)
		leave(t, c)
		next := r.next(t, c)
		got := r.verdict(t, send(t, r.Sup, supervisor.NewSendPayload(c.ProcID, "Pid"))[0])
		require.Equal(t, next.Pid, got.Data, "the process that answers")
	})
	t.Run("temporary", func(t *testing.T) {
		c := r.mortal(t, mayfly)
		leave(t, c)
		require.NoError(t, r.event(t, supervisor.EventDone, c.Incarnation).Err, "its work is done")
		r.refuses(t, c, supervisor.NewSendPayload(c.ProcID, "Pid"), 0, 0)
	})
}
