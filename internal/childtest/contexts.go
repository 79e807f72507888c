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
	r := Start(t, k)
	cancelled, cancel := context.WithCancel(r.Ctx)
	cancel()
	expired, cancel := context.WithDeadline(r.Ctx, time.Now().Add(-time.Second))
	defer cancel()
	for ctx, want := range map[context.Context]error{cancelled: supervisor.ErrCanceled, expired: supervisor.ErrTimeout} {
		p := supervisor.NewSendPayload(r.ID, "Enter", "executed")
		require.ErrorIs(t, r.Sup.Send(ctx, p), want, "Send")
		_, err := r.Sup.Do(ctx, p)
		require.ErrorIs(t, err, want, "Do")
		require.True(t, CallErrorOf(t, err, r.ID, "Enter").Unexecuted, "%v", err)
		_, err = supervisor.Go[any](ctx, r.Sup, r.ID, "Enter", "executed").Result(r.Ctx)
		require.ErrorIs(t, err, want, "Go")
	}
	r.Fine(t, r.ID)
	require.Zero(t, r.Ledger.Counts(t)["executed"], "executions")
}

func cancelReaches(t *testing.T, k Kind) {
	r := Start(t, k)
	ctx, cancel := context.WithCancel(r.Ctx)
	done := make(chan error, 1)
	task.Go(func(context.Context) {
		_, err := r.Sup.Do(ctx, supervisor.NewSendPayload(r.ID, "Hold", "one"))
		done <- err
	})
	v := r.Gate.Next(t)
	cancel()
	err := testkit.Receive(t, done, "the verdict of a cancelled call")
	require.ErrorIs(t, err, supervisor.ErrCanceled)
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, CallErrorOf(t, err, r.ID, "Hold").Unexecuted, "%v", err)
	require.Contains(t, v.Left(t), "cancel", "what the handler's ctx says")
	r.Fine(t, r.ID)
}

func cancelSent(t *testing.T, k Kind) {
	r := Start(t, k)
	p, v := r.Occupy(t, r.ID)
	require.NoError(t, r.Sup.Cancel(p.ReqID))
	require.Contains(t, v.Left(t), "cancel", "what the handler's ctx says")
	require.NoError(t, r.Sup.Cancel(p.ReqID), "again, while its verdict is unclaimed")
	got := r.Recv(t, p)
	require.ErrorIs(t, got.Err, supervisor.ErrCanceled)
	require.ErrorIs(t, r.Sup.Cancel(p.ReqID), supervisor.ErrNoSuchRequest, "after its verdict was taken")
	second, v := r.Occupy(t, r.ID)
	err := r.Sup.Cancel("nobody", second.ReqID)
	require.ErrorIs(t, err, supervisor.ErrNoSuchRequest, "one unknown among others")
	require.ErrorContains(t, err, "nobody")
	v.Left(t)
	require.ErrorIs(t, r.Recv(t, second).Err, supervisor.ErrCanceled, "the others are cancelled all the same")
}

func deadlineKnown(t *testing.T, k Kind) {
	r := Start(t, k)
	free := r.Recv(t, r.Send(t, r.ID, "Remaining"))
	require.Equal(t, time.Duration(-1), free.Data, "without a limit")
	ctx, cancel := context.WithTimeout(r.Ctx, 15*time.Second)
	defer cancel()
	left, err := supervisor.Call[time.Duration](ctx, r.Sup, r.ID, "Remaining")
	require.NoError(t, err)
	require.Less(t, left, 15*time.Second, "by the ctx of Call")
	require.Greater(t, left, 12*time.Second, "by the ctx of Call")
	p := supervisor.NewSendPayload(r.ID, "Remaining")
	p.Timeout = 10 * time.Second
	got, err := r.Sup.Do(ctx, p)
	require.NoError(t, err)
	require.Less(t, got.Data, 10*time.Second, "by Timeout, which is shorter")
	require.Greater(t, got.Data, 7*time.Second, "by Timeout, which is shorter")
}

