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
	r := start(t, k, supervisor.Limits{Queue: 3})
	held, v := r.occupy(t, r.id)
	queued := []supervisor.SendPayload{r.send(t, r.id, "Int", 0), r.send(t, r.id, "Int", 1)}
	load := r.child(t, r.id).Load
	require.Equal(t, supervisor.Load{Queued: 2, InFlight: 1}, load)

	err := r.sup.TrySend(supervisor.NewSendPayload(r.id, "Int", 9))
	require.ErrorIs(t, err, supervisor.ErrBusy, "TrySend")
	require.True(t, callError(t, err, r.id, "Int").Unexecuted, "%v", err)
	ctx, cancel := context.WithTimeout(r.ctx, 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, r.sup.Send(ctx, supervisor.NewSendPayload(r.id, "Int", 9)), supervisor.ErrTimeout, "Send, whose ctx ends")
	timed := supervisor.NewSendPayload(r.id, "Int", 9)
	timed.Timeout = 50 * time.Millisecond
	require.ErrorIs(t, r.sup.Send(r.ctx, timed), supervisor.ErrTimeout, "Send, whose Timeout ends")
	_, err = r.sup.Do(ctx, supervisor.NewSendPayload(r.id, "Int", 9))
	require.ErrorIs(t, err, supervisor.ErrTimeout, "Do, whose ctx ends")

	waiting := supervisor.NewSendPayload(r.id, "Int", 2)
	sent := make(chan error, 1)
	task.Go(func(context.Context) { sent <- r.sup.Send(r.ctx, waiting) })
	v.release(t, "")
	require.NoError(t, testkit.Receive(t, sent, "Send that waits for room"))
	for i, p := range append(queued, waiting) {
		require.Equal(t, i, r.recv(t, p).Data, "request %d", i)
	}
	require.NoError(t, r.recv(t, held).Err)
	require.Zero(t, r.sup.Snapshot().Open, "open requests at the end")
}

func fullOfBytes(t *testing.T, k Kind) {
	r := start(t, k, supervisor.Limits{QueueBytes: 4000})
	_, v := r.occupy(t, r.id)
	blob := make([]byte, 3000)
	first := r.send(t, r.id, "Bytes", blob)
	err := r.sup.TrySend(supervisor.NewSendPayload(r.id, "Bytes", blob))
	if !k.Can.Copy {
		require.NoError(t, err, "bytes that are shared count for nothing")
		v.release(t, "")
		return
	}
	require.ErrorIs(t, err, supervisor.ErrBusy)
	require.NoError(t, r.sup.TrySend(supervisor.NewSendPayload(r.id, "Int", 1)), "a small one still fits")
	v.release(t, "")
	require.Equal(t, blob, r.recv(t, first).Data)
	require.NoError(t, r.sup.Send(r.ctx, supervisor.NewSendPayload(r.id, "Bytes", make([]byte, 10_000))), "a larger one enters an empty queue")
}

func fullAlone(t *testing.T, k Kind) {
	r := startTwo(t, k, supervisor.Limits{Queue: 1})
	_, v := r.occupy(t, r.id)
	require.ErrorIs(t, r.sup.TrySend(supervisor.NewSendPayload(r.id, "Int", 1)), supervisor.ErrBusy)
	r.fine(t, r.other)
	v.release(t, "")
}

func fullInbox(t *testing.T, k Kind) {
	r := newRig(t, k, supervisor.WithInboxLimit(2))
	r.id = r.register(t, r.job())
	r.startLink(t)
	first, second := r.send(t, r.id, "Int", 1), r.send(t, r.id, "Int", 2)
	testkit.Within(t, prompt, func() {
		err := r.sup.Send(r.ctx, supervisor.NewSendPayload(r.id, "Enter", "executed"))
		require.ErrorIs(t, err, supervisor.ErrBusy, "Send with a full inbox")
		require.True(t, callError(t, err, r.id, "Enter").Unexecuted, "%v", err)
	})
	r.fine(t, r.id) // by Do
	require.Equal(t, 1, r.recv(t, first).Data)
	third := r.send(t, r.id, "Int", 3)
	require.Equal(t, 2, r.recv(t, second).Data)
	require.Equal(t, 3, r.recv(t, third).Data)
	require.Empty(t, r.ledger.Counts(t), "executions of what was refused")
}

func overFrame(t *testing.T, k Kind) {
	r := newRig(t, k)
	var err error
	r.id, err = k.Register(r.ctx, r.sup, r.job(), supervisor.Limits{Frame: 1 << 16})
	if !k.Can.Process {
		require.ErrorIs(t, err, supervisor.ErrUnsupported)
		return
	}
	require.NoError(t, err)
	r.startLink(t)
	life := r.child(t, r.id).Incarnation
	_, err = supervisor.Call[[]byte](r.ctx, r.sup, r.id, "Bytes", make([]byte, 1<<17))
	require.ErrorIs(t, err, supervisor.ErrTooLarge, "a request")
	require.True(t, callError(t, err, r.id, "Bytes").Unexecuted, "%v", err)
	_, err = supervisor.Call[string](r.ctx, r.sup, r.id, "Zeros", 1<<17)
	require.ErrorIs(t, err, supervisor.ErrTooLarge, "a reply")
	r.fine(t, r.id)
	require.Equal(t, life, r.child(t, r.id).Incarnation, "the life goes on")
}
