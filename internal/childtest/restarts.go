package childtest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

var restartRules = []rule{
	{"Restart makes a fresh object in a new life", restartFresh},
	{"open requests of the old life are answered by the restart", restartOpen},
	{"many restarts at once leave one life", restartMany},
	{"a sibling is not disturbed", restartSibling},
	{"there must be something to restart", restartUnknown},
	{"requests that meet a restart are answered once", restartUnderLoad},
}

func restartFresh(t *testing.T, k Kind) {
	r := Start(t, k)
	require.Equal(t, 15, CallOf[int](t, r, r.ID, "Add", 5))
	before := r.Child(t, r.ID)
	require.NoError(t, r.Sup.Restart(r.Ctx, r.ID))
	after := r.Child(t, r.ID)
	require.Greater(t, after.Incarnation, before.Incarnation, "life after Restart")
	require.Equal(t, 11, CallOf[int](t, r, r.ID, "Add", 1), "a fresh object")
	require.Zero(t, after.Restarts, "restarts by the policy")
	require.Equal(t, map[string]int{"close": 1}, r.Ledger.Counts(t), "the old object was closed")
	if k.Can.Process {
		require.NotEqual(t, before.Pid, after.Pid, "process id")
	}
	p := r.Recv(t, r.Send(t, r.ID, "Int", 1))
	require.Equal(t, after.Incarnation, p.Incarnation, "life of a reply")
}

func restartOpen(t *testing.T, k Kind) {
	r := Start(t, k)
	life := r.Child(t, r.ID).Incarnation
	held, v := r.Occupy(t, r.ID)
	queued := r.Send(t, r.ID, "Enter", "executed")
	require.NoError(t, r.Sup.Restart(r.Ctx, r.ID))
	for _, p := range []supervisor.SendPayload{held, queued} {
		got := r.Recv(t, p)
		require.ErrorIs(t, got.Err, supervisor.ErrRestarted, p.Method)
		require.Equal(t, life, CallErrorOf(t, got.Err, r.ID, p.Method).Incarnation, "life of the verdict")
	}
	v.Gone(t)
	r.Fine(t, r.ID)
	require.Zero(t, r.Ledger.Counts(t)["executed"], "what was queued is not executed, by either life")
}

func restartMany(t *testing.T, k Kind) {
	r := Start(t, k)
	results := make(chan error, 8)
	for range cap(results) {
		task.Go(func(context.Context) { results <- r.Sup.Restart(r.Ctx, r.ID) })
	}
	for range cap(results) {
		require.NoError(t, testkit.Receive(t, results, "Restart"))
	}
	r.Fine(t, r.ID)
	require.NoError(t, r.Sup.Shutdown(r.Ctx))
	up := 0
	for _, e := range r.Events.All() {
		switch e.Kind {
		case supervisor.EventStarted:
			up++
		case supervisor.EventStopped:
			up--
		}
		require.LessOrEqual(t, up, 1, "lives at once, by the events:\n%s", r.Events)
	}
	require.Zero(t, up, "lives at the end, by the events:\n%s", r.Events)
}

func restartSibling(t *testing.T, k Kind) {
	r := StartTwo(t, k)
	life := r.Child(t, r.Other).Incarnation
	held, v := r.Occupy(t, r.Other)
	require.NoError(t, r.Sup.Restart(r.Ctx, r.ID))
	v.Release(t, "undisturbed")
	require.Equal(t, "undisturbed", r.Recv(t, held).Data)
	require.Equal(t, life, r.Child(t, r.Other).Incarnation, "life of the sibling")
}

func restartUnknown(t *testing.T, k Kind) {
	r := Start(t, k)
	for _, id := range []int{-1, 7} {
		require.ErrorIs(t, r.Sup.Restart(r.Ctx, id), supervisor.ErrNoSuchChild, "Restart(%d)", id)
	}
	r.Fine(t, r.ID)
}

func restartUnderLoad(t *testing.T, k Kind) {
	r := Start(t, k)
	var law testkit.Law
	var senders []*task.Task
	for range 4 {
		senders = append(senders, task.Go(func(context.Context) {
			for range 50 {
				p := supervisor.NewSendPayload(r.ID, "Enter", "")
				p.Args[0] = p.ReqID
				got, err := r.Sup.Do(r.Ctx, p)
				law.Accept(p.ReqID)
				law.Verdict(got.ReqID, OutcomeOf(err))
			}
		}))
	}
	for range 3 {
		require.NoError(t, r.Sup.Restart(r.Ctx, r.ID))
	}
	for _, s := range senders {
		s.Wait()
	}
	counts := r.Ledger.Counts(t)
	delete(counts, "close")
	law.Check(t, counts)
	accepted, _ := law.Counts()
	require.Equal(t, 200, accepted)
}
