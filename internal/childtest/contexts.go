package childtest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

var contextRules = []rule{
	{"a ctx that has ended sends nothing", endedContext},
	{"a cancel gives the verdict and reaches the handler", cancelReaches},
	{"Cancel withdraws what was sent", cancelSent},
	{"a deadline is known to the handler", deadlineKnown},
	{"a deadline gives the verdict and reaches the handler", deadlineReaches},
	{"a reply after the verdict goes to nobody and is counted", lateReply},
	{"what is withdrawn in the queue is not executed", withdrawnInQueue},
	{"the ctx of Send bounds the hand-over only", sendContext},
}

func endedContext(t *testing.T, k Kind) {
	r := start(t, k)
	cancelled, cancel := context.WithCancel(r.ctx)
	cancel()
	expired, cancel := context.WithDeadline(r.ctx, time.Now().Add(-time.Second))
	defer cancel()
	for ctx, want := range map[context.Context]error{cancelled: supervisor.ErrCanceled, expired: supervisor.ErrTimeout} {
		p := supervisor.NewSendPayload(r.id, "Enter", "executed")
		require.ErrorIs(t, r.sup.Send(ctx, p), want, "Send")
		_, err := r.sup.Do(ctx, p)
		require.ErrorIs(t, err, want, "Do")
		require.True(t, callError(t, err, r.id, "Enter").Unexecuted, "%v", err)
		_, err = supervisor.Go[any](ctx, r.sup, r.id, "Enter", "executed").Result(r.ctx)
		require.ErrorIs(t, err, want, "Go")
	}
	r.fine(t, r.id)
	require.Zero(t, r.ledger.Counts(t)["executed"], "executions")
}

func cancelReaches(t *testing.T, k Kind) {
	r := start(t, k)
	ctx, cancel := context.WithCancel(r.ctx)
	done := make(chan error, 1)
	task.Go(func(context.Context) {
		_, err := r.sup.Do(ctx, supervisor.NewSendPayload(r.id, "Hold", "one"))
		done <- err
	})
	v := r.gate.next(t)
	cancel()
	err := testkit.Receive(t, done, "the verdict of a cancelled call")
	require.ErrorIs(t, err, supervisor.ErrCanceled)
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, callError(t, err, r.id, "Hold").Unexecuted, "%v", err)
	require.Contains(t, v.left(t), "cancel", "what the handler's ctx says")
	r.fine(t, r.id)
}

func cancelSent(t *testing.T, k Kind) {
	r := start(t, k)
	p, v := r.occupy(t, r.id)
	require.NoError(t, r.sup.Cancel(p.ReqID))
	require.Contains(t, v.left(t), "cancel", "what the handler's ctx says")
	require.NoError(t, r.sup.Cancel(p.ReqID), "again, while its verdict is unclaimed")
	got := r.recv(t, p)
	require.ErrorIs(t, got.Err, supervisor.ErrCanceled)
	require.ErrorIs(t, r.sup.Cancel(p.ReqID), supervisor.ErrNoSuchRequest, "after its verdict was taken")
	second, v := r.occupy(t, r.id)
	err := r.sup.Cancel("nobody", second.ReqID)
	require.ErrorIs(t, err, supervisor.ErrNoSuchRequest, "one unknown among others")
	require.ErrorContains(t, err, "nobody")
	v.left(t)
	require.ErrorIs(t, r.recv(t, second).Err, supervisor.ErrCanceled, "the others are cancelled all the same")
}

func deadlineKnown(t *testing.T, k Kind) {
	r := start(t, k)
	free := r.recv(t, r.send(t, r.id, "Remaining"))
	require.Equal(t, time.Duration(-1), free.Data, "without a limit")
	ctx, cancel := context.WithTimeout(r.ctx, 15*time.Second)
	defer cancel()
	left, err := supervisor.Call[time.Duration](ctx, r.sup, r.id, "Remaining")
	require.NoError(t, err)
	require.Less(t, left, 15*time.Second, "by the ctx of Call")
	require.Greater(t, left, 12*time.Second, "by the ctx of Call")
	p := supervisor.NewSendPayload(r.id, "Remaining")
	p.Timeout = 10 * time.Second
	got, err := r.sup.Do(ctx, p)
	require.NoError(t, err)
	require.Less(t, got.Data, 10*time.Second, "by Timeout, which is shorter")
	require.Greater(t, got.Data, 7*time.Second, "by Timeout, which is shorter")
}

