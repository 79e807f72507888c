package testkit_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/workerlink/supervisor/internal/testkit"
)

// orphan starts a process in a group of its own, says its id and leaves it behind.
var orphan = testkit.Helper("orphan", func() {
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		fmt.Println(err)
	}
	fmt.Println(cmd.Process.Pid)
})

// sleeper waits for its standard input to end.
var sleeper = testkit.Helper("sleeper", func() { _, _ = bufio.NewReader(os.Stdin).ReadString('\n') })

func TestDescriptorIsLeft(t *testing.T) {
	rows := []struct {
		name, class string
		open        func() (int, error)
	}{
		{"file", "descriptor", func() (int, error) { return unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0) }},
		{"memory", "memfd", func() (int, error) { return unix.MemfdCreate("forgotten", unix.MFD_CLOEXEC) }},
		{"process handle", "pidfd", func() (int, error) { return unix.PidfdOpen(os.Getpid(), 0) }},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			var fd int
			complaints := runFake(t, func(t testing.TB) {
				testkit.NoLeaks(t)
				var err error
				fd, err = row.open()
				require.NoError(t, err)
			})
			require.NoError(t, unix.Close(fd))
			require.Len(t, complaints, 1)
			require.Contains(t, complaints[0], fmt.Sprintf("%s %d -> ", row.class, fd))
		})
	}
}

func TestDescriptorOfOthersIsClosed(t *testing.T) {
	fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	complaints := runFake(t, func(t testing.TB) {
		testkit.NoLeaks(t)
		require.NoError(t, unix.Close(fd))
	})
	require.Len(t, complaints, 1)
	require.Contains(t, complaints[0], "was open before and is closed")
}

func TestSharedMemoryIsLeft(t *testing.T) {
	var mapping []byte
	complaints := runFake(t, func(t testing.TB) {
		testkit.NoLeaks(t)
		var err error
		mapping, err = unix.Mmap(-1, 0, 4096, unix.PROT_READ, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
		require.NoError(t, err)
	})
	require.NoError(t, unix.Munmap(mapping))
	require.Len(t, complaints, 1)
	require.Contains(t, complaints[0], "shared mapping")
}

func TestProcessIsLeft(t *testing.T) {
	cmd := testkit.Command(t, sleeper)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	defer stdin.Close()
	complaints := runFake(t, func(t testing.TB) {
		testkit.NoLeaks(t)
		require.NoError(t, cmd.Start())
	})
	require.Contains(t, strings.Join(complaints, "\n"), "process "+strconv.Itoa(cmd.Process.Pid))
	require.Error(t, cmd.Wait(), "it was killed, so that it does not disturb the next test")
}

func TestOrphanIsSeen(t *testing.T) {
	testkit.NoLeaks(t)
	var pid int
	complaints := runFake(t, func(fake testing.TB) {
		testkit.NoLeaks(fake)
		out, err := testkit.Command(t, orphan).Output()
		require.NoError(fake, err)
		pid, err = strconv.Atoi(strings.TrimSpace(string(out)))
		require.NoError(fake, err, "the helper says %s", out)
	})
	require.Contains(t, strings.Join(complaints, "\n"), fmt.Sprintf("process %d (sleep)", pid))
	_, err := syscall.Wait4(pid, nil, 0, nil) // it leads a group, so NoLeaks leaves it to us
	require.NoError(t, err)
}

func TestChildren(t *testing.T) {
	testkit.NoLeaks(t)
	require.Empty(t, testkit.Children())
	cmd := testkit.Command(t, sleeper)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.Equal(t, []int{cmd.Process.Pid}, testkit.Children())
	require.NoError(t, stdin.Close())
	require.NoError(t, cmd.Wait())
	require.Empty(t, testkit.Children())
}
