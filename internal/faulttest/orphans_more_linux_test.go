package faulttest_test

// What else is to be said of the ends of hosts: what their workers cost on the way out, and hosts at a terminal, with workers
// of workers, and where nobody but init adopts orphans.

import (
	"bytes"
	"context"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// startHostAlone is startHost; there is no terminal.
func startHostAlone(t *testing.T, helper string, args ...string) (*host, *os.File) {
	t.Helper()
	return startHost(t, helper, args...), nil
}

// startHostAtTerminal starts a host as a shell at a terminal would, in the foreground, and returns the other side of the
// terminal.
func startHostAtTerminal(t *testing.T, helper string, args ...string) (*host, *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("this system gives us no terminal: %v", err)
	}
	master := os.NewFile(uintptr(fd), "terminal")
	t.Cleanup(func() { _ = master.Close() }) // unless the test has
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0), "unlock the terminal")
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err, "number of the terminal")
	tty, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err, "open the host's side of the terminal")
	defer tty.Close()
	cmd := testkit.Command(t, helper, args...)
	cmd.ExtraFiles = []*os.File{tty}                                             // descriptor 4, which is a pipe in the workers
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 4} // the host leads the foreground group
	return runHost(t, cmd), master
}

// ticks is how much CPU time a living process has taken, in steps of 10 ms.
func ticks(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	require.NoError(t, err, "state of %d", pid)
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	var sum time.Duration
	for _, field := range fields[11:13] { // user and system time
		n, err := strconv.Atoi(field)
		require.NoError(t, err, "times of %d", pid)
		sum += time.Duration(n) * 10 * time.Millisecond
	}
	return sum
}

// Workers whose host is gone do not spin until they are.
func TestC02OrphansDoNotSpin(t *testing.T) {
	const most = 50*time.Millisecond + 10*time.Millisecond // what is taken away is rounded down to 10 ms
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			testkit.NoLeaks(t)
			h := startHost(t, doomedHost, "eight", "")
			pids := h.report(t, 8).Pids
			before := make(map[int]time.Duration)
			for _, pid := range pids {
				before[pid] = ticks(t, pid)
			}
			h.signal(t, h.cmd.Process.Pid, sig)
			took := h.gone(t, pids)
			for _, pid := range pids {
				require.Contains(t, took, pid, "workers that were orphans")
				require.Less(t, took[pid]-before[pid], most*testkit.Slowdown, "CPU time that worker %d took to end", pid)
			}
		})
	}
}

// All hosts of these tests have a process above them that adopts orphans, so that those cannot tell by their parent's number,
// 1, that theirs is gone. Here nobody but init adopts them.
func TestC84HostWithoutSubreaper(t *testing.T) {
	testkit.NoLeaks(t)
	require.NoError(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0), "adopt no orphans")
	t.Cleanup(func() {
		require.NoError(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "adopt orphans again")
	})
	h := startHost(t, doomedHost, "plain", "")
	pids := h.report(t, 4).Pids
	var handles []int
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		require.NoError(t, err, "PidfdOpen(%d)", pid)
		t.Cleanup(func() { _ = unix.Close(fd) })
		handles = append(handles, fd)
	}
	h.signal(t, h.cmd.Process.Pid, syscall.SIGKILL)
	testkit.Within(t, 2*time.Second, func() {
		_ = h.cmd.Wait() // killed
		for i, fd := range handles {
			for {
				_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
				if err == nil {
					break
				}
				require.ErrorIs(t, err, unix.EINTR, "wait for the end of process %d", pids[i])
			}
		}
	})
}

// nest is the object of a worker that has a supervisor of its own, as deep as its number says.
type nest struct {
	sup *supervisor.Supervisor // nil at the bottom
}

var newNest supervisor.Factory[int]

func init() { // newNest needs itself
	newNest = supervisor.DefineWith("supervisor_test.nest", func(ctx context.Context, depth int) (*nest, error) {
		if depth <= 1 {
			return &nest{}, nil
		}
		sup, err := startNest(ctx, depth-1)
		return &nest{sup}, err
	})
}

func startNest(ctx context.Context, depth int) (*supervisor.Supervisor, error) {
	sup, err := supervisor.New(supervisor.Process)
	if err == nil {
		_, err = sup.Register(ctx, newNest.With(depth))
	}
	if err == nil {
		err = sup.StartLink(context.WithoutCancel(ctx))
	}
	return sup, err
}

// Pids returns the processes from here down to a child that is no worker.
func (n *nest) Pids(ctx context.Context) ([]int, error) {
	below := []int{0}
	var err error
	if n.sup == nil {
		below[0], err = straggler{}.Spawn()
	} else {
		below, err = supervisor.Call[[]int](ctx, n.sup, 0, "Pids")
	}
	return append([]int{os.Getpid()}, below...), err
}

// Close ends what is below in order.
func (n *nest) Close() error {
	if n.sup == nil {
		return nil
	}
	return n.sup.Shutdown(context.Background())
}

// nestingHost is the root of workers three deep.
var nestingHost = testkit.Helper("nesting host", func() {
	ctx := context.Background()
	var pids []int
	sup, err := startNest(ctx, 3)
	if err == nil {
		pids, err = supervisor.Call[[]int](ctx, sup, 0, "Pids")
	}
	say(hostReport{Pids: pids}, err)
	<-make(chan struct{})
})

func TestH09NestedWorkers(t *testing.T) {
	testkit.NoLeaks(t)
	h := startHost(t, nestingHost)
	pids := h.report(t, 4).Pids // three deep, and what the last one started
	alive(t, pids)
	h.signal(t, h.cmd.Process.Pid, syscall.SIGKILL)
	h.gone(t, pids)
}
