//go:build linux || darwin

package proc_test

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/proc"
)

func TestWorkerAnswers(t *testing.T) {
	checkLeaks(t)
	c := start(t, new(proc.Starter), proc.Config{})
	require.Equal(t, "hello", c.ask("echo hello"))
	require.Positive(t, c.Pid(), "Pid")
}

func TestEnds(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func(c *child)
		want proc.Status
	}{
		{"requests closed", func(c *child) { _ = c.Requests.Close() }, proc.Status{Code: 0}},
		{"all closed", func(c *child) { _ = c.Close() }, proc.Status{Code: 0}},
		{"exit 0", func(c *child) { c.tell("exit 0") }, proc.Status{Code: 0}},
		{"exit 7", func(c *child) { c.tell("exit 7") }, proc.Status{Code: 7}},
		{"Kill", func(c *child) { c.Kill() }, proc.Status{Code: -1, Signal: syscall.SIGKILL}},
		{"Terminate", func(c *child) { c.Terminate() }, proc.Status{Code: -1, Signal: syscall.SIGTERM}},
		{"P04 SIGSEGV", func(c *child) { _ = c.Signal(false, syscall.SIGSEGV) }, proc.Status{Code: 2}},
		{"P14 Kill while stopped", func(c *child) {
			_ = c.Signal(true, syscall.SIGSTOP)
			c.Kill()
		}, proc.Status{Code: -1, Signal: syscall.SIGKILL}},
		{"panic", func(c *child) { c.tell("crash boom") }, proc.Status{Code: 2}},
		{"KillGroup", func(c *child) { c.tell("kill-group") }, proc.Status{Code: -1, Signal: syscall.SIGKILL}},
	} {
		t.Run(test.name, func(t *testing.T) {
			checkLeaks(t)
			c := start(t, new(proc.Starter), proc.Config{})
			require.Equal(t, "up", c.ask("echo up"))
			test.end(c)
			got := c.end()
			require.True(t, got.Known, "status is known")
			require.Positive(t, got.User+got.System, "CPU time")
			test.want.Known, test.want.User, test.want.System = true, got.User, got.System
			require.Equal(t, test.want, got, "Wait")
		})
	}
}

func TestWaitFromManyGoroutines(t *testing.T) {
	checkLeaks(t)
	c := start(t, new(proc.Starter), proc.Config{})
	var wg sync.WaitGroup
	statuses := make([]proc.Status, 8)
	for i := range statuses {
		wg.Go(func() { statuses[i] = c.Wait() })
	}
	for range 8 {
		wg.Go(func() { _ = c.Signal(false, syscall.SIGCONT) })
	}
	c.tell("exit 7")
	wg.Wait()
	for i, got := range statuses {
		require.Equal(t, statuses[0], got, "status of waiter %d", i)
	}
	require.Equal(t, 7, statuses[0].Code, "exit code")
}

func TestSignalsAfterTheEndAreHarmless(t *testing.T) {
	checkLeaks(t)
	c := start(t, new(proc.Starter), proc.Config{})
	c.tell("exit 0")
	c.end()
	require.NoError(t, c.Signal(false, syscall.SIGKILL), "Signal to the process")
	require.NoError(t, c.Signal(true, syscall.SIGKILL), "Signal to the group")
	c.Terminate()
	c.Kill()
	require.Zero(t, c.end().Code, "status stays")
	require.NoError(t, c.Close(), "Close")
	require.NoError(t, c.Close(), "second Close")
}

func TestSignalRefused(t *testing.T) {
	checkLeaks(t)
	c := start(t, new(proc.Starter), proc.Config{})
	require.ErrorIs(t, c.Signal(false, syscall.Signal(4096)), syscall.EINVAL, "a signal that does not exist")
}

