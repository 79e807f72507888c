package faulttest_test

import (
	"context"
	"errors"
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
func TestH13FrozenHost(t *testing.T) {
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

// dozer answers after a while.
type dozer struct{}

var newDozer = supervisor.Define("faulttest.dozer", func(context.Context) (dozer, error) { return dozer{}, nil })

// Doze takes so long.
func (dozer) Doze(d time.Duration) string {
	<-time.After(d)
	return "done"
}

// lateHost asks a worker for something that comes after the deadline, and reports the verdicts.
var lateHost = testkit.Helper("late host", func() { say(callTooLate()) })

func callTooLate() (report hostReport, err error) {
	ctx := context.Background()
	sup, err := supervisor.New(supervisor.Process)
	if err != nil {
		return report, err
	}
	if _, err := sup.Register(ctx, newDozer); err != nil {
		return report, err
	}
	if err := sup.StartLink(ctx); err != nil {
		return report, err
	}
	report.Pids = []int{sup.Snapshot().Children[0].Pid}
	p := supervisor.NewSendPayload(0, "Doze", 600*time.Millisecond)
	p.Timeout = 400 * time.Millisecond
	if err := sup.Send(ctx, p); err != nil {
		return report, err
	}
	say(report, nil)
	got, err := sup.Recv(ctx, supervisor.IgnoreErr())
	if err != nil {
		return report, err
	}
	report.Text = []string{fmt.Sprintf("%v, timeout %v", got.Data, errors.Is(got.Err, supervisor.ErrTimeout))}
	return report, sup.Shutdown(ctx)
}

// The deadline passes while the host stands still, and so does the reply: when it goes on it may see either first, but the
// deadline has passed.
func TestH13DeadlineWhileFrozen(t *testing.T) {
	for range times(4, 40) {
		t.Run("", func(t *testing.T) {
			testkit.NoLeaks(t)
			h := startHost(t, lateHost)
			pids := h.report(t, 1).Pids
			h.signal(t, h.cmd.Process.Pid, syscall.SIGSTOP)
			testkit.Until(t, "the host stands still", func() bool { return processState(t, h.cmd.Process.Pid) == "T" })
			<-time.After(800 * time.Millisecond) // that is the fault
			h.signal(t, h.cmd.Process.Pid, syscall.SIGCONT)
			require.Equal(t, []string{"<nil>, timeout true"}, h.report(t, 1).Text, "verdict")
			h.gone(t, pids)
		})
	}
}

// processState is the letter of /proc/pid/stat.
func processState(t *testing.T, pid int) string {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err, "state of process %d", pid)
	_, rest, _ := strings.Cut(string(stat), ") ")
	return rest[:1]
}
