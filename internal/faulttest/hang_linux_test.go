package faulttest_test

// Watchers that stand still themselves, or are silent for long.

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// watchingHost watches two workers, the second of which has a request with a KillAfter under way all the time. For each line
// it goes on watching for a while, and reports its events; at the end of its input it waits for two lives to hang.
var watchingHost = testkit.Helper("watching host", func() { say(watchUntilWord()) })

// watchingLiveness is that of the host's workers.
var watchingLiveness = supervisor.Liveness{Every: 20 * time.Millisecond, Timeout: 100 * time.Millisecond * testkit.Slowdown}

func watchUntilWord() (report hostReport, err error) {
	ctx := context.Background()
	events := testkit.NewRecorder(func(e supervisor.Event) supervisor.EventKind { return e.Kind })
	hung := make(chan supervisor.Event, 2)
	sup, err := supervisor.New(supervisor.Process, supervisor.WithEvents(func(e supervisor.Event) {
		events.Record(e)
		if e.Kind == supervisor.EventHung {
			hung <- e
		}
	}))
	if err != nil {
		return report, err
	}
	for range 2 {
		if _, err := sup.Register(ctx, newWatchful.With(""), watchingLiveness, supervisor.WithConcurrency(2),
			supervisor.Restart{Type: supervisor.Temporary}, supervisor.Stop{TermGrace: 50 * time.Millisecond}); err != nil {
			return report, err
		}
	}
	if err := sup.StartLink(ctx); err != nil {
		return report, err
	}
	for _, c := range sup.Snapshot().Children {
		report.Pids = append(report.Pids, c.Pid)
	}
	killAfter, err := time.ParseDuration(os.Args[1])
	if err != nil {
		return report, err
	}
	p := supervisor.NewSendPayload(1, "Never")
	p.KillAfter = killAfter
	if err := sup.Send(ctx, p); err != nil {
		return report, err
	}
	for input := bufio.NewScanner(os.Stdin); ; {
		report.Text = nil
		for _, e := range events.All() {
			report.Text = append(report.Text, e.Kind.String())
		}
		say(report, nil)
		if !input.Scan() {
			break
		}
		if err := watchOn(ctx, sup); err != nil {
			return report, err
		}
	}
	report.Text = nil
	for range 2 {
		e := <-hung
		report.Text = append(report.Text, fmt.Sprintf("child %d: %v", e.ProcID, e.Err))
	}
	return report, sup.Shutdown(ctx)
}

// watchOn returns when each worker has been asked twice more.
func watchOn(ctx context.Context, sup *supervisor.Supervisor) error {
	for id := range 2 {
		before, err := supervisor.Call[int64](ctx, sup, id, "Asked")
		for now := before; err == nil && now < before+2; {
			<-time.After(watchingLiveness.Every)
			now, err = supervisor.Call[int64](ctx, sup, id, "Asked")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// freezeHost stops a host for a while.
func freezeHost(t *testing.T, h *host, d time.Duration) {
	t.Helper()
	h.signal(t, h.cmd.Process.Pid, syscall.SIGSTOP)
	testkit.Until(t, "the host stands still", func() bool { return processState(t, h.cmd.Process.Pid) == "T" })
	<-time.After(d) // that is the fault
	h.signal(t, h.cmd.Process.Pid, syscall.SIGCONT)
}

// goesOn tells the host to watch on, and asserts that nothing has happened.
func (h *host) goesOn(t *testing.T, pids []int) {
	t.Helper()
	input, ok := h.word.(io.Writer)
	require.True(t, ok, "%T can be written to", h.word)
	_, err := io.WriteString(input, "on\n")
	require.NoError(t, err, "give the host the word")
	r := h.report(t, 2)
	require.Equal(t, pids, r.Pids, "processes of the host")
	require.Equal(t, []string{"started", "started"}, r.Text, "events in the host")
	alive(t, pids)
}

// Nobody is taken for dead because whoever watches stood still: neither one that is asked for signs of life, nor a handler
// whose time would be over long ago. When the host goes on, it finds both a worker that has frozen, and that handler.
func TestH13FrozenWatch(t *testing.T) {
	testkit.NoLeaks(t)
	rounds := times(6, 20)
	const freeze = 500 * time.Millisecond
	killAfter := time.Duration(rounds)*freeze - freeze/2 // less than the host stands still
	h := startHost(t, watchingHost, killAfter.String())
	pids := h.report(t, 2).Pids
	h.goesOn(t, pids)
	for range rounds {
		freezeHost(t, h, freeze)
		h.goesOn(t, pids)
	}
	h.signal(t, pids[0], syscall.SIGSTOP)
	require.NoError(t, h.word.Close(), "end the host's input")
	require.ElementsMatch(t, []string{
		"child 0: supervisor: no sign of life for " + watchingLiveness.Timeout.String(),
		"child 1: supervisor: Never ran for longer than its KillAfter of " + killAfter.String(),
	}, h.report(t, 2).Text, "lives that hung")
	h.gone(t, pids)
}

// A host that is silent for as long as a hundred questions take is none that a worker gives up.
func TestC78SilentHost(t *testing.T) {
	testkit.NoLeaks(t)
	h := startHost(t, watchingHost, "1m")
	pids := h.report(t, 2).Pids
	h.goesOn(t, pids)
	for range times(1, 10) {
		freezeHost(t, h, 100*watchingLiveness.Every)
		h.goesOn(t, pids)
	}
	h.signal(t, h.cmd.Process.Pid, syscall.SIGKILL)
	h.gone(t, pids)
}

func TestC08LivenessLeaksNothing(t *testing.T) {
	testkit.NoLeaks(t)
	r := childtest.NewRig(t, childtest.Processes())
	often := supervisor.Liveness{Every: 10 * time.Millisecond, Timeout: testkit.Limit}
	r.ID = register(t, r.Sup, newWatchful.With(""), often)
	r.Other = register(t, r.Sup, newWatchful.With(""), often)
	require.NoError(t, r.Sup.StartLink(context.Background()), "StartLink")
	ctx := context.Background()
	asked := func(n int64) {
		testkit.Until(t, "they are asked", func() bool {
			all, err := supervisor.Broadcast[int64](ctx, r.Sup, "Asked")
			require.NoError(t, err, "Asked")
			return all[0].Value >= n && all[1].Value >= n
		})
	}
	asked(10)
	was := []supervisor.ChildSnapshot{r.Child(t, r.ID), r.Child(t, r.Other)}
	open, theirs := openDescriptors(t), descriptorsOf(t, strconv.Itoa(was[0].Pid))
	for n := range int64(times(4, 120)) { // half a second each
		asked(10 + 50*(n+1))
		require.Equal(t, open, openDescriptors(t), "descriptors of the host")
		require.Equal(t, theirs, descriptorsOf(t, strconv.Itoa(was[0].Pid)), "descriptors of a worker")
	}
	for _, c := range was {
		require.Equal(t, c.Incarnation, r.Child(t, c.ProcID).Incarnation, "life of child %d", c.ProcID)
	}
	shutdown(t, r.Sup)
}
