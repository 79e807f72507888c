//go:build linux || darwin

package supervisor_test

// What only workers show: they can be stopped for a while, killed, and sent more than a pipe holds. What is tested
// here was wrong once.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

// hold stops the worker of child 0 as a debugger would, and waits until nothing of it runs. letGo continues it.
func hold(t testing.TB, sup *supervisor.Supervisor) (letGo func()) {
	t.Helper()
	pid := sup.Snapshot().Children[0].Pid
	require.NotZero(t, pid, "process id of child 0")
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP), "SIGSTOP")
	var status syscall.WaitStatus
	_, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil)
	for errors.Is(err, syscall.EINTR) {
		_, err = syscall.Wait4(pid, &status, syscall.WUNTRACED, nil)
	}
	require.NoError(t, err, "wait for the worker to stop")
	require.True(t, status.Stopped(), "the worker has stopped: %v", status)
	return func() {
		t.Helper()
		require.NoError(t, syscall.Kill(pid, syscall.SIGCONT), "SIGCONT")
	}
}

// withWorker returns a running supervisor with one worker.
func withWorker(t testing.TB, spec supervisor.Spec, opts ...supervisor.ChildOption) *supervisor.Supervisor {
	t.Helper()
	sup := newSupervisor(t, supervisor.Process)
	register(t, sup, spec, opts...)
	require.NoError(t, sup.StartLink(context.Background()), "StartLink")
	return sup
}

// Nobody wants it any more, so the next worker must not get it.
func TestCancelBetweenTwoWorkers(t *testing.T) {
	testkit.NoLeaks(t)
	ctx := testkit.Context(t)
	sup := withWorker(t, newStepper.With(0), supervisor.Stop{Grace: testkit.Limit})
	letGo := hold(t, sup)
	restarted := make(chan error, 1)
	task.Go(func(context.Context) { restarted <- sup.Restart(ctx, 0) })
	testkit.Until(t, "the worker that is being stopped takes no requests", func() bool {
		return errors.Is(sup.TrySend(supervisor.NewSendPayload(0, "Step", 0)), supervisor.ErrBusy)
	})
	var withdrawn []supervisor.SendPayload
	sent := make(chan error, 20)
	for i := range cap(sent) {
		p := named(fmt.Sprint("withdrawn ", i), 0, "Step", 0)
		task.Go(func(context.Context) { sent <- sup.Send(ctx, p) })
		testkit.Until(t, "the request is known", func() bool { return sup.Cancel(p.ReqID) == nil })
		withdrawn = append(withdrawn, p)
	}
	letGo()
	require.NoError(t, testkit.Receive(t, restarted, "the end of Restart"), "Restart")
	for range withdrawn {
		require.NoError(t, testkit.Receive(t, sent, "the end of Send"), "Send of a request that has its verdict")
	}
	got, err := sup.RecvAll(ctx, withdrawn, supervisor.IgnoreErr())
	require.NoError(t, err, "RecvAll")
	for _, p := range got {
		require.ErrorIs(t, p.Err, supervisor.ErrCanceled, "verdict of %q", p.ReqID)
	}
	n, err := supervisor.Call[int](ctx, sup, 0, "Step", 0)
	require.NoError(t, err, "Call of the next worker")
	require.Equal(t, 1, n, "steps of the next worker, which begins anew")
	shutdown(t, sup)
}

// The room of a request that timed out is not free before the worker has let go of it, or a worker that does not answer
// would fill the host's memory.
func TestTimedOutRequestsDoNotPileUpForAWorker(t *testing.T) {
	for _, tt := range []struct {
		name   string
		limits supervisor.Limits
		fit    int
	}{
		{"requests", supervisor.Limits{Queue: 3}, 3},
		{"bytes", supervisor.Limits{QueueBytes: 1 << 20}, 2},
		{"bytes of one that is too large", supervisor.Limits{QueueBytes: 1000}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			testkit.NoLeaks(t)
			ctx := testkit.Context(t)
			sup := withWorker(t, newTaker, tt.limits)
			letGo := hold(t, sup)
			b := make([]byte, 400<<10)
			accepted := 0
			for i := range 30 {
				limit := time.Millisecond
				if i < tt.fit {
					limit = 100 * time.Millisecond // enough to be accepted
				}
				soon, cancel := context.WithTimeout(ctx, limit)
				_, err := supervisor.Call[int](soon, sup, 0, "Take", b)
				cancel()
				require.ErrorIs(t, err, supervisor.ErrTimeout, "Call %d of a worker that does not answer", i+1)
				var call *supervisor.CallError
				require.ErrorAs(t, err, &call, "Call")
				if !call.Unexecuted {
					accepted++
				}
			}
			require.Equal(t, tt.fit, accepted, "requests that were accepted for the worker")
			load := sup.Snapshot().Children[0].Load
			require.Equal(t, tt.fit, load.Queued+load.InFlight, "requests that hold room")
			letGo()
			n, err := supervisor.Call[int](ctx, sup, 0, "Take", b)
			require.NoError(t, err, "Call when the worker answers again")
			require.Equal(t, len(b), n, "its result")
			load = sup.Snapshot().Children[0].Load
			require.Zero(t, load.Queued+load.InFlight, "requests that hold room in the end")
			shutdown(t, sup)
		})
	}
}

