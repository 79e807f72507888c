package faulttest_test

// What happens when descriptors run out, in the host and in a worker.

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

// failedStart waits for the event of the next start of a child that fails, which must do so for the given reason.
func failedStart(t *testing.T, r *childtest.Rig, id int, reason error) supervisor.Event {
	t.Helper()
	e := r.Events.WaitFor(t, "a start that fails", func(e supervisor.Event) bool {
		return e.Kind == supervisor.EventStartFailed && e.ProcID == id
	})
	startFault(t, e.Err, reason)
	return e
}

// startFault asserts that err is a start that failed for a reason.
func startFault(t *testing.T, err, reason error) {
	t.Helper()
	var start *supervisor.StartError
	require.ErrorAs(t, err, &start, "error of a start")
	require.ErrorIs(t, err, reason, "error of a start")
}

// exhaust leaves this process four descriptors; a start takes more, also with the six of the life before it.
func exhaust(t *testing.T) (restore func()) {
	t.Helper()
	open := openDescriptors(t)
	limit := 0 // of their numbers, which have gaps
	for free := 0; free < 4; limit++ {
		if _, taken := open[strconv.Itoa(limit)]; !taken {
			free++
		}
	}
	return setLimit(t, unix.RLIMIT_NOFILE, uint64(limit))
}

func TestO01DescriptorsOfHostRunOut(t *testing.T) {
	if !alone(t) {
		return
	}
	testkit.NoLeaks(t)
	r := childtest.StartTwo(t, childtest.Processes())
	r.Fine(t, r.ID)
	r.Fine(t, r.Other)
	open, children := openDescriptors(t), testkit.Children()

	t.Run("Register", func(t *testing.T) {
		restore := exhaust(t)
		defer restore()
		testkit.Within(t, rawPrompt, func() {
			_, err := r.Kind.Register(r.Ctx, r.Sup, r.Job())
			startFault(t, err, syscall.EMFILE)
		})
		r.Fine(t, r.ID)
		r.Fine(t, r.Other)
	})
	require.Equal(t, open, openDescriptors(t), "descriptors after the start that failed")
	require.Equal(t, children, testkit.Children(), "processes after the start that failed")

	t.Run("StartLink", func(t *testing.T) {
		sup := newSupervisor(t, supervisor.Process)
		for range 3 {
			register(t, sup, childtest.Spec(r.Job()))
		}
		restore := exhaust(t)
		testkit.Within(t, rawPrompt, func() { startFault(t, sup.StartLink(r.Ctx), syscall.EMFILE) })
		r.Fine(t, r.ID)
		restore()
		require.Equal(t, open, openDescriptors(t), "descriptors after the start that failed")
		require.NoError(t, sup.StartLink(r.Ctx), "StartLink with enough descriptors")
		shutdown(t, sup)
	})

	t.Run("after a crash", func(t *testing.T) {
		restore := exhaust(t)
		r.Kind.Kill(t, r.Sup, r.ID)
		failedStart(t, r, r.ID, syscall.EMFILE)
		sent := make(chan error, 1)
		p := supervisor.NewSendPayload(r.ID, "Text", "sent while it was away")
		task.Go(func(ctx context.Context) { sent <- r.Sup.Send(ctx, p) })
		r.Fine(t, r.Other)
		restore()
		require.NoError(t, testkit.Receive(t, sent, "Send"), "Send that waited for the next life")
		require.Equal(t, "sent while it was away", r.Recv(t, p).Data, "value of the request that waited")
	})

	t.Run("Restart", func(t *testing.T) {
		restore := exhaust(t)
		restarted := make(chan error, 1)
		task.Go(func(ctx context.Context) { restarted <- r.Sup.Restart(ctx, r.Other) })
		failedStart(t, r, r.Other, syscall.EMFILE)
		r.Fine(t, r.ID)
		restore()
		require.NoError(t, testkit.Receive(t, restarted, "Restart"), "Restart when there are enough descriptors again")
		r.Fine(t, r.Other)
	})
	require.Len(t, openDescriptors(t), len(open), "descriptors at the end")
	require.NoError(t, r.Sup.Healthy(), "Healthy")
}