// The handler's ctx ends at the same moment, and whoever says so first, the verdict is the same.
func deadlineReaches(t *testing.T, k Kind) {
	r := Start(t, k)
	const limit = 100 * time.Millisecond
	began := time.Now()
	p := supervisor.NewSendPayload(r.ID, "Hold", "one")
	p.Timeout = limit
	require.NoError(t, r.Sup.Send(r.Ctx, p))
	got := r.Recv(t, p)
	require.GreaterOrEqual(t, time.Since(began), limit, "time to the verdict")
	require.Less(t, time.Since(began), prompt*testkit.Slowdown, "time to the verdict")
	require.ErrorIs(t, got.Err, supervisor.ErrTimeout, "by Timeout")
	_ = CallErrorOf(t, got.Err, r.ID, "Hold")
	r.Gate.Next(t).Left(t)
	ctx, cancel := context.WithTimeout(r.Ctx, limit)
	defer cancel()
	_, err := r.Sup.Do(ctx, supervisor.NewSendPayload(r.ID, "Hold", "two"))
	require.ErrorIs(t, err, supervisor.ErrTimeout, "by the ctx of Do")
	r.Gate.Next(t).Left(t)
	r.Fine(t, r.ID)
}

func lateReply(t *testing.T, k Kind) {
	r := Start(t, k)
	p := supervisor.NewSendPayload(r.ID, "HoldOn", "slow")
	p.Timeout = 50 * time.Millisecond
	require.NoError(t, r.Sup.Send(r.Ctx, p))
	v := r.Gate.Next(t)
	require.ErrorIs(t, r.Recv(t, p).Err, supervisor.ErrTimeout)
	require.Zero(t, r.Child(t, r.ID).Load.Late, "late replies, before there is one")
	v.Release(t, "too late")
	require.Equal(t, 2, CallOf[int](t, r, r.ID, "Int", 2), "the next call gets its own value")
	testkit.Until(t, "the late reply is counted", func() bool { return r.Child(t, r.ID).Load.Late == 1 })
	e := r.Events.Wait(t, supervisor.EventLateReply)
	require.Equal(t, r.ID, e.ProcID)
	require.EqualValues(t, 1, e.N)
	shot := r.Sup.Snapshot()
	require.Zero(t, shot.Open+shot.Unclaimed, "requests that are left")
}

func withdrawnInQueue(t *testing.T, k Kind) {
	r := Start(t, k)
	held, v := r.Occupy(t, r.ID)
	var queued []supervisor.SendPayload
	for range 5 {
		queued = append(queued, r.Send(t, r.ID, "Enter", "executed"))
	}
	require.NoError(t, r.Sup.Cancel(queued[1].ReqID, queued[3].ReqID))
	timed := supervisor.NewSendPayload(r.ID, "Enter", "executed")
	timed.Timeout = 30 * time.Millisecond
	require.NoError(t, r.Sup.Send(r.Ctx, timed))
	require.ErrorIs(t, r.Recv(t, timed).Err, supervisor.ErrTimeout)
	require.NoError(t, r.Sup.Cancel(held.ReqID)) // a worker hears of it after all the others
	v.Left(t)
	replies, err := r.Sup.RecvAll(r.Ctx, queued, supervisor.IgnoreErr())
	require.NoError(t, err)
	for i, p := range replies {
		if i == 1 || i == 3 {
			require.ErrorIs(t, p.Err, supervisor.ErrCanceled, "request %d", i)
		} else {
			require.NoError(t, p.Err, "request %d", i)
		}
	}
	r.Fine(t, r.ID)
	require.Equal(t, map[string]int{"executed": 3}, r.Ledger.Counts(t))
	require.EqualValues(t, 1, r.Child(t, r.ID).Load.Late, "only the reply of the handler that ran is late")
}

func sendContext(t *testing.T, k Kind) {
	r := Start(t, k)
	ctx, cancel := context.WithTimeout(r.Ctx, time.Hour)
	p := supervisor.NewSendPayload(r.ID, "Remaining")
	require.NoError(t, r.Sup.Send(ctx, p))
	require.Equal(t, time.Duration(-1), r.Recv(t, p).Data, "the handler has no deadline")
	p = supervisor.NewSendPayload(r.ID, "Hold", "one")
	require.NoError(t, r.Sup.Send(ctx, p))
	v := r.Gate.Next(t)
	cancel()
	v.Release(t, "lives on")
	require.Equal(t, "lives on", r.Recv(t, p).Data)
}
