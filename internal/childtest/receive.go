package childtest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

var receiveRules = []rule{
	{"Recv gives replies in the order of arrival", recvOrder},
	{"Recv waits until its ctx ends", recvWaits},
	{"RecvAll gives one entry per request, in their order", recvAllOrder},
	{"RecvAll leaves the replies of others", recvAllLeaves},
	{"what RecvAll is asked for must exist", recvAllUnknown},
	{"the first error ends RecvAll, and nothing is lost", recvAllFirstError},
	{"IgnoreErr makes errors results", recvAllIgnoreErr},
	{"when its ctx ends RecvAll abandons what is open", recvAllAbandons},
	{"what it abandons in the queue is not executed", recvAllAbandonsQueued},
	{"each request gets one verdict and is executed once", conservation},
}

func recvOrder(t *testing.T, k Kind) {
	r := Start(t, k)
	var want []string
	for i := range 30 {
		want = append(want, r.Send(t, r.ID, "Int", i).ReqID)
	}
	var got []string
	for i := range 30 {
		p, err := r.Sup.Recv(r.Ctx)
		require.NoError(t, err)
		require.Equal(t, i, p.Data)
		require.Equal(t, "Int", p.Method)
		require.Equal(t, r.ID, p.ProcID)
		got = append(got, p.ReqID)
	}
	require.Equal(t, want, got)
}

func recvWaits(t *testing.T, k Kind) {
	r := Start(t, k)
	ctx, cancel := context.WithTimeout(r.Ctx, 30*time.Millisecond)
	defer cancel()
	_, err := r.Sup.Recv(ctx)
	require.ErrorIs(t, err, supervisor.ErrTimeout)
	_, err = r.Sup.Recv(r.Ctx, supervisor.IdleTimeout(30*time.Millisecond))
	require.ErrorIs(t, err, supervisor.ErrTimeout, "by IdleTimeout")
	var e *supervisor.CallError
	require.NotErrorAs(t, err, &e, "Recv's own errors are no verdicts")
	_, err = r.Sup.Recv(r.Ctx, supervisor.IdleTimeout(-1))
	require.ErrorIs(t, err, supervisor.ErrBadArgs)
	_, v := r.Occupy(t, r.ID)
	got := make(chan any, 1)
	task.Go(func(context.Context) {
		p, err := r.Sup.Recv(r.Ctx)
		got <- fmt.Sprintf("%v %v", p.Data, err)
	})
	v.Release(t, "there")
	require.Equal(t, "there <nil>", testkit.Receive(t, got, "Recv"))
}

func recvAllOrder(t *testing.T, k Kind) {
	r := StartTwo(t, k)
	slow, v := r.Occupy(t, r.ID)
	reqs := []supervisor.SendPayload{slow, r.Send(t, r.Other, "Int", 1), r.Send(t, r.ID, "Int", 2), r.Send(t, r.Other, "Int", 3)}
	testkit.Until(t, "the other child has answered", func() bool { return r.Sup.Snapshot().Unclaimed == 2 })
	v.Release(t, "0")
	replies, err := r.Sup.RecvAll(r.Ctx, reqs)
	require.NoError(t, err)
	require.Len(t, replies, len(reqs))
	for i, p := range replies {
		require.Equal(t, reqs[i].ReqID, p.ReqID, "entry %d", i)
		require.Equal(t, reqs[i].ProcID, p.ProcID, "entry %d", i)
		require.Equal(t, []any{"0", 1, 2, 3}[i], p.Data, "entry %d", i)
	}
}

func recvAllLeaves(t *testing.T, k Kind) {
	r := Start(t, k)
	var all []supervisor.SendPayload
	for i := range 9 {
		all = append(all, r.Send(t, r.ID, "Int", i))
	}
	var mine []supervisor.SendPayload
	for i := 1; i < 9; i += 3 {
		mine = append(mine, all[i])
	}
	slices.Reverse(mine)
	replies, err := r.Sup.RecvAll(r.Ctx, mine)
	require.NoError(t, err)
	for i, p := range replies {
		require.Equal(t, 7-3*i, p.Data, "entry %d", i)
	}
	for _, want := range []int{0, 2, 3, 5, 6, 8} {
		p, err := r.Sup.Recv(r.Ctx)
		require.NoError(t, err)
		require.Equal(t, want, p.Data, "what is left keeps its order")
	}
}

func recvAllUnknown(t *testing.T, k Kind) {
	r := Start(t, k)
	for _, none := range [][]supervisor.SendPayload{nil, {}} {
		replies, err := r.Sup.RecvAll(r.Ctx, none)
		require.NoError(t, err)
		require.Equal(t, []supervisor.RecvPayload{}, replies)
	}
	p := r.Send(t, r.ID, "Int", 1)
	never := supervisor.NewSendPayload(r.ID, "Int", 2)
	testkit.Within(t, prompt, func() {
		_, err := r.Sup.RecvAll(r.Ctx, []supervisor.SendPayload{p, never})
		require.ErrorIs(t, err, supervisor.ErrNoSuchRequest)
		require.ErrorContains(t, err, never.ReqID)
	})
	replies, err := r.Sup.RecvAll(r.Ctx, []supervisor.SendPayload{p, p})
	require.NoError(t, err, "an id that stands twice in the list")
	require.Len(t, replies, 2)
	require.Equal(t, replies[0], replies[1])
	_, err = r.Sup.RecvAll(r.Ctx, []supervisor.SendPayload{p})
	require.ErrorIs(t, err, supervisor.ErrNoSuchRequest, "a reply that was taken")
}

