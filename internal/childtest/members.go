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
	r := NewRig(t, k)
	for want := range 3 {
		require.Equal(t, want, r.Register(t, r.Job()), "id of a child")
	}
	r.StartLink(t)
	require.NoError(t, r.Sup.Unregister(r.Ctx, 2))
	require.NoError(t, r.Sup.Unregister(r.Ctx, 0))
	require.Equal(t, 3, r.Register(t, r.Job()), "the next id")
	r.Fine(t, 1)
	r.Fine(t, 3)
	for _, id := range []int{0, 2} {
		_, err := supervisor.Call[int](r.Ctx, r.Sup, id, "Int", 1)
		require.ErrorIs(t, err, supervisor.ErrNoSuchChild, "child %d", id)
		require.ErrorIs(t, r.Sup.Unregister(r.Ctx, id), supervisor.ErrNoSuchChild, "Unregister(%d) again", id)
	}
	require.Len(t, r.Sup.Snapshot().Children, 2)
	results, err := supervisor.Broadcast[int](r.Ctx, r.Sup, "Total")
	require.NoError(t, err)
	require.Equal(t, []supervisor.Result[int]{{ProcID: 1, Value: 10}, {ProcID: 3, Value: 10}}, results)
}

func registerLater(t *testing.T, k Kind) {
	r := NewRig(t, k)
	r.StartLink(t) // no child is no error
	id := r.Register(t, r.Job())
	require.Equal(t, 0, id)
	testkit.Within(t, prompt, func() { r.Fine(t, id) })
	require.Equal(t, supervisor.StateUp, r.Child(t, id).State)
}

func unregisterDrains(t *testing.T, k Kind) {
	r := StartTwo(t, k)
	held, v := r.Occupy(t, r.ID)
	queued := r.Send(t, r.ID, "Enter", "executed")
	done := make(chan error, 1)
	task.Go(func(context.Context) { done <- r.Sup.Unregister(r.Ctx, r.ID) })
	testkit.Until(t, "the child is out of use", func() bool { return len(r.Sup.Snapshot().Children) == 1 })
	_, err := supervisor.Call[int](r.Ctx, r.Sup, r.ID, "Int", 1)
	require.ErrorIs(t, err, supervisor.ErrNoSuchChild, "while it stops")
	v.Release(t, "last words")
	require.NoError(t, testkit.Receive(t, done, "Unregister"))
	require.Equal(t, "last words", r.Recv(t, held).Data)
	require.NoError(t, r.Recv(t, queued).Err, "what was queued is executed")
	require.Equal(t, map[string]int{"executed": 1, "close": 1}, r.Ledger.Counts(t))
	r.Fine(t, r.Other)
}

func unregisterKills(t *testing.T, k Kind) {
	r := StartTwo(t, k)
	held, v := r.Occupy(t, r.ID)
	ctx, cancel := context.WithTimeout(r.Ctx, 50*time.Millisecond)
	defer cancel()
	var err error
	testkit.Within(t, prompt, func() { err = r.Sup.Unregister(ctx, r.ID) })
	var stuck *supervisor.StuckError
	require.ErrorIs(t, err, supervisor.ErrTimeout)
	require.ErrorAs(t, err, &stuck, "what was cut off is named")
	require.Equal(t, r.ID, stuck.ProcID)
	require.Equal(t, "Hold", stuck.Method)
	require.ErrorIs(t, r.Recv(t, held).Err, supervisor.ErrClosed)
	v.Gone(t)
	r.Fine(t, r.Other)
}

func unregisterEarly(t *testing.T, k Kind) {
	r := NewRig(t, k)
	first, second := r.Register(t, r.Job()), r.Register(t, r.Job())
	require.NoError(t, r.Sup.Unregister(r.Ctx, first))
	r.StartLink(t)
	r.Fine(t, second)
	require.ErrorIs(t, r.Sup.Send(r.Ctx, supervisor.NewSendPayload(first, "Int", 1)), supervisor.ErrNoSuchChild)
}
