//go:build linux || darwin

package proc_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/workerlink/supervisor/internal/proc"
)

// wait is how long a test waits for an event that comes at once on an idle machine.
const wait = 20 * time.Second

// The test binary plays three parts: the tests, a worker, and a host of its own that can be killed.
func TestMain(m *testing.M) {
	if w, ok := proc.Inherited(); ok {
		serve(w)
	}
	if part := os.Getenv("PROC_TEST_HOST"); part != "" {
		playHost(part)
	}
	adoptOrphans()
	goleak.VerifyTestMain(m, goleak.Cleanup(coverWorkers()))
}

// coverWorkers gives workers a place for their coverage, which they would complain about on standard error, if coverage
// is asked for at all. It returns the end of the program.
func coverWorkers() (exit func(code int)) {
	if testing.CoverMode() == "" {
		return os.Exit
	}
	dir, err := os.MkdirTemp("", "proc")
	if err == nil {
		err = os.Setenv(coverDir, dir)
	}
	if err != nil {
		panic(err)
	}
	return func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}
}

const coverDir = "GOCOVERDIR"

// serve is the worker: it answers each line of its requests with one line, and ends when they end.
func serve(w *proc.Worker) {
	s := &server{w: w, atEnd: func() { os.Exit(0) }}
	requests := bufio.NewScanner(w.Requests)
	for requests.Scan() {
		command, arg, _ := strings.Cut(requests.Text(), " ")
		s.reply(s.do(command, arg))
	}
	s.atEnd()
}

type server struct {
	w     *proc.Worker
	atEnd func()
}

func (s *server) reply(line string) {
	if _, err := s.w.Replies.WriteString(line + "\n"); err != nil {
		os.Exit(3)
	}
}

func (s *server) do(command, arg string) string {
	switch command {
	case "echo":
		return arg
	case "exit":
		code, _ := strconv.Atoi(arg)
		os.Exit(code)
	case "print":
		_, _ = fmt.Fprintln(os.Stdout, "out", arg)
		_, _ = fmt.Fprintln(os.Stderr, "err", arg)
	case "crash":
		if err := s.w.SetCrashOutput(); err != nil {
			return err.Error()
		}
		go panic(arg) // out of reach of any recover
		select {}
	case "crash-output":
		return fmt.Sprint(s.w.SetCrashOutput())
	case "env":
		return strconv.Quote(strings.Join(os.Environ(), " "))
	case "args":
		return strconv.Quote(strings.Join(os.Args, " "))
	case "files":
		f := os.NewFile(6, "6")
		_, err := f.WriteString(arg)
		return fmt.Sprint(s.w.Files, err)
	case "spawn":
		cmd := exec.CommandContext(context.Background(), "sleep", "300")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Start(); err != nil {
			return err.Error()
		}
		return strconv.Itoa(cmd.Process.Pid)
	case "hold":
		s.w.HoldSignals(func() { s.w.KillGroup() }, func() {
			_, _ = s.w.Replies.WriteString("term\n") // the host may be about to die: see HoldSignals
		})
	case "kill-group":
		s.w.KillGroup()
	case "kill-group-at-end":
		s.atEnd = s.w.KillGroup
	case "die-by-signal-only":
		s.w.HoldSignals(func() { s.w.KillGroup() }, func() {})
		s.atEnd = func() { select {} }
	case "name":
		proc.SetName(arg)
	default:
		return s.doOnSystem(command)
	}
	return "done"
}

// child is a worker as a test sees it.
type child struct {
	*proc.Process
	t       testing.TB
	replies *bufio.Reader
}

// start starts a worker, by default one that serves. It is killed at the end of the test, if it lives.
func start(t testing.TB, s *proc.Starter, cfg proc.Config) *child {
	t.Helper()
	if cfg.Env == nil {
		cfg.Env = workerEnv()
	}
	p, err := s.Start(cfg)
	require.NoError(t, err, "Start(%+v)", cfg)
	return adopt(t, p)
}

// workerEnv is an environment in which a worker finds programs, and does not sleep a second as it ends under the race
// detector.
func workerEnv() []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"}
	if dir := os.Getenv(coverDir); dir != "" {
		env = append(env, coverDir+"="+dir)
	}
	return env
}

// adopt is the part of start that comes after a successful Start.
func adopt(t testing.TB, p *proc.Process) *child {
	t.Cleanup(func() {
		p.Kill()
		p.Wait()
		require.NoError(t, p.Close(), "Close")
	})
	return &child{Process: p, t: t, replies: bufio.NewReader(p.Replies)}
}

// ask sends a command and returns the reply.
func (c *child) ask(command string) string {
	c.t.Helper()
	c.tell(command)
	return c.hear()
}

func (c *child) tell(command string) {
	c.t.Helper()
	_, err := c.Requests.WriteString(command + "\n")
	require.NoError(c.t, err, "write %q to the worker", command)
}

func (c *child) hear() string {
	c.t.Helper()
	require.NoError(c.t, c.Replies.SetReadDeadline(time.Now().Add(wait)), "SetReadDeadline")
	line, err := c.replies.ReadString('\n')
	require.NoError(c.t, err, "read the worker's reply")
	return strings.TrimSuffix(line, "\n")
}

// askPid is ask for a reply that is a pid.
func (c *child) askPid(command string) int {
	c.t.Helper()
	reply := c.ask(command)
	pid, err := strconv.Atoi(reply)
	require.NoError(c.t, err, "reply to %q is no pid", command)
	return pid
}

// end waits for the end of the worker, within the test's patience.
func (c *child) end() proc.Status {
	c.t.Helper()
	ended := make(chan proc.Status, 1)
	go func() { ended <- c.Wait() }()
	select {
	case status := <-ended:
		return status
	case <-time.After(wait):
		require.FailNow(c.t, "Wait hangs")
		return proc.Status{}
	}
}

// readAll reads until the end of the stream, within the test's patience.
func readAll(t testing.TB, f *os.File) string {
	t.Helper()
	require.NoError(t, f.SetReadDeadline(time.Now().Add(wait)), "SetReadDeadline")
	b, err := io.ReadAll(f)
	require.NoError(t, err, "read %s to its end", f.Name())
	return string(b)
}
