package childtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
)

var panicRules = []rule{
	{"a panic is an error with value and stack, and the object is kept", panicIsError},
	{"what waits behind a panic is executed", panicInQueue},
}

func panicIsError(t *testing.T, k Kind) {
	r := Start(t, k)
	life := r.Child(t, r.ID).Incarnation
	for i, row := range []struct {
		how, value string
		is         error
	}{
		{"text", "a text", nil},
		{"error", "wrapped: " + ErrSentinel.Error(), ErrSentinel},
		{"nil", "nil", nil},
		{"runtime", "index out of range", nil},
		{"exit", "Goexit", nil},
	} {
		_, err := supervisor.Call[int](r.Ctx, r.Sup, r.ID, "Panic", row.how)
		e := CallErrorOf(t, err, r.ID, "Panic")
		require.False(t, e.Unexecuted, "%s: %v", row.how, e)
		var p *supervisor.PanicError
		require.ErrorAs(t, err, &p, row.how)
		require.Contains(t, p.Value, row.value, row.how)
		require.Contains(t, p.Stack, "Panic", "%s: the stack shows the handler", row.how)
		if row.is != nil {
			require.ErrorIs(t, err, row.is, row.how)
		}
		require.Equal(t, 11+i, CallOf[int](t, r, r.ID, "Total"), "%s: the object after the panic", row.how)
	}
	require.Equal(t, life, r.Child(t, r.ID).Incarnation, "the life after the panics")
	require.Empty(t, r.Ledger.Counts(t), "nothing was closed")
}

func panicInQueue(t *testing.T, k Kind) {
	r := Start(t, k)
	_, v := r.Occupy(t, r.ID)
	var reqs []supervisor.SendPayload
	for range 5 {
		reqs = append(reqs, r.Send(t, r.ID, "Panic", "text"), r.Send(t, r.ID, "Panic", "exit"), r.Send(t, r.ID, "Int", 1))
	}
	v.Release(t, "")
	replies, err := r.Sup.RecvAll(r.Ctx, reqs, supervisor.IgnoreErr())
	require.NoError(t, err)
	for i, p := range replies {
		var e *supervisor.PanicError
		if i%3 == 2 {
			require.NoError(t, p.Err, "request %d", i)
		} else {
			require.ErrorAs(t, p.Err, &e, "request %d", i)
		}
	}
	require.Equal(t, 20, CallOf[int](t, r, r.ID, "Total"), "each was executed once")
}