func TestOutput(t *testing.T) {
	checkLeaks(t)
	c := start(t, new(proc.Starter), proc.Config{})
	require.Equal(t, "done", c.ask("print hello"))
	c.tell("exit 0")
	require.Equal(t, "out hello\n", readAll(t, c.Stdout), "standard output")
	require.Equal(t, "err hello\n", readAll(t, c.Stderr), "standard error")
	require.Empty(t, readAll(t, c.Replies), "replies end too")
}

func TestConfig(t *testing.T) {
	checkLeaks(t)
	self, err := os.Executable()
	require.NoError(t, err)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	c := start(t, new(proc.Starter), proc.Config{
		Path: self, Argv0: "name", Args: []string{"first", "second"}, Env: []string{"A=1", "SUPERVISOR_WORKER=bad"}, Dir: dir,
	})
	require.Equal(t, `"name first second"`, c.ask("args"))
	// Without PWD in it, so that the environment is exactly what was given.
	require.Equal(t, `"A=1"`, c.ask("env"), "environment without the marker")
}

func TestFilesOfTheUser(t *testing.T) {
	checkLeaks(t)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = r.Close() }()
	c := start(t, new(proc.Starter), proc.Config{Files: []*os.File{w}})
	require.NoError(t, w.SetWriteDeadline(time.Now().Add(time.Hour)), "the file is still in the poller")
	require.NoError(t, w.Close())
	require.Equal(t, "1 <nil>", c.ask("files hello"))
	c.tell("exit 0")
	require.Equal(t, "hello", readAll(t, r))
}

// O15: a blocked reader can be woken.
func TestFilesAreNonblocking(t *testing.T) {
	checkLeaks(t)
	c := start(t, new(proc.Starter), proc.Config{})
	for _, f := range []*os.File{c.Replies, c.Control, c.Stdout, c.Stderr} {
		require.NoError(t, f.SetReadDeadline(time.Now()), "SetReadDeadline of %s", f.Name())
		_, err := f.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded, "read of %s", f.Name())
		require.NoError(t, f.SetReadDeadline(time.Time{}), "SetReadDeadline of %s", f.Name())
	}
	woken := make(chan error, 1)
	go func() {
		_, err := c.Replies.Read(make([]byte, 1))
		woken <- err
	}()
	require.NoError(t, c.Close())
	require.ErrorIs(t, <-woken, os.ErrClosed, "a reader after Close")
}

// P03: the write of a frame that the worker does not read ends with the worker, and without SIGPIPE.
func TestBlockedWriteEndsWithTheWorker(t *testing.T) {
	checkLeaks(t)
	c := start(t, new(proc.Starter), proc.Config{})
	require.Equal(t, "up", c.ask("echo up"))
	require.NoError(t, c.Signal(true, syscall.SIGSTOP))
	written := make(chan error, 1)
	go func() {
		_, err := c.Requests.Write(make([]byte, 8<<20))
		written <- err
	}()
	c.Kill()
	require.ErrorIs(t, <-written, syscall.EPIPE)
}

func TestGroupDiesWithItsLeader(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func(c *child)
	}{
		{"Kill", func(c *child) { c.Kill() }},
		{"leader killed", func(c *child) { _ = c.Signal(false, syscall.SIGKILL) }},
		{"leader exits", func(c *child) { c.tell("exit 0") }},
	} {
		t.Run(test.name, func(t *testing.T) {
			checkLeaks(t)
			c := start(t, new(proc.Starter), proc.Config{})
			c.askPid("spawn")
			test.end(c)
			c.end()
			// O10: the grandchild holds the worker's output; its end is the end of the grandchild.
			readAll(t, c.Stdout)
		})
	}
}

func TestCrashOutput(t *testing.T) {
	checkLeaks(t)
	c := start(t, new(proc.Starter), proc.Config{})
	c.tell("crash boom")
	trace := readAll(t, c.Control)
	require.Contains(t, trace, "panic: boom", "trace on the control socket")
	require.Contains(t, trace, "goroutine ", "trace on the control socket")
	require.Contains(t, readAll(t, c.Stderr), "panic: boom", "trace on standard error")
}