func recvAllFirstError(t *testing.T, k Kind) {
	r := StartTwo(t, k)
	held, v := r.Occupy(t, r.Other)
	fast := r.Send(t, r.ID, "Int", 1)
	bad := r.Send(t, r.ID, "Fail", "sentinel")
	after := r.Send(t, r.ID, "Int", 2)
	reqs := []supervisor.SendPayload{held, fast, bad, after}
	testkit.Until(t, "the first child has answered", func() bool { return r.Sup.Snapshot().Unclaimed == 3 })
	replies, err := r.Sup.RecvAll(r.Ctx, reqs)
	require.ErrorIs(t, err, ErrSentinel)
	_ = CallErrorOf(t, err, r.ID, "Fail")
	require.Len(t, replies, 4)
	require.Equal(t, 1, replies[1].Data, "what came before the error")
	require.ErrorIs(t, replies[2].Err, ErrSentinel)
	for _, i := range []int{0, 3} {
		require.ErrorIs(t, replies[i].Err, supervisor.ErrPending, "entry %d", i)
		require.Equal(t, reqs[i].ReqID, replies[i].ReqID, "entry %d", i)
	}
	v.Release(t, "still there")
	require.Equal(t, 2, r.Recv(t, after).Data, "what came after the error")
	require.Equal(t, "still there", r.Recv(t, held).Data, "what was pending")
}

func recvAllIgnoreErr(t *testing.T, k Kind) {
	r := Start(t, k)
	reqs := []supervisor.SendPayload{r.Send(t, r.ID, "Fail", "wrapped"), r.Send(t, r.ID, "Int", 1), r.Send(t, r.ID, "Panic", "text")}
	replies, err := r.Sup.RecvAll(r.Ctx, reqs, supervisor.IgnoreErr())
	require.NoError(t, err)
	require.ErrorIs(t, replies[0].Err, ErrSentinel)
	require.Equal(t, 1, replies[1].Data)
	var p *supervisor.PanicError
	require.ErrorAs(t, replies[2].Err, &p)
}

func recvAllAbandons(t *testing.T, k Kind) {
	for _, row := range []struct {
		name string
		ctx  func(ctx context.Context) (context.Context, context.CancelFunc)
		opts []supervisor.RecvOption
		want error
	}{
		{"deadline", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 50*time.Millisecond)
		}, nil, supervisor.ErrTimeout},
		{"cancel", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(50*time.Millisecond, cancel)
			return ctx, cancel
		}, nil, supervisor.ErrCanceled},
		{"idle", context.WithCancel, []supervisor.RecvOption{supervisor.IdleTimeout(50 * time.Millisecond)}, supervisor.ErrTimeout},
	} {
		r := StartTwo(t, k)
		held, v := r.Occupy(t, r.ID)
		done := r.Send(t, r.Other, "Int", 1)
		reqs := []supervisor.SendPayload{held, done}
		testkit.Until(t, "the other child has answered", func() bool { return r.Sup.Snapshot().Unclaimed == 1 })
		ctx, cancel := row.ctx(r.Ctx)
		replies, err := r.Sup.RecvAll(ctx, reqs, row.opts...)
		cancel()
		require.ErrorIs(t, err, row.want, row.name)
		require.Equal(t, 1, replies[1].Data, "%s: what was there", row.name)
		require.ErrorIs(t, replies[0].Err, row.want, row.name)
		_ = CallErrorOf(t, replies[0].Err, r.ID, "Hold")
		require.Equal(t, held.ReqID, replies[0].ReqID, row.name)
		v.Left(t) // its ctx has ended, too
		r.Fine(t, r.ID)
		_, err = r.Sup.RecvAll(r.Ctx, reqs[:1])
		require.ErrorIs(t, err, supervisor.ErrNoSuchRequest, "%s: what was abandoned is gone", row.name)
	}
}

func recvAllAbandonsQueued(t *testing.T, k Kind) {
	r := Start(t, k)
	held, v := r.Occupy(t, r.ID)
	queued := []supervisor.SendPayload{r.Send(t, r.ID, "Enter", "executed"), r.Send(t, r.ID, "Enter", "executed")}
	ctx, cancel := context.WithTimeout(r.Ctx, 30*time.Millisecond)
	defer cancel()
	replies, err := r.Sup.RecvAll(ctx, queued, supervisor.IgnoreErr())
	require.NoError(t, err)
	for i, p := range replies {
		require.ErrorIs(t, p.Err, supervisor.ErrTimeout, "entry %d", i)
	}
	require.NoError(t, r.Sup.Cancel(held.ReqID)) // a worker hears of it after the others
	v.Left(t)
	r.Fine(t, r.ID)
	require.Empty(t, r.Ledger.Counts(t), "executions")
}

func conservation(t *testing.T, k Kind) {
	r := StartTwo(t, k)
	var law testkit.Law
	var reqs []supervisor.SendPayload
	for i := range 200 {
		id := []int{r.ID, r.Other}[i%2]
		p := supervisor.NewSendPayload(id, "Enter", "")
		p.Args[0] = p.ReqID
		if i%10 == 9 {
			p = supervisor.NewSendPayload(id, "Fail", "sentinel")
		}
		require.NoError(t, r.Sup.Send(r.Ctx, p))
		law.Accept(p.ReqID)
		reqs = append(reqs, p)
		if i%7 == 0 {
			require.NoError(t, r.Sup.Cancel(p.ReqID))
		}
	}
	replies, err := r.Sup.RecvAll(r.Ctx, reqs, supervisor.IgnoreErr())
	require.NoError(t, err)
	for _, p := range replies {
		law.Verdict(p.ReqID, OutcomeOf(p.Err))
	}
	law.Check(t, r.Ledger.Counts(t))
	_, verdicts := law.Counts()
	require.NotZero(t, verdicts[testkit.Value], "values among %v", verdicts)
	require.Zero(t, r.Sup.Snapshot().Open+r.Sup.Snapshot().Unclaimed, "what is left")
}
