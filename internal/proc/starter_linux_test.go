package proc_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/workerlink/supervisor/internal/proc"
)

// The parent-death signal is bound to a thread, which must not be the caller's.
func TestWorkerOutlivesTheStartingThread(t *testing.T) {
	checkLeaks(t)
	var s proc.Starter
	started := make(chan *proc.Process, 1)
	thread := make(chan int, 1)
	go onDoomedThread(func() {
		p, err := s.Start(proc.Config{Env: workerEnv()})
		if err != nil {
			t.Error(err)
		}
		thread <- unix.Gettid()
		started <- p
	})
	dir := "/proc/self/task/" + strconv.Itoa(<-thread)
	p := <-started
	require.NotNil(t, p, "Process")
	c := adopt(t, p)
	require.Eventually(t, func() bool {
		_, err := os.Stat(dir)
		return os.IsNotExist(err)
	}, wait, time.Millisecond, "the starting thread ends")
	require.Equal(t, "alive", c.ask("echo alive"))
}

// onDoomedThread runs f on a thread that ends when it returns.
func onDoomedThread(f func()) {
	runtime.LockOSThread() // and never unlock, which ends the thread, unless it is the main one
	if unix.Gettid() != unix.Getpid() {
		f()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		onDoomedThread(f)
	}()
	<-done
	runtime.UnlockOSThread()
}

func TestStartThreadLastsAsLongAsProcesses(t *testing.T) {
	checkLeaks(t)
	var s proc.Starter
	require.False(t, hasStartThread(), "start thread before the first Start")
	a, b := start(t, &s, proc.Config{}), start(t, &s, proc.Config{})
	a.Kill()
	a.end()
	require.True(t, hasStartThread(), "start thread with one process left")
	require.Equal(t, "alive", b.ask("echo alive"))
	b.Kill()
	b.end()
	require.Eventually(t, func() bool { return !hasStartThread() }, wait, time.Millisecond, "start thread after the last process")
	require.Equal(t, "again", start(t, &s, proc.Config{}).ask("echo again"), "a new thread")
}

func hasStartThread() bool {
	buf := make([]byte, 1<<20)
	return strings.Contains(string(buf[:runtime.Stack(buf, true)]), "startThread")
}

// Neither a thread nor more than six descriptors are spent on a process.
func TestCostOfAProcess(t *testing.T) {
	checkLeaks(t)
	const processes = 40
	var s proc.Starter
	first := start(t, &s, proc.Config{})
	require.Equal(t, "up", first.ask("echo up"))
	open, threads := len(descriptors(t, "self")), countThreads(t)
	children := make([]*child, processes)
	ended := make(chan proc.Status, processes)
	for i := range children {
		children[i] = start(t, &s, proc.Config{})
		go func() { ended <- children[i].Wait() }()
	}
	for _, c := range children {
		require.Equal(t, "up", c.ask("echo up"))
	}
	require.LessOrEqual(t, len(descriptors(t, "self"))-open, 6*processes, "descriptors of %d processes", processes)
	require.Less(t, countThreads(t)-threads, processes/2, "threads for %d processes", processes)
	for _, c := range children {
		c.Kill()
	}
	for range children {
		require.Equal(t, unix.SIGKILL, (<-ended).Signal)
	}
}

func countThreads(t *testing.T) int {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	require.NoError(t, err)
	return len(tasks)
}

// O01: whichever descriptor is the one too many, nothing is left of the failed start.
func TestDescriptorsRunOut(t *testing.T) {
	checkLeaks(t)
	var s proc.Starter
	c := start(t, &s, proc.Config{})
	require.Equal(t, "up", c.ask("echo up"))
	open, children := descriptors(t, "self"), childPids(t)
	var old unix.Rlimit
	require.NoError(t, unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &old))
	defer func() { require.NoError(t, unix.Prlimit(0, unix.RLIMIT_NOFILE, &old, nil)) }()
	failures := 0
	for limit := uint64(len(open)); ; limit++ {
		require.NoError(t, unix.Prlimit(0, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: old.Max}, nil))
		p, err := s.Start(proc.Config{})
		require.NoError(t, unix.Prlimit(0, unix.RLIMIT_NOFILE, &old, nil))
		if err == nil {
			require.Equal(t, "alive", adopt(t, p).ask("echo alive"), "a start with enough descriptors")
			break
		}
		failures++
		require.ErrorIs(t, err, unix.EMFILE, "Start with a limit of %d", limit)
		require.Equal(t, open, descriptors(t, "self"), "descriptors after a failed Start with a limit of %d", limit)
		require.ElementsMatch(t, children, childPids(t), "processes after a failed Start with a limit of %d", limit)
	}
	require.Greater(t, failures, 10, "each descriptor was one too many once")
	require.Equal(t, "alive", c.ask("echo alive"), "the process that was there before")
}

// O03: a binary that is still open for writing is tried again, for a while.
func TestBusyBinary(t *testing.T) {
	checkLeaks(t)
	path := filepath.Join(t.TempDir(), "program")
	binary, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, binary, 0o700))
	writer, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	var s proc.Starter
	_, err = s.Start(proc.Config{Path: path})
	require.ErrorIs(t, err, unix.ETXTBSY, "Start of a binary that stays open")
	time.AfterFunc(10*time.Millisecond, func() { _ = writer.Close() })
	require.Equal(t, "up", start(t, &s, proc.Config{Path: path}).ask("echo up"))
}
