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

var limitRules = []rule{
	{"a full queue is busy for TrySend, and Send waits", fullQueue},
	{"the bytes of copied arguments are bounded", fullOfBytes},
	{"one child's full queue is its own", fullAlone},
	{"the inbox is bounded, and Do takes no place in it", fullInbox},
	{"a value over the frame limit is refused", overFrame},
}

func fullQueue(t *testing.T, k Kind) {
	r := Start(t, k, supervisor.Limits{Queue: 3})
	held, v := r.Occupy(t, r.ID)
	queued := []supervisor.SendPayload{r.Send(t, r.ID, "Int", 0), r.Send(t, r.ID, "Int", 1)}
	load := r.Child(t, r.ID).Load
	require.Equal(t, supervisor.Load{Queued: 2, InFlight: 1}, load)

	err := r.Sup.TrySend(supervisor.NewSendPayload(r.ID, "Int", 9))
	require.ErrorIs(t, err, supervisor.ErrBusy, "TrySend")
	require.True(t, CallErrorOf(t, err, r.ID, "Int").Unexecuted, "%v", err)
	ctx, cancel := context.WithTimeout(r.Ctx, 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, r.Sup.Send(ctx, supervisor.NewSendPayload(r.ID, "Int", 9)), supervisor.ErrTimeout, "Send, whose ctx ends")
	timed := supervisor.NewSendPayload(r.ID, "Int", 9)
	timed.Timeout = 50 * time.Millisecond
	require.ErrorIs(t, r.Sup.Send(r.Ctx, timed), supervisor.ErrTimeout, "Send, whose Timeout ends")
	_, err = r.Sup.Do(ctx, supervisor.NewSendPayload(r.ID, "Int", 9))
	require.ErrorIs(t, err, supervisor.ErrTimeout, "Do, whose ctx ends")

	waiting := supervisor.NewSendPayload(r.ID, "Int", 2)
	sent := make(chan error, 1)
	task.Go(func(context.Context) { sent <- r.Sup.Send(r.Ctx, waiting) })
	v.Release(t, "")
	require.NoError(t, testkit.Receive(t, sent, "Send that waits for room"))
	for i, p := range append(queued, waiting) {
		require.Equal(t, i, r.Recv(t, p).Data, "request %d", i)
	}
	require.NoError(t, r.Recv(t, held).Err)
	require.Zero(t, r.Sup.Snapshot().Open, "open requests at the end")
}

func fullOfBytes(t *testing.T, k Kind) {
	r := Start(t, k, supervisor.Limits{QueueBytes: 4000})
	_, v := r.Occupy(t, r.ID)
	blob := make([]byte, 3000)
	first := r.Send(t, r.ID, "Bytes", blob)
	err := r.Sup.TrySend(supervisor.NewSendPayload(r.ID, "Bytes", blob))
	if !k.Can.Copy {
		require.NoError(t, err, "bytes that are shared count for nothing")
		v.Release(t, "")
		return
	}
	require.ErrorIs(t, err, supervisor.ErrBusy)
	require.NoError(t, r.Sup.TrySend(supervisor.NewSendPayload(r.ID, "Int", 1)), "a small one still fits")
	v.Release(t, "")
	require.Equal(t, blob, r.Recv(t, first).Data)
	require.NoError(t, r.Sup.Send(r.Ctx, supervisor.NewSendPayload(r.ID, "Bytes", make([]byte, 10_000))), "a larger one enters an empty queue")
}

func fullAlone(t *testing.T, k Kind) {
	r := StartTwo(t, k, supervisor.Limits{Queue: 1})
	_, v := r.Occupy(t, r.ID)
	require.ErrorIs(t, r.Sup.TrySend(supervisor.NewSendPayload(r.ID, "Int", 1)), supervisor.ErrBusy)
	r.Fine(t, r.Other)
	v.Release(t, "")
}

func fullInbox(t *testing.T, k Kind) {
	r := NewRig(t, k, supervisor.WithInboxLimit(2))
	r.ID = r.Register(t, r.Job())
	r.StartLink(t)
	first, second := r.Send(t, r.ID, "Int", 1), r.Send(t, r.ID, "Int", 2)
	testkit.Within(t, prompt, func() {
		err := r.Sup.Send(r.Ctx, supervisor.NewSendPayload(r.ID, "Enter", "executed"))
		require.ErrorIs(t, err, supervisor.ErrBusy, "Send with a full inbox")
		require.True(t, CallErrorOf(t, err, r.ID, "Enter").Unexecuted, "%v", err)
	})
	r.Fine(t, r.ID) // by Do
	require.Equal(t, 1, r.Recv(t, first).Data)
	third := r.Send(t, r.ID, "Int", 3)
	require.Equal(t, 2, r.Recv(t, second).Data)
	require.Equal(t, 3, r.Recv(t, third).Data)
	require.Empty(t, r.Ledger.Counts(t), "executions of what was refused")
}

func overFrame(t *testing.T, k Kind) {
	r := NewRig(t, k)
	var err error
	r.ID, err = k.Register(r.Ctx, r.Sup, r.Job(), supervisor.Limits{Frame: 1 << 16})
	if !k.Can.Process {
		require.ErrorIs(t, err, supervisor.ErrUnsupported)
		return
	}
	require.NoError(t, err)
	r.StartLink(t)
	life := r.Child(t, r.ID).Incarnation
	_, err = supervisor.Call[[]byte](r.Ctx, r.Sup, r.ID, "Bytes", make([]byte, 1<<17))
	require.ErrorIs(t, err, supervisor.ErrTooLarge, "a request")
	require.True(t, CallErrorOf(t, err, r.ID, "Bytes").Unexecuted, "%v", err)
	_, err = supervisor.Call[string](r.Ctx, r.Sup, r.ID, "Zeros", 1<<17)
	require.ErrorIs(t, err, supervisor.ErrTooLarge, "a reply")
	r.Fine(t, r.ID)
	require.Equal(t, life, r.Child(t, r.ID).Incarnation, "the life goes on")
}
