//go:build linux || darwin

package faulttest_test

// Reports of calls that waited for ever for a peer that did not answer. Here it is a worker that is stopped as by a
// debugger, with all that lies in its pipe.

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// reportFreeze stops a worker and waits until nothing of it runs.
func reportFreeze(t testing.TB, sup *supervisor.Supervisor, id int) (thaw func()) {
	t.Helper()
	pid := sup.Snapshot().Children[id].Pid
	require.NotZero(t, pid, "process id of child %d", id)
	deathFreeze(t, pid)
	return func() {
		t.Helper()
		deathSignal(t, pid, syscall.SIGCONT)
	}
}

// The pipe is full, and so is the queue behind it: Send does not wait longer than its ctx.
func TestC24SendToStuckWorker(t *testing.T) {
	const limit, late, tries, size = 200 * time.Millisecond, 150 * time.Millisecond, 20, 256 << 10
	testkit.NoLeaks(t)
	sup := clerks(t, childtest.Processes(), 2, supervisor.Limits{QueueBytes: 4 << 20})
	ctx := testkit.Context(t)
	thaw := reportFreeze(t, sup, 0)
	var accepted []supervisor.SendPayload
	var err error
	for err == nil {
		p := supervisor.NewSendPayload(0, "Take", len(accepted), make([]byte, size))
		if err = sup.TrySend(p); err == nil {
			accepted = append(accepted, p)
		}
	}
	require.ErrorIs(t, err, supervisor.ErrBusy, "TrySend when the pipe and the queue are full")
	require.Greater(t, len(accepted), 10, "requests of 256 KiB that found room in 4 MiB")
	var took time.Duration
	for range tries { // the machine may be busy: one try in time is enough
		began := time.Now()
		soon, cancel := context.WithTimeout(ctx, limit)
		err := sup.Send(soon, supervisor.NewSendPayload(0, "Take", -1, make([]byte, size)))
		took = time.Since(began)
		cancel()
		require.ErrorIs(t, err, supervisor.ErrTimeout, "Send")
		var call *supervisor.CallError
		require.ErrorAs(t, err, &call, "Send")
		require.True(t, call.Unexecuted, "nothing was sent: %v", err)
		require.GreaterOrEqual(t, took, limit, "time of Send")
		if took <= limit+late {
			break
		}
	}
	require.LessOrEqual(t, took, limit+late, "time of the fastest Send")
	n, err := supervisor.Call[int](ctx, sup, 1, "Echo", 5)
	require.NoError(t, err, "Call of the sibling")
	require.Equal(t, 5, n, "its result")
	thaw()
	_, err = sup.RecvAll(ctx, accepted)
	require.NoError(t, err, "RecvAll of what was accepted, when the worker goes on")
	counts, err := supervisor.Call[[]int](ctx, sup, 0, "Taken")
	require.NoError(t, err, "Taken")
	require.Equal(t, []int{len(accepted), 0}, counts, "executions, and those out of turn")
	shutdown(t, sup)
}

// Whatever may wait for a worker has a ctx, and heeds it.
func TestC25EveryWaitHasALimit(t *testing.T) {
	const limit, prompt = 60 * time.Millisecond, 3 * time.Second
	timed := func(t *testing.T, name string, do func(ctx context.Context) error) error {
		t.Helper()
		began := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		var err error
		testkit.Within(t, prompt, func() { err = do(ctx) })
		require.GreaterOrEqual(t, time.Since(began), limit, "time of %s, which returned %v", name, err)
		return err
	}
	t.Run("requests", func(t *testing.T) {
		testkit.NoLeaks(t)
		r := childtest.Start(t, childtest.Processes(), supervisor.Limits{Queue: 2})
		held := r.Send(t, r.ID, "Enter", "held")
		r.Recv(t, held)
		thaw := reportFreeze(t, r.Sup, r.ID)
		open := r.Send(t, r.ID, "Int", 1)
		for range 2 { // the first fills the queue, the second finds it full
			for _, call := range limitedCalls {
				if call.name == "Send" && r.Child(t, r.ID).Load.Queued+r.Child(t, r.ID).Load.InFlight < 2 {
					continue // there is room
				}
				require.ErrorIs(t, timed(t, call.name, func(ctx context.Context) error { return call.do(ctx, r) }),
					supervisor.ErrTimeout, call.name)
			}
		}
		err := timed(t, "RecvAll", func(ctx context.Context) error {
			_, err := r.Sup.RecvAll(ctx, []supervisor.SendPayload{open})
			return err
		})
		require.ErrorIs(t, err, supervisor.ErrTimeout, "RecvAll")
		thaw()
		r.Fine(t, r.ID)
		require.Equal(t, map[string]int{"held": 1}, r.Ledger.Counts(t), "executions")
		nothingLeft(t, r.Sup)
	})
	t.Run("lives", func(t *testing.T) {
		testkit.NoLeaks(t)
		long := supervisor.Stop{Grace: testkit.Limit}
		r := childtest.NewRig(t, childtest.Processes())
		for range 3 {
			r.Register(t, r.Job(), long)
		}
		r.StartLink(t)
		for id := range 3 {
			reportFreeze(t, r.Sup, id)
		}
		err := timed(t, "Register", func(ctx context.Context) error {
			job := r.Job()
			job.Mode = childtest.Waits
			_, err := r.Kind.Register(ctx, r.Sup, job)
			return err
		})
		require.ErrorIs(t, err, supervisor.ErrTimeout, "Register of a worker that does not get ready")
		err = timed(t, "Restart", func(ctx context.Context) error { return r.Sup.Restart(ctx, 0) })
		if err != nil { // the next life may have been quick
			require.ErrorIs(t, err, supervisor.ErrTimeout, "Restart of a stopped worker")
		}
		_ = timed(t, "Unregister", func(ctx context.Context) error { return r.Sup.Unregister(ctx, 1) }) // that it had to kill is no secret
		err = timed(t, "Shutdown", r.Sup.Shutdown)
		require.ErrorIs(t, err, supervisor.ErrTimeout, "Shutdown of a stopped worker")
		require.Empty(t, testkit.Children(), "processes after Shutdown")
	})
}
