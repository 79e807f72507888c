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
	r := start(t, k)
	life := r.child(t, r.id).Incarnation
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
		_, err := supervisor.Call[int](r.ctx, r.sup, r.id, "Panic", row.how)
		e := callError(t, err, r.id, "Panic")
		require.False(t, e.Unexecuted, "%s: %v", row.how, e)
		var p *supervisor.PanicError
		require.ErrorAs(t, err, &p, row.how)
		require.Contains(t, p.Value, row.value, row.how)
		require.Contains(t, p.Stack, "Panic", "%s: the stack shows the handler", row.how)
		if row.is != nil {
			require.ErrorIs(t, err, row.is, row.how)
		}
		require.Equal(t, 11+i, call[int](t, r, r.id, "Total"), "%s: the object after the panic", row.how)
	}
	require.Equal(t, life, r.child(t, r.id).Incarnation, "the life after the panics")
	require.Empty(t, r.ledger.Counts(t), "nothing was closed")
}

func panicInQueue(t *testing.T, k Kind) {
	r := start(t, k)
	_, v := r.occupy(t, r.id)
	var reqs []supervisor.SendPayload
	for range 5 {
		reqs = append(reqs, r.send(t, r.id, "Panic", "text"), r.send(t, r.id, "Panic", "exit"), r.send(t, r.id, "Int", 1))
	}
	v.release(t, "")
	replies, err := r.sup.RecvAll(r.ctx, reqs, supervisor.IgnoreErr())
	require.NoError(t, err)
	for i, p := range replies {
		var e *supervisor.PanicError
		if i%3 == 2 {
			require.NoError(t, p.Err, "request %d", i)
		} else {
			require.ErrorAs(t, p.Err, &e, "request %d", i)
		}
	}
	require.Equal(t, 20, call[int](t, r, r.id, "Total"), "each was executed once")
}