func TestHeldSignals(t *testing.T) {
	checkLeaks(t)
	c := start(t, new(proc.Starter), proc.Config{})
	require.Equal(t, "done", c.ask("hold"))
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP} {
		require.NoError(t, c.Signal(true, s), "Signal(%v)", s)
	}
	require.Equal(t, "alive", c.ask("echo alive"), "after SIGINT and SIGHUP")
	c.Terminate()
	require.Equal(t, "term", c.hear(), "at SIGTERM")
	require.Equal(t, "alive", c.ask("echo alive"), "after SIGTERM")
}

// A worker that did not lead its group must not kill it: a shell stands for a wrapper that does not exec.
func TestKillGroupOfAnother(t *testing.T) {
	checkLeaks(t)
	self, err := os.Executable()
	require.NoError(t, err)
	c := start(t, new(proc.Starter), proc.Config{Path: "sh", Args: []string{"-c", `"$0"; echo status $?`, self}})
	c.tell("kill-group")
	require.Equal(t, "status 1\n", readAll(t, c.Stdout), "the wrapper outlives its worker")
	require.Zero(t, c.end().Code, "exit code of the wrapper")
}

func TestMarkerWithoutDescriptorsIsIgnored(t *testing.T) {
	checkLeaks(t)
	self, err := os.Executable()
	require.NoError(t, err)
	// The test binary, told to list no tests, in a shell that closes what the worker would inherit.
	for _, value := range []string{"1,0", "1,-1", "2,0", "", "junk", "1,999999999"} {
		c := start(t, new(proc.Starter), proc.Config{
			Path: "sh", Args: []string{"-c", `SUPERVISOR_WORKER="$1" "$0" -test.list=^$ 3<&- 4>&- 5>&-; echo status $?`, self, value},
		})
		require.Equal(t, "status 0\n", readAll(t, c.Stdout), "marker %q", value)
		c.end()
	}
}

func TestFailedStarts(t *testing.T) {
	checkLeaks(t)
	plain := filepath.Join(t.TempDir(), "plain")
	require.NoError(t, os.WriteFile(plain, []byte("text"), 0o600))
	closed, err := os.Open(plain)
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	var s proc.Starter
	for _, test := range []struct {
		name string
		cfg  proc.Config
		want error
	}{
		{"C92 no such file", proc.Config{Path: "/does/not/exist"}, syscall.ENOENT},
		{"no such directory", proc.Config{Dir: "/does/not/exist"}, syscall.ENOENT},
		{"not executable", proc.Config{Path: plain}, syscall.EACCES},
		{"O03 environment too large", proc.Config{Env: []string{"A=" + strings.Repeat("x", 8<<20)}}, syscall.E2BIG},
		{"zero byte in an argument", proc.Config{Args: []string{"a\x00b"}}, syscall.EINVAL},
		{"closed file", proc.Config{Files: []*os.File{closed}}, os.ErrClosed},
		{"nil file", proc.Config{Files: []*os.File{nil}}, os.ErrInvalid},
	} {
		t.Run(test.name, func(t *testing.T) {
			checkLeaks(t)
			p, err := s.Start(test.cfg)
			require.ErrorIs(t, err, test.want, "Start")
			require.Nil(t, p, "Process")
			require.ErrorContains(t, err, "proc: start ", "Start")
		})
	}
	require.Equal(t, "works", start(t, &s, proc.Config{}).ask("echo works"), "a start after the failed ones")
}

func TestControlGoesBothWays(t *testing.T) {
	checkLeaks(t)
	// The shell copies one line from its control socket back to it.
	c := start(t, new(proc.Starter), proc.Config{Path: "sh", Args: []string{"-c", "read line <&5; echo $line >&5"}})
	_, err := io.WriteString(c.Control, "hello\n")
	require.NoError(t, err)
	line, err := bufio.NewReader(c.Control).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "hello\n", line)
}
