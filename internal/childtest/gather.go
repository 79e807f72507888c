package childtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
)

var gatherRules = []rule{
	{"OnReply sees each reply in the order of arrival", onReplyOrder},
	{"an error of OnReply ends the gather, and nothing is lost", onReplyError},
	{"OnReply sees the verdicts of a timeout", onReplyTimeout},
	{"Waiting.Send sends and awaits in one step", waitingSend},
	{"Waiting.Send does not wait for a refused request", waitingSendRefused},
	{"Waiting.Add awaits more", waitingAdd},
	{"after the end of ctx what is added has its verdict at once", waitingAfterEnd},
	{"OnReply may use the supervisor", onReplyReenters},
}

func onReplyOrder(t *testing.T, k Kind) {
	r := Start(t, k)
	reqs := []supervisor.SendPayload{r.Send(t, r.ID, "Int", 0), r.Send(t, r.ID, "Fail", "sentinel"), r.Send(t, r.ID, "Int", 2)}
	var seen []string
	replies, err := r.Sup.RecvAll(r.Ctx, reqs, supervisor.IgnoreErr(), supervisor.OnReply(func(_ *supervisor.Waiting, p supervisor.RecvPayload) error {
		seen = append(seen, p.ReqID)
		return nil
	}))
	require.NoError(t, err)
	require.Len(t, replies, 3)
	require.Equal(t, []string{reqs[0].ReqID, reqs[1].ReqID, reqs[2].ReqID}, seen)
	_, err = r.Sup.Recv(r.Ctx, supervisor.OnReply(func(*supervisor.Waiting, supervisor.RecvPayload) error { return nil }))
	require.ErrorIs(t, err, supervisor.ErrBadArgs, "OnReply is for RecvAll")
}

func onReplyError(t *testing.T, k Kind) {
	r := Start(t, k)
	reqs := []supervisor.SendPayload{r.Send(t, r.ID, "Int", 0), r.Send(t, r.ID, "Int", 1), r.Send(t, r.ID, "Int", 2)}
	enough := errors.New("enough")
	replies, err := r.Sup.RecvAll(r.Ctx, reqs, supervisor.OnReply(func(_ *supervisor.Waiting, p supervisor.RecvPayload) error {
		if p.Data == 1 {
			return enough
		}
		return nil
	}))
	require.ErrorIs(t, err, enough)
	require.Equal(t, 0, replies[0].Data)
	require.Equal(t, 1, replies[1].Data, "the reply that it was called with")
	require.ErrorIs(t, replies[2].Err, supervisor.ErrPending)
	require.Equal(t, 2, r.Recv(t, reqs[2]).Data)
}

func onReplyTimeout(t *testing.T, k Kind) {
	r := Start(t, k)
	held, v := r.Occupy(t, r.ID)
	ctx, cancel := context.WithTimeout(r.Ctx, 50*time.Millisecond)
	defer cancel()
	var seen []error
	_, err := r.Sup.RecvAll(ctx, []supervisor.SendPayload{held}, supervisor.IgnoreErr(), supervisor.OnReply(func(_ *supervisor.Waiting, p supervisor.RecvPayload) error {
		seen = append(seen, p.Err)
		return nil
	}))
	require.NoError(t, err, "with IgnoreErr the end of ctx is no error")
	require.Len(t, seen, 1)
	require.ErrorIs(t, seen[0], supervisor.ErrTimeout)
	v.Left(t)
}

func waitingSend(t *testing.T, k Kind) {
	r := Start(t, k)
	first := r.Send(t, r.ID, "Int", 0)
	var seen []any
	replies, err := r.Sup.RecvAll(r.Ctx, []supervisor.SendPayload{first}, supervisor.OnReply(func(w *supervisor.Waiting, p supervisor.RecvPayload) error {
		seen = append(seen, p.Data)
		n, _ := p.Data.(int)
		if n == 5 {
			return nil
		}
		return w.Send(supervisor.NewSendPayload(r.ID, "Int", n+1))
	}))
	require.NoError(t, err)
	require.Equal(t, []any{0, 1, 2, 3, 4, 5}, seen)
	require.Len(t, replies, 1, "what was added goes to OnReply only")
	require.Zero(t, r.Sup.Snapshot().Unclaimed, "replies that are left")
}