// Unregister has taken the child out of use, but until its worker has ended it belongs to the supervisor.
func TestEndOfSupervisorReachesUnregisteringWorker(t *testing.T) {
	for name, end := range map[string]func(sup *supervisor.Supervisor) error{
		"Close":                   func(sup *supervisor.Supervisor) error { return sup.Close() },
		"Shutdown whose ctx ends": func(sup *supervisor.Supervisor) error { return sup.Shutdown(ended()) },
	} {
		t.Run(name, func(t *testing.T) {
			testkit.NoLeaks(t)
			ctx := testkit.Context(t)
			sup := withWorker(t, newStepper.With(0), supervisor.Stop{Grace: testkit.Limit})
			pid := sup.Snapshot().Children[0].Pid
			hold(t, sup)
			unregistered := make(chan error, 1)
			task.Go(func(context.Context) { unregistered <- sup.Unregister(ctx, 0) })
			testkit.Until(t, "the child is out of use", func() bool {
				return errors.Is(sup.TrySend(supervisor.NewSendPayload(0, "Step", 0)), supervisor.ErrNoSuchChild)
			})
			testkit.Within(t, 3*time.Second, func() {
				if err := end(sup); err != nil {
					require.True(t, namesStuck(err, 0, ""), "the end names the child or nothing: %v", err)
				}
			})
			require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "the worker after the end of the supervisor")
			if err := testkit.Receive(t, unregistered, "the end of Unregister"); err != nil {
				require.True(t, namesStuck(err, 0, ""), "Unregister names the child that was not given its time: %v", err)
			}
		})
	}
}

// The longest times that there are mean as long as it takes. Their sum is no time at all.
func TestHugeStopTimesOfAWorker(t *testing.T) {
	testkit.NoLeaks(t)
	seen := testkit.NewRecorder(func(e supervisor.Event) supervisor.EventKind { return e.Kind })
	sup := newSupervisor(t, supervisor.Process, supervisor.WithEvents(seen.Record))
	register(t, sup, newStepper.With(0), supervisor.Stop{Grace: math.MaxInt64, TermGrace: math.MaxInt64})
	require.NoError(t, sup.StartLink(context.Background()), "StartLink")
	require.NoError(t, sup.Restart(testkit.Context(t), 0), "Restart")
	require.NoError(t, seen.Wait(t, supervisor.EventStopped).Err, "the end by Restart")
	requests := stepAll(t, sup, 1)
	shutdown(t, sup)
	require.NoError(t, seen.Wait(t, supervisor.EventStopped).Err, "the end by Shutdown")
	got, err := sup.RecvAll(testkit.Context(t), requests)
	require.NoError(t, err, "RecvAll of what was accepted")
	require.Equal(t, 1, got[0].Data, "the result")
}

// witness says what its worker was started with, and how its handlers end.
type witness struct{}

// Started returns the value of an environment variable, the arguments, and what descriptor 6 holds.
func (witness) Started(variable string) ([]string, error) {
	extra, err := io.ReadAll(os.NewFile(6, "extra"))
	return slices.Concat([]string{os.Getenv(variable)}, os.Args[1:], []string{string(extra)}), err
}

// Await waits for the end of its context.
func (witness) Await(ctx context.Context, _ []byte) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

var newWitness = supervisor.Define("supervisor_test.witness", func(context.Context) (witness, error) { return witness{}, nil })

// The slices of an option are the caller's again when Register has returned, also for later lives.
func TestProcSlicesAreCopied(t *testing.T) {
	testkit.NoLeaks(t)
	const variable = "SUPERVISOR_TEST_WITNESS"
	path := filepath.Join(t.TempDir(), "extra")
	require.NoError(t, os.WriteFile(path, []byte("descriptor"), 0o600), "WriteFile")
	extra, err := os.Open(path)
	require.NoError(t, err, "Open")
	defer extra.Close()

	option := supervisor.Proc{
		Args: []string{"first", "second"}, Env: []string{variable + "=environment"}, ExtraFiles: []*os.File{extra},
	}
	sup := newSupervisor(t, supervisor.Process)
	register(t, sup, newWitness, option)
	option.Args[0], option.Env[0], option.ExtraFiles[0] = "changed", variable+"=changed", nil
	require.NoError(t, sup.StartLink(context.Background()), "StartLink")
	for life := range 2 {
		_, err := extra.Seek(0, io.SeekStart) // the lives share the offset
		require.NoError(t, err, "Seek")
		got, err := supervisor.Call[[]string](testkit.Context(t), sup, 0, "Started", variable)
		require.NoError(t, err, "Call in life %d", life+1)
		require.Equal(t, []string{"environment", "first", "second", "descriptor"}, got, "what life %d was started with", life+1)
		require.NoError(t, sup.Restart(testkit.Context(t), 0), "Restart")
	}
	shutdown(t, sup)
}

// A cancel finds its request wherever that is: waiting, half way through the pipe, or at its handler. Without it the
// handler would keep its child for ever.
func TestCancelOfLargePayload(t *testing.T) {
	testkit.NoLeaks(t)
	ctx := testkit.Context(t)
	sup := withWorker(t, newWitness)
	for round := range 20 {
		p := named(fmt.Sprint("large ", round), 0, "Await", make([]byte, 300<<10+round*(20<<10)))
		send(t, sup, p)
		require.NoError(t, sup.Cancel(p.ReqID), "Cancel in round %d", round)
		got, err := sup.RecvAll(ctx, []supervisor.SendPayload{p}, supervisor.IgnoreErr())
		require.NoError(t, err, "RecvAll in round %d", round)
		require.ErrorIs(t, got[0].Err, supervisor.ErrCanceled, "the verdict in round %d", round)
	}
	testkit.Until(t, "the worker has let go of all", func() bool {
		load := sup.Snapshot().Children[0].Load
		return load.Queued+load.InFlight == 0
	})
	shutdown(t, sup)
}
