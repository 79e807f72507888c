package faulttest_test

// What the model found, as tests that need no luck.

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

// A request whose hand-over still waits for room is known, and may be awaited; when its Send is refused after all, its entry says so at once,
// with the ids that were asked for.
func TestRecvAllOfRefusedSend(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		r := childtest.StartTwo(t, k)
		full := r.Register(t, r.Job(), supervisor.Limits{Queue: 1})
		busy, visitor := r.Occupy(t, full)
		first := r.Send(t, r.Other, "Text", "first") // its reply says that the wait has begun
		late := supervisor.NewSendPayload(full, "Text", "late")
		sendCtx, giveUp := context.WithCancel(r.Ctx)
		defer giveUp()
		var refusal, err error
		var got []supervisor.RecvPayload
		sending := task.Go(func(context.Context) { refusal = r.Sup.Send(sendCtx, late) })
		testkit.Until(t, "the Send waits", func() bool { s := r.Sup.Snapshot(); return s.Open+s.Unclaimed == 3 })
		seen := make(chan struct{})
		awaiting := task.Go(func(context.Context) {
			got, err = r.Sup.RecvAll(r.Ctx, []supervisor.SendPayload{late, first}, supervisor.IgnoreErr(),
				supervisor.OnReply(func(_ *supervisor.Waiting, p supervisor.RecvPayload) error {
					if p.ReqID == first.ReqID {
						close(seen)
					}
					return nil
				}))
		})
		testkit.Closed(t, seen, "the first reply")
		giveUp()
		testkit.Closed(t, sending.Done(), "the end of Send")
		require.ErrorIs(t, refusal, supervisor.ErrCanceled, "Send whose ctx has ended")
		testkit.Closed(t, awaiting.Done(), "the end of RecvAll")
		require.NoError(t, err, "RecvAll with IgnoreErr")
		require.Equal(t, "first", got[1].Data, "the other entry")
		require.ErrorIs(t, got[0].Err, supervisor.ErrNoSuchRequest, "the entry of what was refused")
		require.Equal(t, []any{full, late.ReqID, "Text"}, []any{got[0].ProcID, got[0].ReqID, got[0].Method}, "its ids")
		visitor.Release(t, "over")
		require.Equal(t, "over", r.Recv(t, busy).Data, "the request that was in the way")
	})
}
