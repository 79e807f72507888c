package faulttest_test

// Hosts in which somebody else takes the status of processes, and workers that leave something behind.

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

func TestO08StatusTakenByOthers(t *testing.T) {
	for _, tt := range []struct {
		name     string
		children int
		take     func(t *testing.T)
		all      bool // no status is left for us
	}{
		{"O08", 4, reapAll, false},
		{"O09", 4, func(*testing.T) { signal.Ignore(unix.SIGCHLD) }, true},
		{"C34", times(16, 60), reapAll, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if !alone(t) {
				return
			}
			testkit.NoLeaks(t)
			tt.take(t)
			unknown := endAll(t, tt.children)
			require.Positive(t, unknown, "ends whose status somebody else took")
			if tt.all {
				require.Equal(t, tt.children, unknown, "ends whose status the kernel took")
			}
		})
	}
}

// reapAll takes the status of whatever child of this process ends, as a careless init does.
func reapAll(t *testing.T) {
	t.Helper()
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	reaper := task.Go(func(ctx context.Context) {
		for {
			if _, err := unix.Wait4(-1, nil, 0, nil); err != unix.ECHILD {
				continue
			}
			select {
			case <-ended:
			case <-ctx.Done():
				return
			}
		}
	})
	t.Cleanup(func() {
		signal.Stop(ended)
		reaper.Stop()
	})
}

// endAll has workers exit and be killed, all at once, and returns of how many the status is unknown. Then the others are
// ended in order.
func endAll(t *testing.T, children int) (unknown int) {
	t.Helper()
	r := childtest.NewRig(t, childtest.Processes())
	for range children {
		r.Register(t, r.Job(), supervisor.Restart{Type: supervisor.Temporary}, supervisor.WithStartTimeout(testkit.Limit))
	}
	r.StartLink(t)
	pids := make([]int, children)
	for i, c := range r.Sup.Snapshot().Children {
		pids[i] = c.Pid
	}
	sent := make([]supervisor.SendPayload, children)
	for id := range children {
		sent[id], _ = r.Occupy(t, id)
	}
	for id, pid := range pids {
		if id%2 == 0 {
			require.NoError(t, unix.Kill(pid, unix.SIGKILL), "kill worker %d", id)
		} else {
			require.NoError(t, unix.Kill(pid, unix.SIGABRT), "abort worker %d", id)
		}
	}
	var verdicts []supervisor.RecvPayload
	testkit.Within(t, rawPrompt, func() {
		var err error
		verdicts, err = r.Sup.RecvAll(r.Ctx, sent, supervisor.IgnoreErr())
		require.NoError(t, err, "RecvAll")
	})
	for id, v := range verdicts {
		var e *supervisor.ExitError
		require.ErrorAs(t, v.Err, &e, "verdict of child %d", id)
		require.Equal(t, pids[id], e.Pid, "process of child %d", id)
		require.Empty(t, e.KilledBy, "reason of ours for the end of child %d", id)
		switch {
		case e.Code == -1 && e.Signal == 0:
			unknown++
			require.ErrorContains(t, v.Err, "its status is unknown", "verdict of child %d", id)
		case id%2 == 0:
			require.Equal(t, unix.SIGKILL, e.Signal, "signal that ended child %d", id)
		default:
			require.Equal(t, 2, e.Code, "exit code of child %d", id)
		}
	}
	for id := range min(children, 4) {
		require.NoError(t, r.Sup.Restart(r.Ctx, id), "Restart(%d)", id)
		r.Fine(t, id)
	}
	require.NoError(t, r.Sup.Shutdown(r.Ctx), "Shutdown: the status of an orderly end is not needed")
	require.Equal(t, map[string]int{"close": min(children, 4)}, r.Ledger.Counts(t), "orderly ends")
	// Where the kernel reaps, a process may be in its list for a moment after it was reported dead.
	testkit.Until(t, "no process is left, zombies included", func() bool { return len(testkit.Children()) == 0 })
	return unknown
}

// parent is the object of workers that have children of their own.
type parent struct{}

var newParent = supervisor.Define("faulttest.parent", func(context.Context) (parent, error) { return parent{}, nil })

// Start starts a process that has the worker's standard streams and its reply pipe open, and returns its id.
func (parent) Start(ctx context.Context, how string) (int, error) {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "sh", "-c", `trap "" TERM; echo ready; exec sleep 300`)
	cmd.Stderr = os.Stderr
	replies, err := unix.FcntlInt(4, unix.F_DUPFD_CLOEXEC, 10)
	if err != nil {
		return 0, err
	}
	f := os.NewFile(uintptr(replies), "replies")
	defer f.Close()
	cmd.ExtraFiles = []*os.File{os.Stdout, f}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: how == "session"}
	said, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		_, err = said.Read(make([]byte, len("ready\n")))
	}
	if err != nil {
		return 0, err
	}
	return cmd.Process.Pid, nil
}

// Exit ends the worker.
func (parent) Exit() { os.Exit(7) }

// Hang does nothing, whatever happens.
func (parent) Hang() { <-make(chan struct{}) }