func waitingSendRefused(t *testing.T, k Kind) {
	r := Start(t, k)
	first := r.Send(t, r.ID, "Int", 0)
	calls := 0
	_, err := r.Sup.RecvAll(r.Ctx, []supervisor.SendPayload{first}, supervisor.OnReply(func(w *supervisor.Waiting, _ supervisor.RecvPayload) error {
		calls++
		refused := supervisor.NewSendPayload(r.ID, "Nope")
		err := w.Send(refused)
		require.ErrorIs(t, err, supervisor.ErrNoSuchMethod)
		require.Equal(t, refused.ReqID, CallErrorOf(t, err, r.ID, "Nope").ReqID)
		return nil
	}))
	require.NoError(t, err)
	require.Equal(t, 1, calls)
}

func waitingAdd(t *testing.T, k Kind) {
	r := Start(t, k)
	first, sent := r.Send(t, r.ID, "Int", 0), r.Send(t, r.ID, "Int", 1)
	later := supervisor.NewSendPayload(r.ID, "Int", 2)
	var seen []any
	_, err := r.Sup.RecvAll(r.Ctx, []supervisor.SendPayload{first}, supervisor.OnReply(func(w *supervisor.Waiting, p supervisor.RecvPayload) error {
		seen = append(seen, p.Data)
		switch p.Data {
		case 0:
			return w.Add(sent, later)
		case 1:
			return r.Sup.Send(r.Ctx, later)
		}
		return nil
	}))
	require.NoError(t, err)
	require.Equal(t, []any{0, 1, 2}, seen)
}

func waitingAfterEnd(t *testing.T, k Kind) {
	r := Start(t, k)
	held, v := r.Occupy(t, r.ID)
	ctx, cancel := context.WithTimeout(r.Ctx, 30*time.Millisecond)
	defer cancel()
	added := supervisor.NewSendPayload(r.ID, "Int", 1)
	var seen []string
	_, err := r.Sup.RecvAll(ctx, []supervisor.SendPayload{held}, supervisor.IgnoreErr(), supervisor.OnReply(func(w *supervisor.Waiting, p supervisor.RecvPayload) error {
		seen = append(seen, p.ReqID)
		require.ErrorIs(t, p.Err, supervisor.ErrTimeout)
		require.ErrorIs(t, w.Send(supervisor.NewSendPayload(r.ID, "Enter", "executed")), supervisor.ErrTimeout, "Send after the end")
		if p.ReqID == held.ReqID {
			return w.Add(added)
		}
		require.ErrorIs(t, w.Add(supervisor.NewSendPayload(r.ID, "Int", 2)), supervisor.ErrTimeout, "Add in answer to an added one")
		return nil
	}))
	require.NoError(t, err)
	require.Equal(t, []string{held.ReqID, added.ReqID}, seen)
	v.Left(t)
	r.Fine(t, r.ID)
	require.Empty(t, r.Ledger.Counts(t))
}

func onReplyReenters(t *testing.T, k Kind) {
	r := StartTwo(t, k)
	first, unrelated := r.Send(t, r.ID, "Int", 0), r.Send(t, r.ID, "Int", 1)
	_, err := r.Sup.RecvAll(r.Ctx, []supervisor.SendPayload{first}, supervisor.OnReply(func(*supervisor.Waiting, supervisor.RecvPayload) error {
		require.Equal(t, 1, r.Recv(t, unrelated).Data, "RecvAll inside")
		require.Equal(t, 5, CallOf[int](t, r, r.Other, "Int", 5), "Call inside")
		require.NoError(t, r.Sup.Restart(r.Ctx, r.ID), "Restart inside")
		require.NoError(t, r.Sup.Unregister(r.Ctx, r.Other), "Unregister inside")
		require.NoError(t, r.Sup.Shutdown(r.Ctx), "Shutdown inside")
		return nil
	}))
	require.NoError(t, err)
}