func TestC20MissingBinaryUnderPressure(t *testing.T) {
	if !alone(t) {
		return
	}
	testkit.NoLeaks(t)
	r := childtest.Start(t, childtest.Processes())
	r.Fine(t, r.ID)
	open := openDescriptors(t)
	// Enough for one start, so that a descriptor that is lost makes a later one fail for another reason.
	restore := setLimit(t, unix.RLIMIT_NOFILE, uint64(len(open)+20))
	for range times(100, 1000) {
		_, err := r.Kind.Register(r.Ctx, r.Sup, r.Job(), supervisor.Proc{Path: "/no/such/program"})
		startFault(t, err, syscall.ENOENT)
	}
	r.Fine(t, r.ID)
	restore()
	require.Equal(t, open, openDescriptors(t), "descriptors after all the starts")
}

// glutton is the object of workers that use up their own descriptors.
type glutton struct{}

var newGlutton = supervisor.Define("faulttest.glutton", func(context.Context) (glutton, error) { return glutton{}, nil })

// Exhaust leaves the process no descriptor.
func (glutton) Exhaust() error {
	return unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1, Max: 1})
}

// Open needs a descriptor.
func (glutton) Open() error {
	f, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	return f.Close()
}

// Spawn needs some more.
func (glutton) Spawn(ctx context.Context) error { return exec.CommandContext(ctx, "true").Run() }

// Echo needs none.
func (glutton) Echo(s string) string { return s }

// Crash leaves a trace.
func (glutton) Crash() {
	done := make(chan struct{})
	task.Go(func(context.Context) { panic("the glutton has enough") })
	<-done
}

func TestO04DescriptorsOfWorkerRunOut(t *testing.T) {
	testkit.NoLeaks(t)
	ctx := testkit.Context(t)
	sup := started(t, supervisor.Process, newGlutton)
	sibling := register(t, sup, newGlutton)
	call := func(id int, method string, args ...any) (err error) {
		testkit.Within(t, rawPrompt, func() { _, err = supervisor.Call[any](ctx, sup, id, method, args...) })
		return err
	}
	require.NoError(t, call(0, "Open"), "Open")
	require.NoError(t, call(0, "Exhaust"), "Exhaust")
	for _, method := range []string{"Open", "Spawn"} {
		var remote *supervisor.RemoteError
		err := call(0, method)
		require.ErrorAs(t, err, &remote, "error of %s", method)
		require.Contains(t, remote.Text, syscall.EMFILE.Error(), "error of %s", method)
		require.NoError(t, call(sibling, method), "%s of the sibling", method)
	}
	require.NoError(t, call(0, "Echo", strings.Repeat("x", 1<<20)), "Echo, which needs no descriptor")
	err := call(0, "Crash")
	var exit *supervisor.ExitError
	require.ErrorAs(t, err, &exit, "error of Crash")
	require.Contains(t, exit.Trace, "the glutton has enough", "the trace, whose descriptor is there from the start")
	require.NoError(t, call(0, "Open"), "Open in the next life")
	shutdown(t, sup)
}

// Whichever descriptor is the one too many as a worker starts, the host is told at once.
func TestO04WorkerBornPoor(t *testing.T) {
	testkit.NoLeaks(t)
	ctx := testkit.Context(t)
	sup := started(t, supervisor.Process, newGlutton)
	failures := 0
	for limit := 6; ; limit++ {
		script := fmt.Sprintf(`ulimit -n %d && exec "$0"`, limit)
		var id int
		var err error
		testkit.Within(t, rawPrompt, func() {
			id, err = sup.Register(ctx, newGlutton, supervisor.Proc{Path: "/bin/sh", Args: []string{"-c", script, os.Args[0]}})
		})
		if err == nil {
			_, err = supervisor.Call[string](ctx, sup, id, "Echo", "x")
			require.NoError(t, err, "call of a worker that has enough")
			break
		}
		failures++
		require.Less(t, limit, 30, "descriptors for a worker: %v", err)
		var start *supervisor.StartError
		require.ErrorAs(t, err, &start, "start with a limit of %d", limit)
		require.NotErrorIs(t, err, supervisor.ErrTimeout, "start with a limit of %d", limit)
		_, err = supervisor.Call[string](ctx, sup, 0, "Echo", "x")
		require.NoError(t, err, "call of the sibling")
	}
	require.Positive(t, failures, "limits that were too low")
	shutdown(t, sup)
}
