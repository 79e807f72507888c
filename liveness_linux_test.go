package supervisor_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// signalPending reports whether a process has not yet got a signal that was sent to it.
func signalPending(t *testing.T, pid int, sig syscall.Signal) bool {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err, "status of process %d", pid)
	_, rest, found := strings.Cut(string(text), "ShdPnd:\t")
	require.True(t, found, "pending signals of process %d", pid)
	mask, err := strconv.ParseUint(strings.Fields(rest)[0], 16, 64)
	require.NoError(t, err, "pending signals of process %d", pid)
	return mask>>(uint(sig)-1)&1 == 1
}

// frozen is a worker that stands still in the middle of its work.
type frozen struct {
	rig  *childtest.Rig
	was  supervisor.ChildSnapshot
	held supervisor.SendPayload
}

// end waits for the verdict of its work, and returns how its life ended.
func (f frozen) end(t *testing.T) (exit *supervisor.ExitError) {
	t.Helper()
	err := f.rig.Recv(t, f.held).Err
	require.ErrorAs(t, err, &exit, "verdict of what was at work")
	require.NotErrorIs(t, err, supervisor.ErrTimeout, "verdict of what was at work")
	require.ErrorContains(t, err, "no sign of life", "verdict of what was at work")
	return exit
}

// frozenWorker starts a worker that is watched, has it work, and stops it.
func frozenWorker(t *testing.T, stop supervisor.Stop) (f frozen) {
	t.Helper()
	testkit.NoLeaks(t)
	f.rig = startSickly(t, supervisor.Process, stop,
		supervisor.Liveness{Every: 20 * time.Millisecond, Timeout: 300 * time.Millisecond * testkit.Slowdown})
	f.was = echoes(t, f.rig)
	f.held = f.rig.Send(t, f.rig.ID, "Lock", "at work")
	f.rig.Gate.Next(t)
	require.NoError(t, syscall.Kill(f.was.Pid, syscall.SIGSTOP), "stop the worker")
	return f
}

func TestLivenessFindsTheFrozen(t *testing.T) {
	f := frozenWorker(t, shortStop)
	hung := f.rig.Events.Wait(t, supervisor.EventHung)
	require.ErrorContains(t, hung.Err, "no sign of life", "error of the event")
	require.Equal(t, f.was.Pid, hung.Pid, "process in the event")
	exit := f.end(t)
	require.Equal(t, syscall.SIGKILL, exit.Signal, "%v", exit)
	require.NotEmpty(t, exit.KilledBy, "it was the supervisor")
	require.ErrorIs(t, syscall.Kill(f.was.Pid, 0), syscall.ESRCH, "process %d", f.was.Pid)
	now := echoes(t, f.rig)
	require.NotEqual(t, f.was.Pid, now.Pid, "the process after it")
	require.Equal(t, 1, now.Restarts, "restarts by the policy")
	shutdown(t, f.rig.Sup)
}

// One that cannot answer any more is asked by SIGQUIT, which every Go program answers with its stacks.
func TestLivenessAsksBySignal(t *testing.T) {
	f := frozenWorker(t, supervisor.Stop{TermGrace: testkit.Limit})
	testkit.Until(t, "the worker is sent SIGQUIT", func() bool { return signalPending(t, f.was.Pid, syscall.SIGQUIT) })
	require.NoError(t, syscall.Kill(f.was.Pid, syscall.SIGCONT), "let the worker go on")
	exit := f.end(t)
	require.Contains(t, exit.Trace, "(*sickly).Lock", "stacks in the error")
	require.NotEmpty(t, exit.KilledBy, "it was the supervisor")
	echoes(t, f.rig)
	shutdown(t, f.rig.Sup)
}