// A descendant that stays in the worker's group ends with it, though it ignores SIGTERM; one that leaves is left alone, and
// holds up nothing.
func TestO10DescendantsHoldPipes(t *testing.T) {
	const bar = 3 * time.Second // from an end to the verdict and the next life, and for Shutdown; the descendant lasts for minutes
	for _, tt := range []struct {
		name, how string
		end       func(t *testing.T, sup *supervisor.Supervisor)
	}{
		{"C16", "group", exitOfParent},
		{"O10", "session", exitOfParent},
		{"C86", "group", hangOfParent},
		{"killed, a session of its own", "session", hangOfParent},
		{"orderly", "group", func(*testing.T, *supervisor.Supervisor) {}},
		{"orderly, a session of its own", "session", func(*testing.T, *supervisor.Supervisor) {}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			testkit.NoLeaks(t)
			sup := started(t, supervisor.Process, newParent, supervisor.Stop{Grace: 100 * time.Millisecond, TermGrace: 100 * time.Millisecond})
			pid, err := supervisor.Call[int](testkit.Context(t), sup, 0, "Start", tt.how)
			require.NoError(t, err, "start of a descendant")
			testkit.Within(t, bar, func() { tt.end(t, sup) })
			testkit.Within(t, bar, func() { shutdown(t, sup) })
			if tt.how == "session" {
				require.NoError(t, unix.Kill(pid, unix.SIGKILL), "the descendant is none of ours")
			}
			// It became a child of this process when the worker ended.
			var status unix.WaitStatus
			testkit.Within(t, bar, func() {
				for {
					if _, err = unix.Wait4(pid, &status, 0, nil); err != unix.EINTR { //nolint:errorlint // it is bare
						return
					}
				}
			})
			require.NoError(t, err, "wait for the descendant")
			require.Equal(t, unix.SIGKILL, status.Signal(), "what ended the descendant")
		})
	}
}

// exitOfParent ends the worker from within.
func exitOfParent(t *testing.T, sup *supervisor.Supervisor) {
	_, err := supervisor.Call[any](t.Context(), sup, 0, "Exit")
	var e *supervisor.ExitError
	require.ErrorAs(t, err, &e, "verdict of Exit")
	require.Equal(t, 7, e.Code, "exit code")
}

// hangOfParent ends a worker that heeds neither the stop message nor SIGTERM.
func hangOfParent(t *testing.T, sup *supervisor.Supervisor) {
	p := send(t, sup, supervisor.NewSendPayload(0, "Hang"))
	require.NoError(t, sup.Restart(t.Context(), 0), "Restart")
	got, err := sup.RecvAll(t.Context(), p, supervisor.IgnoreErr())
	require.NoError(t, err, "RecvAll")
	require.ErrorIs(t, got[0].Err, supervisor.ErrRestarted, "verdict of Hang")
}

// Many ends and many starts at once hold up neither each other nor the host's timers.
func TestC116ManyEndsAndStarts(t *testing.T) {
	testkit.NoLeaks(t)
	const bar = 5 * time.Second // the fault lasts for minutes
	r := childtest.NewRig(t, childtest.Processes())
	ending, starting := times(12, 300), times(4, 100)
	for range ending {
		r.Register(t, r.Job(), supervisor.Restart{Type: supervisor.Temporary}, supervisor.WithStartTimeout(testkit.Limit))
	}
	r.StartLink(t)
	r.Events.Wait(t, supervisor.EventStarted)
	latest := make(chan time.Duration, 1)
	clock := task.Go(func(ctx context.Context) {
		late := time.Duration(0)
		for ctx.Err() == nil {
			due := time.Now().Add(10 * time.Millisecond)
			<-time.After(time.Until(due))
			late = max(late, time.Since(due))
		}
		latest <- late
	})
	var starts []*task.Task
	errs := make(chan error, starting)
	for range starting {
		starts = append(starts, task.Go(func(context.Context) {
			_, err := r.Kind.Register(r.Ctx, r.Sup, r.Job())
			errs <- err
		}))
	}
	for id := range ending {
		r.Kind.Kill(t, r.Sup, id)
	}
	for range ending {
		r.Events.Wait(t, supervisor.EventGivenUp)
	}
	testkit.Within(t, bar, func() { testkit.Until(t, "no zombie is left", func() bool { return zombies(t) == 0 }) })
	for i, s := range starts {
		s.Wait()
		require.NoError(t, <-errs, "start %d", i)
	}
	clock.Stop()
	late := testkit.Receive(t, latest, "the clock")
	require.Less(t, late, bar*testkit.Slowdown, "how late a timer was")
	for id := ending; id < ending+starting; id++ {
		r.Fine(t, id)
	}
	shutdown(t, r.Sup)
}

// zombies counts the children of this process that nobody has waited for yet.
func zombies(t *testing.T) (n int) {
	t.Helper()
	for _, pid := range testkit.Children() {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err == nil && strings.Contains(string(stat), ") Z ") {
			n++
		}
	}
	return n
}
