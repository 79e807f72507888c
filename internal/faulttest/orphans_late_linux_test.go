package faulttest_test

// Hosts that die in the moment in which it is hardest for their workers to leave nothing.

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// leaver starts a process in its group, and stops its host when it is told to end.
type leaver struct{ host int }

var newLeaver = supervisor.Define("faulttest.leaver", func(context.Context) (leaver, error) { return leaver{os.Getppid()}, nil })

// Spawn returns the worker's pid and that of what it has started.
func (leaver) Spawn() ([]int, error) {
	cmd := exec.CommandContext(context.Background(), "sleep", "300")
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return []int{os.Getpid(), cmd.Process.Pid}, nil
}

// Close stops the host, which so cannot see what follows, if that lives.
func (l leaver) Close() error {
	if os.Getppid() != l.host {
		return nil
	}
	return syscall.Kill(l.host, syscall.SIGSTOP)
}

// leavingHost starts a leaver, reports it, and stops it in order when it gets the word, unless something happens before.
var leavingHost = testkit.Helper("leaving host", func() {
	ctx := context.Background()
	sup, err := supervisor.New(supervisor.Process)
	if err != nil {
		say(hostReport{}, err)
		return
	}
	_, err = sup.Register(ctx, newLeaver)
	err = errors.Join(err, sup.StartLink(ctx))
	if err != nil {
		say(hostReport{}, err)
		return
	}
	pids, err := supervisor.Call[[]int](ctx, sup, 0, "Spawn")
	say(hostReport{Pids: pids}, err)
	awaitWord()
	_ = sup.Shutdown(ctx) // does not come to its end
})

// The worker has exited in order, and its host dies before it has seen that.
func TestH02HostDiesAsItsWorkerEnds(t *testing.T) {
	testkit.NoLeaks(t)
	h := startHost(t, leavingHost)
	pids := h.report(t, 2).Pids
	require.NoError(t, h.word.Close(), "give the host the word")
	testkit.Until(t, "the worker has stopped its host", func() bool { return processState(t, h.cmd.Process.Pid) == "T" })
	testkit.Until(t, "the worker has exited", func() bool { return processState(t, pids[0]) == "Z" })
	require.NoError(t, h.cmd.Process.Kill(), "kill the host")
	h.gone(t, pids)
}

// The kernel continues a stopped worker only if nobody of its session is left who could; here the test is, and does not. It adopts
// the worker, too.
func TestH02FrozenWorkerOfDeadHost(t *testing.T) {
	testkit.NoLeaks(t)
	cmd := testkit.Command(t, leavingHost)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // in our session
	h := runHost(t, cmd)
	pids := h.report(t, 2).Pids
	h.signal(t, pids[0], syscall.SIGSTOP)
	testkit.Until(t, "the worker stands still", func() bool { return processState(t, pids[0]) == "T" })
	require.NoError(t, h.cmd.Process.Kill(), "kill the host")
	h.gone(t, pids)
}
