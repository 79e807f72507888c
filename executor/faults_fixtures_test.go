package executor_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/executor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// often is how often a test does what it does: plain times, fewer under the race detector or with -short, and as often as it takes with
// the tag soak.
func often(plain, soaked int) int {
	switch {
	case soak:
		return soaked
	case testkit.Slowdown > 1 || testing.Short():
		return max(1, plain/3)
	default:
		return plain
	}
}

// ofType counts events by their kind.
func ofType(e executor.Event) executor.EventKind { return e.Kind }

// pidsOf returns the processes that have been workers so far.
func pidsOf(events *testkit.Recorder[executor.Event, executor.EventKind]) (pids []int) {
	for _, e := range events.All() {
		if e.Kind == executor.EventStarted {
			pids = append(pids, e.Pid)
		}
	}
	return pids
}

// strike kills a process that may have ended by itself.
func strike(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}

// allEnded waits until processes have ended, which must be within d.
func allEnded(t testing.TB, d time.Duration, pids ...int) {
	t.Helper()
	testkit.Within(t, d, func() {
		testkit.Until(t, fmt.Sprint("processes have ended: ", pids), func() bool {
			return !slices.ContainsFunc(pids, func(pid int) bool { return !ended(pid) })
		})
	})
}

// order is what a task of obey does: it enters its id into the ledger, and then does what it is told to until somebody
// makes a file of the name Until, if there is one.
type order struct{ Ledger, ID, Do, Until string }

// obey is the task of tests that look at processes from outside. Its value is its process.
var obey = executor.Define("test.obey", func(ctx context.Context, o order) (int, error) {
	if o.Do == "deaf" { // before anybody can know that it runs
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
	}
	if o.Ledger != "" {
		if err := (testkit.Ledger{Path: o.Ledger}).Enter(o.ID + " " + strconv.Itoa(os.Getpid())); err != nil {
			return 0, err
		}
	}
	switch o.Do {
	case "wait":
		<-ctx.Done()
		return 0, context.Cause(ctx)
	case "deaf":
		select {}
	case "exit":
		os.Exit(3)
	case "panic":
		panic(o.ID)
	}
	for o.Until != "" {
		if _, err := os.Stat(o.Until); err == nil {
			break
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
	return os.Getpid(), nil
})

// pidIn waits for the execution of the task id, and returns its process.
func pidIn(t testing.TB, ledger testkit.Ledger, id string) (pid int) {
	t.Helper()
	testkit.Until(t, "the task "+id+" runs", func() bool {
		for line := range ledger.Counts(t) {
			if name, number, _ := strings.Cut(line, " "); name == id {
				pid, _ = strconv.Atoi(number)
				return true
			}
		}
		return false
	})
	return pid
}

// onceEach checks that n tasks were executed once each, but for some that were not.
func onceEach(t testing.TB, ledger testkit.Ledger, n, missing int) {
	t.Helper()
	executions := make(map[string]int)
	for line, times := range ledger.Counts(t) {
		id, _, _ := strings.Cut(line, " ")
		executions[id] += times
	}
	for id, times := range executions {
		require.Equal(t, 1, times, "executions of %s", id)
	}
	require.LessOrEqual(t, len(executions), n, "tasks that were executed")
	require.GreaterOrEqual(t, len(executions), n-missing, "tasks that were executed")
}

// host is a helper process that has an executor.
type host struct {
	*exec.Cmd
	lines *bufio.Scanner
}

// startHost starts a helper whose output can be read.
func startHost(t testing.TB, name string, args ...string) *host {
	t.Helper()
	h := &host{Cmd: testkit.Command(t, name, args...)}
	out, err := h.StdoutPipe()
	require.NoError(t, err, "pipe of the host")
	h.lines = bufio.NewScanner(out)
	require.NoError(t, h.Start(), "start the host")
	return h
}

// line returns the host's next line, which has to begin with a word.
func (h *host) line(t testing.TB, word string) string {
	t.Helper()
	require.True(t, h.lines.Scan(), "the host has ended before it said %q", word)
	rest, ok := strings.CutPrefix(h.lines.Text(), word)
	require.True(t, ok, "the host says %q, not %q", h.lines.Text(), word)
	return strings.TrimSpace(rest)
}

// numbers returns those of the host's next line.
func (h *host) numbers(t testing.TB, word string) (n []int) {
	t.Helper()
	for _, field := range strings.Fields(h.line(t, word)) {
		i, err := strconv.Atoi(field)
		require.NoError(t, err, "a number of the host")
		n = append(n, i)
	}
	return n
}

// must ends a helper that cannot go on.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// create makes an empty file, which is there until the test ends.
func create(t testing.TB, name string) {
	t.Helper()
	t.Cleanup(func() { _ = os.Remove(name) }) // or it counts as left behind
	require.NoError(t, os.WriteFile(name, nil, 0o600), "create %s", name)
}
