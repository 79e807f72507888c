package proc_test

import (
	"os"
	"os/signal"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/workerlink/supervisor/internal/proc"
)

// O08: the host program reaps whatever it finds, and finds our process first.
func TestReapedBySomebodyElse(t *testing.T) {
	checkLeaks(t)
	c := start(t, new(proc.Starter), proc.Config{})
	grandchild := c.askPid("spawn")
	require.NoError(t, c.Signal(false, unix.SIGKILL))
	stealChild(t, c.Pid())
	require.NoError(t, c.Signal(true, 0), "Signal to a process that is not ours any more")
	require.Equal(t, proc.Status{}, c.end(), "Wait")
	if groupSignals(t) {
		expectGone(t, grandchild)
	} else {
		require.NoError(t, unix.Kill(grandchild, unix.SIGKILL))
	}
}

// The same with both at it at once, as often as not.
func TestReapedByEither(t *testing.T) {
	checkLeaks(t)
	var s proc.Starter
	for range 10 {
		c := start(t, &s, proc.Config{})
		stolen := make(chan struct{})
		go func() {
			defer close(stolen)
			_, _ = wait4(c.Pid())
		}()
		c.tell("exit 7")
		status := c.end()
		<-stolen
		if status.Known {
			require.Equal(t, 7, status.Code, "Wait")
		} else {
			require.Equal(t, proc.Status{}, status, "Wait")
		}
	}
}

// O09: with SIGCHLD ignored the kernel reaps.
func TestChildSignalIgnored(t *testing.T) {
	checkLeaks(t)
	ignoreChildSignal(t)
	c := start(t, new(proc.Starter), proc.Config{})
	c.askPid("spawn")
	waiting := make(chan proc.Status, 1)
	go func() { waiting <- c.Wait() }()
	require.Equal(t, "alive", c.ask("echo alive"))
	c.tell("exit 7")
	require.Equal(t, proc.Status{}, c.end(), "Wait")
	require.Equal(t, proc.Status{}, <-waiting, "Wait that began before the end")
	if groupSignals(t) {
		readAll(t, c.Stdout)
	}
}

func ignoreChildSignal(t *testing.T) {
	signal.Ignore(unix.SIGCHLD)
	t.Cleanup(func() {
		// Reset would leave it ignored: only Notify installs the runtime's handler again.
		c := make(chan os.Signal, 1)
		signal.Notify(c, unix.SIGCHLD)
		signal.Stop(c)
	})
}

// stealChild reaps a process as a wait4(-1) loop would.
func stealChild(t *testing.T, pid int) {
	t.Helper()
	for {
		got, err := wait4(-1)
		require.NoError(t, err, "wait4(-1)")
		if got == pid {
			return
		}
	}
}

func wait4(pid int) (int, error) {
	for {
		got, err := unix.Wait4(pid, nil, 0, nil)
		if err != unix.EINTR {
			return got, err
		}
	}
}

// groupSignals reports whether the kernel can signal a group by pidfd.
func groupSignals(t *testing.T) bool {
	t.Helper()
	fd, err := unix.PidfdOpen(unix.Getpid(), 0)
	require.NoError(t, err)
	defer func() { _ = unix.Close(fd) }()
	err = unix.PidfdSendSignal(fd, 0, nil, 4)
	return err != unix.EINVAL
}
