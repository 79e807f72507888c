//go:build linux || darwin

package faulttest_test

// Ends that the Go runtime brings about: status 2 and a trace, which the error has, and no recover helps.

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// goesFatally asserts that the Go runtime ended the process, and that the error says why.
func goesFatally(t *testing.T, err error, c supervisor.ChildSnapshot, method, reason, place string) {
	t.Helper()
	exit := deathVerdict(t, err, c, method)
	require.Equal(t, 2, exit.Code, "exit status of %v", exit)
	require.Zero(t, exit.Signal, "no signal ended it: %v", exit)
	require.Empty(t, exit.KilledBy, "it was not the supervisor: %v", exit)
	require.Contains(t, exit.Trace, reason, "the trace says why")
	require.Contains(t, exit.Trace, place, "the trace says where")
	require.ErrorContains(t, err, reason, "so does the text")
	ends := strings.Split(strings.TrimSpace(exit.Trace), "\n")
	require.Contains(t, exit.Tail, ends[len(ends)-1], "the output ends with the end of the trace")
}

func TestP04FatalSignals(t *testing.T) {
	r := newDeathRig(t)
	for s, reason := range map[syscall.Signal]string{
		syscall.SIGSEGV: "SIGSEGV: segmentation violation",
		syscall.SIGABRT: "SIGABRT: abort",
		syscall.SIGQUIT: "SIGQUIT: quit",
		syscall.SIGBUS:  "SIGBUS: bus error",
	} {
		t.Run(s.String(), func(t *testing.T) {
			c := r.worker(t, mayfly)
			held, v := r.Occupy(t, c.ProcID)
			deathSignal(t, c.Pid, s)
			goesFatally(t, r.verdict(t, held).Err, c, held.Method, reason, "goroutine ")
			v.Gone(t)
		})
	}
}

func TestP05FatalFaults(t *testing.T) {
	r := newDeathRig(t)
	for _, tt := range []struct{ name, how, reason, place string }{
		{"wild pointer", "wild pointer", "fatal error: fault", "storeWildly"},
		{"P18 stack overflow", "stack overflow", "fatal error: stack overflow", "deeper"},
		{"P18 concurrent map writes", "map writes", "fatal error: concurrent map writes", "writeForEver"},
		{"P18 mutex that is not locked", "unlocked mutex", "fatal error: sync: unlock of unlocked mutex", "(*mortal).Die"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := r.mortal(t)
			goesFatally(t, r.call(t, c, "Die", tt.how), c, "Die", tt.reason, tt.place)
			require.NoError(t, r.call(t, c, "Pid"), "call of the next life")
		})
	}
}

// The runtime's check for a deadlock never fires: a worker waits for its host. So this costs the calls and the places of
// their handlers only, until the worker is told to end.
func TestP18EveryHandlerAsleep(t *testing.T) {
	r := newDeathRig(t)
	c := r.mortal(t, supervisor.WithConcurrency(3), supervisor.Stop{Grace: -1, TermGrace: -1})
	for range 2 {
		ctx, cancel := context.WithTimeout(r.Ctx, 50*time.Millisecond)
		_, err := supervisor.Call[any](ctx, r.Sup, c.ProcID, "Sleepers")
		cancel()
		require.ErrorIs(t, err, supervisor.ErrTimeout, "a call of a handler that sleeps")
	}
	require.NoError(t, r.call(t, c, "Pid"), "a call beside the handlers that sleep")
	require.Equal(t, c.Incarnation, r.Child(t, c.ProcID).Incarnation, "life that answers")
	testkit.Within(t, deathPrompt, func() {
		require.NoError(t, r.Sup.Restart(r.Ctx, c.ProcID), "Restart")
	})
	require.NoError(t, r.call(t, c, "Pid"), "a call of the next life")
}
