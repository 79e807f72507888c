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
	r := start(t, k)
	require.Equal(t, 15, call[int](t, r, r.id, "Add", 5))
	before := r.child(t, r.id)
	require.NoError(t, r.sup.Restart(r.ctx, r.id))
	after := r.child(t, r.id)
	require.Greater(t, after.Incarnation, before.Incarnation, "life after Restart")
	require.Equal(t, 11, call[int](t, r, r.id, "Add", 1), "a fresh object")
	require.Zero(t, after.Restarts, "restarts by the policy")
	require.Equal(t, map[string]int{"close": 1}, r.ledger.Counts(t), "the old object was closed")
	if k.Can.Process {
		require.NotEqual(t, before.Pid, after.Pid, "process id")
	}
	p := r.recv(t, r.send(t, r.id, "Int", 1))
	require.Equal(t, after.Incarnation, p.Incarnation, "life of a reply")
}

func restartOpen(t *testing.T, k Kind) {
	r := start(t, k)
	life := r.child(t, r.id).Incarnation
	held, v := r.occupy(t, r.id)
	queued := r.send(t, r.id, "Enter", "executed")
	require.NoError(t, r.sup.Restart(r.ctx, r.id))
	for _, p := range []supervisor.SendPayload{held, queued} {
		got := r.recv(t, p)
		require.ErrorIs(t, got.Err, supervisor.ErrRestarted, p.Method)
		require.Equal(t, life, callError(t, got.Err, r.id, p.Method).Incarnation, "life of the verdict")
	}
	v.gone(t)
	r.fine(t, r.id)
	require.Zero(t, r.ledger.Counts(t)["executed"], "what was queued is not executed, by either life")
}

func restartMany(t *testing.T, k Kind) {
	r := start(t, k)
	results := make(chan error, 8)
	for range cap(results) {
		task.Go(func(context.Context) { results <- r.sup.Restart(r.ctx, r.id) })
	}
	for range cap(results) {
		require.NoError(t, testkit.Receive(t, results, "Restart"))
	}
	r.fine(t, r.id)
	require.NoError(t, r.sup.Shutdown(r.ctx))
	up := 0
	for _, e := range r.events.All() {
		switch e.Kind {
		case supervisor.EventStarted:
			up++
		case supervisor.EventStopped:
			up--
		}
		require.LessOrEqual(t, up, 1, "lives at once, by the events:\n%s", r.events)
	}
	require.Zero(t, up, "lives at the end, by the events:\n%s", r.events)
}

func restartSibling(t *testing.T, k Kind) {
	r := startTwo(t, k)
	life := r.child(t, r.other).Incarnation
	held, v := r.occupy(t, r.other)
	require.NoError(t, r.sup.Restart(r.ctx, r.id))
	v.release(t, "undisturbed")
	require.Equal(t, "undisturbed", r.recv(t, held).Data)
	require.Equal(t, life, r.child(t, r.other).Incarnation, "life of the sibling")
}

func restartUnknown(t *testing.T, k Kind) {
	r := start(t, k)
	for _, id := range []int{-1, 7} {
		require.ErrorIs(t, r.sup.Restart(r.ctx, id), supervisor.ErrNoSuchChild, "Restart(%d)", id)
	}
	r.fine(t, r.id)
}

func restartUnderLoad(t *testing.T, k Kind) {
	r := start(t, k)
	var law testkit.Law
	var senders []*task.Task
	for range 4 {
		senders = append(senders, task.Go(func(context.Context) {
			for range 50 {
				p := supervisor.NewSendPayload(r.id, "Enter", "")
				p.Args[0] = p.ReqID
				got, err := r.sup.Do(r.ctx, p)
				law.Accept(p.ReqID)
				law.Verdict(got.ReqID, outcome(err))
			}
		}))
	}
	for range 3 {
		require.NoError(t, r.sup.Restart(r.ctx, r.id))
	}
	for _, s := range senders {
		s.Wait()
	}
	counts := r.ledger.Counts(t)
	delete(counts, "close")
	law.Check(t, counts)
	accepted, _ := law.Counts()
	require.Equal(t, 200, accepted)
}
