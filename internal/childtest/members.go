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

var memberRules = []rule{
	{"ids are given in order and never again", idsInOrder},
	{"a child that is registered later is ready at once", registerLater},
	{"Unregister finishes what was accepted", unregisterDrains},
	{"Unregister kills when its ctx ends", unregisterKills},
	{"Unregister before the start takes the id out of use", unregisterEarly},
}

func idsInOrder(t *testing.T, k Kind) {
	r := newRig(t, k)
	for want := range 3 {
		require.Equal(t, want, r.register(t, r.job()), "id of a child")
	}
	r.startLink(t)
	require.NoError(t, r.sup.Unregister(r.ctx, 2))
	require.NoError(t, r.sup.Unregister(r.ctx, 0))
	require.Equal(t, 3, r.register(t, r.job()), "the next id")
	r.fine(t, 1)
	r.fine(t, 3)
	for _, id := range []int{0, 2} {
		_, err := supervisor.Call[int](r.ctx, r.sup, id, "Int", 1)
		require.ErrorIs(t, err, supervisor.ErrNoSuchChild, "child %d", id)
		require.ErrorIs(t, r.sup.Unregister(r.ctx, id), supervisor.ErrNoSuchChild, "Unregister(%d) again", id)
	}
	require.Len(t, r.sup.Snapshot().Children, 2)
	results, err := supervisor.Broadcast[int](r.ctx, r.sup, "Total")
	require.NoError(t, err)
	require.Equal(t, []supervisor.Result[int]{{ProcID: 1, Value: 10}, {ProcID: 3, Value: 10}}, results)
}

func registerLater(t *testing.T, k Kind) {
	r := newRig(t, k)
	r.startLink(t) // no child is no error
	id := r.register(t, r.job())
	require.Equal(t, 0, id)
	testkit.Within(t, prompt, func() { r.fine(t, id) })
	require.Equal(t, supervisor.StateUp, r.child(t, id).State)
}

func unregisterDrains(t *testing.T, k Kind) {
	r := startTwo(t, k)
	held, v := r.occupy(t, r.id)
	queued := r.send(t, r.id, "Enter", "executed")
	done := make(chan error, 1)
	task.Go(func(context.Context) { done <- r.sup.Unregister(r.ctx, r.id) })
	testkit.Until(t, "the child is out of use", func() bool { return len(r.sup.Snapshot().Children) == 1 })
	_, err := supervisor.Call[int](r.ctx, r.sup, r.id, "Int", 1)
	require.ErrorIs(t, err, supervisor.ErrNoSuchChild, "while it stops")
	v.release(t, "last words")
	require.NoError(t, testkit.Receive(t, done, "Unregister"))
	require.Equal(t, "last words", r.recv(t, held).Data)
	require.NoError(t, r.recv(t, queued).Err, "what was queued is executed")
	require.Equal(t, map[string]int{"executed": 1, "close": 1}, r.ledger.Counts(t))
	r.fine(t, r.other)
}

func unregisterKills(t *testing.T, k Kind) {
	r := startTwo(t, k)
	held, v := r.occupy(t, r.id)
	ctx, cancel := context.WithTimeout(r.ctx, 50*time.Millisecond)
	defer cancel()
	var err error
	testkit.Within(t, prompt, func() { err = r.sup.Unregister(ctx, r.id) })
	var stuck *supervisor.StuckError
	require.ErrorIs(t, err, supervisor.ErrTimeout)
	require.ErrorAs(t, err, &stuck, "what was cut off is named")
	require.Equal(t, r.id, stuck.ProcID)
	require.Equal(t, "Hold", stuck.Method)
	require.ErrorIs(t, r.recv(t, held).Err, supervisor.ErrClosed)
	v.gone(t)
	r.fine(t, r.other)
}

func unregisterEarly(t *testing.T, k Kind) {
	r := newRig(t, k)
	first, second := r.register(t, r.job()), r.register(t, r.job())
	require.NoError(t, r.sup.Unregister(r.ctx, first))
	r.startLink(t)
	r.fine(t, second)
	require.ErrorIs(t, r.sup.Send(r.ctx, supervisor.NewSendPayload(first, "Int", 1)), supervisor.ErrNoSuchChild)
}
