package proc_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// adoptOrphans makes this process the parent of orphaned descendants, so that a test can see them.
func adoptOrphans() {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		panic(err)
	}
	// The first file in the poller brings two descriptors along, which would look like a leak.
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	_, _ = r.Close(), w.Close()
}

// deathSignal is the parent-death signal of the process. It belongs to the main thread, on which only initialisation is
// sure to run.
var deathSignal = func() string {
	var sig int32
	err := unix.Prctl(unix.PR_GET_PDEATHSIG, addressOf(&sig), 0, 0, 0)
	return fmt.Sprint(sig, err)
}()

// doOnSystem serves the commands that need Linux.
func (s *server) doOnSystem(command string) string {
	switch command {
	case "comm":
		b, err := os.ReadFile("/proc/self/comm")
		return fmt.Sprintf("%s %v", strings.TrimSpace(string(b)), err)
	case "nonblock":
		var set []int
		for fd := range 6 {
			flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
			if err == nil && flags&unix.O_NONBLOCK != 0 {
				set = append(set, fd)
			}
		}
		return fmt.Sprint(set)
	case "death-signal":
		return deathSignal
	case "grandchild-fds":
		out, err := exec.CommandContext(context.Background(), "ls", "/proc/self/fd").Output()
		if err != nil {
			return err.Error()
		}
		return strings.Join(strings.Fields(string(out)), " ")
	}
	return "unknown command " + command
}

// checkLeaks checks at the end of the test, after its other clean-up, that no goroutine, descriptor or process is left of it.
func checkLeaks(t *testing.T) {
	t.Helper()
	running := goleak.IgnoreCurrent()
	open := descriptors(t, "self")
	children := childPids(t)
	t.Cleanup(func() {
		goleak.VerifyNone(t, running)
		for _, pid := range childPids(t) {
			if !slices.Contains(children, pid) {
				expectGone(t, pid)
			}
		}
		require.Equal(t, open, descriptors(t, "self"), "open descriptors")
	})
}

// descriptors returns number and target of what a process has open.
func descriptors(t testing.TB, process string) map[string]string {
	t.Helper()
	dir := filepath.Join("/proc", process, "fd")
	d, err := os.Open(dir)
	require.NoError(t, err)
	defer func() { _ = d.Close() }()
	names, err := d.Readdirnames(-1)
	require.NoError(t, err)
	open := make(map[string]string)
	for _, name := range names {
		target, err := os.Readlink(filepath.Join(dir, name))
		if err == nil && !strings.HasPrefix(target, "/proc/") { // but the one that lists them
			open[name] = target
		}
	}
	return open
}

// childPids returns the processes whose parent is this one, zombies included.
func childPids(t testing.TB) []int {
	t.Helper()
	lists, err := filepath.Glob("/proc/self/task/*/children")
	require.NoError(t, err)
	var pids []int
	for _, list := range lists {
		b, err := os.ReadFile(list)
		if err != nil {
			continue // a thread that ended meanwhile
		}
		for _, field := range strings.Fields(string(b)) {
			pid, err := strconv.Atoi(field)
			require.NoError(t, err, "%s", list)
			pids = append(pids, pid)
		}
	}
	return pids
}

// expectGone waits until a process has ended, and reaps it if it became ours.
func expectGone(t testing.TB, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return
	}
	require.NoError(t, err, "PidfdOpen(%d)", pid)
	awaitPidfd(t, fd, pid, 2*time.Second)
}

// awaitPidfd waits until a process has ended, reaps it if it is ours, and closes the pidfd.
func awaitPidfd(t testing.TB, fd, pid int, limit time.Duration) {
	t.Helper()
	defer func() { _ = unix.Close(fd) }()
	deadline := time.Now().Add(limit)
	for {
		left := max(time.Until(deadline), 0)
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds()))
		if err == unix.EINTR {
			continue
		}
		require.NoError(t, err, "poll")
		require.Equal(t, 1, n, "process %d lives after %v", pid, limit)
		break
	}
	var info unix.Siginfo
	_ = unix.Waitid(unix.P_PIDFD, fd, &info, unix.WEXITED|unix.WNOHANG, nil)
}

// awaitStopped waits until a stop signal has taken effect on every thread of a process.
func awaitStopped(t testing.TB, pid int) {
	t.Helper()
	require.Eventually(t, func() bool {
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		for _, task := range tasks {
			b, readErr := os.ReadFile(task)
			_, state, _ := strings.Cut(string(b), ") ")
			if readErr != nil || !strings.HasPrefix(state, "T ") {
				return false
			}
		}
		return err == nil
	}, wait, time.Millisecond, "process %d stops", pid)
}
