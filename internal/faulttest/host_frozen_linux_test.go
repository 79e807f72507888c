package faulttest_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

// callingHost calls its two workers all the time, until it gets the word. It reports their pids, and at the end what happened
// to them.
var callingHost = testkit.Helper("calling host", func() { say(callUntilWord()) })

func callUntilWord() (report hostReport, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	events := testkit.NewRecorder(func(e supervisor.Event) supervisor.EventKind { return e.Kind })
	sup, err := supervisor.New(supervisor.Process, supervisor.WithEvents(events.Record))
	if err != nil {
		return report, err
	}
	for range 2 {
		if _, err := sup.Register(ctx, childtest.Spec(childtest.Job{})); err != nil {
			return report, err
		}
	}
	if err := sup.StartLink(ctx); err != nil {
		return report, err
	}
	for id := range 2 {
		pid, err := supervisor.Call[int](ctx, sup, id, "Pid")
		if err != nil {
			return report, err
		}
		report.Pids = append(report.Pids, pid)
	}
	say(report, nil)
	word := task.Go(func(context.Context) { awaitWord() })
	for calls, over := 0, false; !over; calls++ {
		select {
		case <-word.Done():
			over = true // after one more call
		default:
		}
		got, err := supervisor.Call[string](ctx, sup, calls%2, "Text", "hello")
		if err != nil || got != "hello" {
			return report, fmt.Errorf("call %d: %q, %w", calls, got, err)
		}
	}
	if err := sup.Shutdown(context.Background()); err != nil {
		return report, err
	}
	for _, e := range events.All() {
		report.Text = append(report.Text, e.Kind.String())
	}
	return report, nil
}

// A host that stands still, as under a debugger, in a frozen container, or on a machine that sleeps, takes nobody for dead when
// it goes on, and its workers have waited.
func TestHostFrozen(t *testing.T) {
	testkit.NoLeaks(t)
	h := startHost(t, callingHost)
	pids := h.report(t, 2).Pids
	for range times(2, 20) {
		h.signal(t, h.cmd.Process.Pid, syscall.SIGSTOP)
		testkit.Until(t, "the host stands still", func() bool { return processState(t, h.cmd.Process.Pid) == "T" })
		<-time.After(300 * time.Millisecond) // that is the fault
		alive(t, pids)
		h.signal(t, h.cmd.Process.Pid, syscall.SIGCONT)
		testkit.Until(t, "the host goes on", func() bool { return processState(t, h.cmd.Process.Pid) != "T" })
	}
	require.NoError(t, h.word.Close(), "give the host the word")
	require.Equal(t, []string{"started", "started", "stopped", "stopped", "shutdown"}, h.report(t, 2).Text, "events in the host")
	h.gone(t, pids)
}

// processState is the letter of /proc/pid/stat.
func processState(t *testing.T, pid int) string {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err, "state of process %d", pid)
	_, rest, _ := strings.Cut(string(stat), ") ")
	return rest[:1]
}
