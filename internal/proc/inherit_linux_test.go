package proc_test

import (
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/workerlink/supervisor/internal/proc"
)

func TestWorkerInheritsItsDescriptorsOnly(t *testing.T) {
	checkLeaks(t)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _, _ = r.Close(), w.Close() }()
	c := start(t, new(proc.Starter), proc.Config{Files: []*os.File{r, w}})
	require.Equal(t, "up", c.ask("echo up"))
	got := workerDescriptors(t, c)
	for fd, target := range got {
		if strings.HasPrefix(target, "anon_inode:[event") || strings.HasPrefix(target, "/sys/fs/cgroup/") {
			delete(got, fd) // the runtime's own
		}
	}
	control := got["5"]
	require.Contains(t, control, "socket:", "descriptor 5")
	require.Equal(t, map[string]string{
		"0": "/dev/null",
		"1": target(t, c.Stdout), "2": target(t, c.Stderr),
		"3": target(t, c.Requests), "4": target(t, c.Replies), "5": control,
		"6": target(t, r), "7": target(t, w),
	}, got, "descriptors of the worker")
	want := append(slices.Collect(maps.Keys(strangers(t))), "0", "1", "2", "3")
	require.ElementsMatch(t, want, strings.Fields(c.ask("grandchild-fds")), "descriptors of ls, one of them the directory it lists")
	require.NotContains(t, c.ask("env"), "SUPERVISOR_WORKER", "environment for grandchildren")
}

// workerDescriptors returns what a worker has open, without the strangers.
func workerDescriptors(t *testing.T, c *child) map[string]string {
	t.Helper()
	open := descriptors(t, strconv.Itoa(c.Pid()))
	for fd, target := range strangers(t) {
		if open[fd] == target {
			delete(open, fd)
		}
	}
	return open
}

// strangers are the descriptors that whoever runs the tests let this process, and so every child of it, inherit.
func strangers(t *testing.T) map[string]string {
	t.Helper()
	open := descriptors(t, "self")
	for fd := range open {
		n, err := strconv.Atoi(fd)
		require.NoError(t, err)
		flags, err := unix.FcntlInt(uintptr(n), unix.F_GETFD, 0)
		if n < 3 || err != nil || flags&unix.FD_CLOEXEC != 0 {
			delete(open, fd)
		}
	}
	return open
}

// target returns what a file of this process is.
func target(t *testing.T, f *os.File) (name string) {
	t.Helper()
	conn, err := f.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, conn.Control(func(fd uintptr) {
		name, err = os.Readlink("/proc/self/fd/" + strconv.Itoa(int(fd)))
	}))
	require.NoError(t, err)
	return name
}

func TestFramesAreNonblockingInTheWorkerToo(t *testing.T) {
	checkLeaks(t)
	c := start(t, new(proc.Starter), proc.Config{})
	require.Equal(t, "[3 4 5]", c.ask("nonblock"), "non-blocking descriptors")
	require.Equal(t, "<nil>", c.ask("crash-output"), "SetCrashOutput")
	require.Equal(t, "[3 4]", c.ask("nonblock"), "a trace must not have holes, so the control socket blocks after SetCrashOutput")
}

func TestNameAndDeathSignal(t *testing.T) {
	checkLeaks(t)
	c := start(t, new(proc.Starter), proc.Config{})
	require.Equal(t, "18 <nil>", c.ask("death-signal"), "parent-death signal: SIGCONT, which wakes a stopped worker")
	require.Equal(t, "done", c.ask("name a long name for a worker"))
	require.Equal(t, "a long name for <nil>", c.ask("comm"), "name of the process")
}

// O06: descriptors do not leak into siblings, nor into what others start meanwhile.
func TestParallelStarts(t *testing.T) {
	checkLeaks(t)
	const workers, sleepers = 50, 40
	var s proc.Starter
	var wg sync.WaitGroup
	processes := make([]*proc.Process, workers)
	errs := make([]error, workers)
	for i := range processes {
		wg.Go(func() { processes[i], errs[i] = s.Start(proc.Config{}) })
	}
	cmds := make([]*exec.Cmd, sleepers)
	cmdErrs := make([]error, sleepers)
	for i := range cmds {
		cmds[i] = exec.CommandContext(t.Context(), "sleep", "300")
		wg.Go(func() { cmdErrs[i] = cmds[i].Start() })
	}
	wg.Wait()
	t.Cleanup(func() {
		for _, cmd := range cmds {
			if cmd.Process != nil {
				_ = cmd.Wait() // killed by the end of its context
			}
		}
	})
	var children []*child
	for i, p := range processes {
		require.NoError(t, errs[i], "Start number %d", i)
		children = append(children, adopt(t, p))
	}
	owner := make(map[string]int)
	for _, c := range children {
		require.Equal(t, "up", c.ask("echo up"))
		for fd, target := range workerDescriptors(t, c) {
			if strings.HasPrefix(target, "pipe:") || strings.HasPrefix(target, "socket:") {
				require.Zero(t, owner[target], "%s is descriptor %s of two workers", target, fd)
				owner[target] = c.Pid()
			}
		}
	}
	require.Len(t, owner, 5*workers, "pipes and sockets of all workers")
	for i, cmd := range cmds {
		require.NoError(t, cmdErrs[i], "stranger number %d", i)
		for fd, target := range descriptors(t, strconv.Itoa(cmd.Process.Pid)) {
			require.Zero(t, owner[target], "a stranger has %s of a worker as descriptor %s", target, fd)
		}
	}
	// With a second holder of the write end, closing ours would not end a worker.
	for _, c := range children {
		require.NoError(t, c.Requests.Close())
	}
	for _, c := range children {
		require.Zero(t, c.end().Code, "exit code")
	}
}