// The handler's ctx ends at the same moment, and whoever says so first, the verdict is the same.
func deadlineReaches(t *testing.T, k Kind) {
	r := start(t, k)
	const limit = 100 * time.Millisecond
	began := time.Now()
	p := supervisor.NewSendPayload(r.id, "Hold", "one")
	p.Timeout = limit
	require.NoError(t, r.sup.Send(r.ctx, p))
	got := r.recv(t, p)
	require.GreaterOrEqual(t, time.Since(began), limit, "time to the verdict")
	require.Less(t, time.Since(began), prompt*testkit.Slowdown, "time to the verdict")
	require.ErrorIs(t, got.Err, supervisor.ErrTimeout, "by Timeout")
	_ = callError(t, got.Err, r.id, "Hold")
	r.gate.next(t).left(t)
	ctx, cancel := context.WithTimeout(r.ctx, limit)
	defer cancel()
	_, err := r.sup.Do(ctx, supervisor.NewSendPayload(r.id, "Hold", "two"))
	require.ErrorIs(t, err, supervisor.ErrTimeout, "by the ctx of Do")
	r.gate.next(t).left(t)
	r.fine(t, r.id)
}

func lateReply(t *testing.T, k Kind) {
	r := start(t, k)
	p := supervisor.NewSendPayload(r.id, "HoldOn", "slow")
	p.Timeout = 50 * time.Millisecond
	require.NoError(t, r.sup.Send(r.ctx, p))
	v := r.gate.next(t)
	require.ErrorIs(t, r.recv(t, p).Err, supervisor.ErrTimeout)
	require.Zero(t, r.child(t, r.id).Load.Late, "late replies, before there is one")
	v.release(t, "too late")
	require.Equal(t, 2, call[int](t, r, r.id, "Int", 2), "the next call gets its own value")
	testkit.Until(t, "the late reply is counted", func() bool { return r.child(t, r.id).Load.Late == 1 })
	e := r.events.Wait(t, supervisor.EventLateReply)
	require.Equal(t, r.id, e.ProcID)
	require.EqualValues(t, 1, e.N)
	shot := r.sup.Snapshot()
	require.Zero(t, shot.Open+shot.Unclaimed, "requests that are left")
}

func withdrawnInQueue(t *testing.T, k Kind) {
	r := start(t, k)
	held, v := r.occupy(t, r.id)
	var queued []supervisor.SendPayload
	for range 5 {
		queued = append(queued, r.send(t, r.id, "Enter", "executed"))
	}
	require.NoError(t, r.sup.Cancel(queued[1].ReqID, queued[3].ReqID))
	timed := supervisor.NewSendPayload(r.id, "Enter", "executed")
	timed.Timeout = 30 * time.Millisecond
	require.NoError(t, r.sup.Send(r.ctx, timed))
	require.ErrorIs(t, r.recv(t, timed).Err, supervisor.ErrTimeout)
	require.NoError(t, r.sup.Cancel(held.ReqID)) // a worker hears of it after all the others
	v.left(t)
	replies, err := r.sup.RecvAll(r.ctx, queued, supervisor.IgnoreErr())
	require.NoError(t, err)
	for i, p := range replies {
		if i == 1 || i == 3 {
			require.ErrorIs(t, p.Err, supervisor.ErrCanceled, "request %d", i)
		} else {
			require.NoError(t, p.Err, "request %d", i)
		}
	}
	r.fine(t, r.id)
	require.Equal(t, map[string]int{"executed": 3}, r.ledger.Counts(t))
	require.EqualValues(t, 1, r.child(t, r.id).Load.Late, "only the reply of the handler that ran is late")
}

func sendContext(t *testing.T, k Kind) {
	r := start(t, k)
	ctx, cancel := context.WithTimeout(r.ctx, time.Hour)
	p := supervisor.NewSendPayload(r.id, "Remaining")
	require.NoError(t, r.sup.Send(ctx, p))
	require.Equal(t, time.Duration(-1), r.recv(t, p).Data, "the handler has no deadline")
	p = supervisor.NewSendPayload(r.id, "Hold", "one")
	require.NoError(t, r.sup.Send(ctx, p))
	v := r.gate.next(t)
	cancel()
	v.release(t, "lives on")
	require.Equal(t, "lives on", r.recv(t, p).Data)
}
