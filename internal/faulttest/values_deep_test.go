package faulttest_test

// Values that cannot cross: refused to their own call, at once, and to nobody else.

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// valuesPrompt is how long a call may take that has nothing to wait for.
const valuesPrompt = 20 * time.Second

// valuesCopied runs a test for each kind of child that gets copies.
func valuesCopied(t *testing.T, test func(t *testing.T, r *valuesRig)) {
	t.Helper()
	kinds := map[string]childtest.Kind{"goroutine with copies": childtest.Copies()}
	for _, k := range childtest.Kinds() {
		if k.Can.Copy {
			kinds[k.Name] = k
		}
	}
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			testkit.NoLeaks(t)
			test(t, newValuesRig(t, k))
		})
	}
}

// valuesRig is a supervisor with two workers: the one that the test is about, and its sibling.
type valuesRig struct {
	sup  *supervisor.Supervisor
	kind childtest.Kind
	gate *childtest.Gate
	life uint64 // of the first
}

const valuesMain, valuesSibling = 0, 1

func newValuesRig(t *testing.T, k childtest.Kind, opts ...supervisor.ChildOption) *valuesRig {
	t.Helper()
	r := &valuesRig{kind: k, gate: childtest.NewGate(t), sup: newSupervisor(t, k.Type)}
	if k.Can.Copy && !k.Can.Process {
		opts = append(opts, supervisor.WithCopy())
	}
	for range 2 {
		register(t, r.sup, newValues.With(r.gate.Address), opts...)
	}
	require.NoError(t, r.sup.StartLink(context.Background()), "StartLink")
	r.life = r.sup.Snapshot().Children[valuesMain].Incarnation
	return r
}

// call calls the worker that the test is about.
func (r *valuesRig) call(t testing.TB, method string, args ...any) (got any, err error) {
	t.Helper()
	testkit.Within(t, valuesPrompt, func() {
		got, err = supervisor.Call[any](context.Background(), r.sup, valuesMain, method, args...)
	})
	return got, err
}

// fine asserts that both workers answer, the first in its first life.
func (r *valuesRig) fine(t testing.TB) {
	t.Helper()
	testkit.Within(t, valuesPrompt, func() {
		for _, id := range []int{valuesMain, valuesSibling} {
			p, err := supervisor.Call[valuesPoint](testkit.Context(t), r.sup, id, "Point", valuesPoint{1, 2})
			require.NoError(t, err, "a sound call of child %d", id)
			require.Equal(t, valuesPoint{1, 2}, p, "its result")
		}
	})
	require.Equal(t, r.life, r.sup.Snapshot().Children[valuesMain].Incarnation, "the life of the worker")
}

// refused asserts that a call ended so, before or after it was executed, and that everything else goes on.
func (r *valuesRig) refused(t testing.TB, err, want error, unexecuted bool, what string) {
	t.Helper()
	require.ErrorIs(t, err, want, what)
	var e *supervisor.CallError
	require.ErrorAs(t, err, &e, what)
	require.Equal(t, unexecuted, e.Unexecuted, "%s: not executed: %v", what, err)
	r.fine(t)
}

// Gob walks through values by recursion, and an overflow of the stack ends the process.
func TestF09DeepNesting(t *testing.T) {
	valuesCopied(t, func(t *testing.T, r *valuesRig) {
		deep := times(300_000, 3_000_000)
		_, err := r.call(t, "Chain", valuesGrown(deep))
		r.refused(t, err, supervisor.ErrEncode, true, "an argument of far too many levels")
		_, err = r.call(t, "Grow", deep)
		r.refused(t, err, supervisor.ErrEncode, false, "a result of far too many levels")
		nested := any(1)
		for range deep {
			nested = []any{nested}
		}
		_, err = r.call(t, "Any", nested)
		r.refused(t, err, supervisor.ErrEncode, true, "a list in a list far too often")

		const most = 9_000
		got, err := supervisor.Call[*valuesChain](testkit.Context(t), r.sup, valuesMain, "Chain", valuesGrown(most))
		require.NoError(t, err, "a chain as deep as may be")
		links := 0
		for ; got != nil; got = got.Next {
			links++
		}
		require.Equal(t, most, links, "links of the chain that returns")
	})
}

func TestF10CyclicValues(t *testing.T) {
	valuesCopied(t, func(t *testing.T, r *valuesRig) {
		list, dict := []any{nil}, map[string]any{}
		list[0], dict["itself"] = list, dict
		inMap := &valuesChain{More: map[string]*valuesChain{}}
		inMap.More["itself"] = inMap
		inAny := &valuesChain{}
		inAny.Any = inAny
		for _, row := range []struct {
			name, method string
			arg          any
		}{
			{"pointer", "Chain", valuesGrown(0)},
			{"pointer in any", "Any", valuesGrown(0)},
			{"map", "Chain", inMap},
			{"interface", "Chain", inAny},
			{"list", "Any", list},
			{"dict", "Any", dict},
		} {
			_, err := r.call(t, row.method, row.arg)
			r.refused(t, err, supervisor.ErrEncode, true, row.name)
		}
		_, err := r.call(t, "Grow", 0)
		r.refused(t, err, supervisor.ErrEncode, false, "a result that contains itself")
	})
}

// A channel or function cannot cross, and one in a field, which gob would leave out without a word, is no exception.
func TestF13ChannelsAndFunctions(t *testing.T) {
	valuesCopied(t, func(t *testing.T, r *valuesRig) {
		for _, row := range []struct {
			name, method string
			arg          any
			text         string
		}{
			{"channel", "Channel", make(chan int), "chan int"},
			{"function", "Func", func() {}, "func()"},
			{"channel in any", "Any", make(chan int), "chan int"},
			{"function in any", "Any", func() {}, "func()"},
			{"channel in a list", "Any", []any{1, make(chan int)}, "chan int"},
			{"channel in a field", "Leaky", valuesLeaky{Chan: make(chan int)}, "Chan"},
			{"function in a field", "Leaky", valuesLeaky{Func: func() {}}, "Func"},
		} {
			_, err := r.call(t, row.method, row.arg)
			require.ErrorContains(t, err, row.text, row.name)
			r.refused(t, err, supervisor.ErrEncode, true, row.name)
		}
		_, err := r.call(t, "Stuck")
		r.refused(t, err, supervisor.ErrEncode, false, "a channel as result")
		got, err := supervisor.Call[valuesLeaky](testkit.Context(t), r.sup, valuesMain, "Leaky", valuesLeaky{N: 4})
		require.NoError(t, err, "the same struct with nothing in those fields")
		require.Equal(t, valuesLeaky{N: 4}, got, "its result")
	})
}

// One bad value must not take those behind it along.
func TestC57GoodValuesBehindABadOne(t *testing.T) {
	valuesCopied(t, func(t *testing.T, r *valuesRig) {
		const good = 100
		ctx := testkit.Context(t)
		var law testkit.Law
		var want []supervisor.SendPayload
		for i := range good {
			if i%10 == 0 {
				err := r.sup.Send(ctx, supervisor.NewSendPayload(valuesMain, "Any", make(chan int)))
				require.ErrorIs(t, err, supervisor.ErrEncode, "the bad one before %d", i)
			}
			p := supervisor.NewSendPayload(valuesMain, "Point", valuesPoint{i, -i})
			want = append(want, send(t, r.sup, p)...)
			law.Accept(p.ReqID)
		}
		stuck := send(t, r.sup, supervisor.NewSendPayload(valuesMain, "Stuck"))
		law.Accept(stuck[0].ReqID)
		got, err := r.sup.RecvAll(ctx, append(want, stuck...), supervisor.IgnoreErr())
		require.NoError(t, err, "RecvAll")
		for i, p := range got {
			law.Verdict(p.ReqID, childtest.OutcomeOf(p.Err))
			if i == good {
				require.ErrorIs(t, p.Err, supervisor.ErrEncode, "the bad result")
				continue
			}
			require.NoError(t, p.Err, "call %d", i)
			require.Equal(t, valuesPoint{i, -i}, p.Data, "result %d", i)
		}
		law.Check(t, nil)
		require.Zero(t, r.sup.Snapshot().Open+r.sup.Snapshot().Unclaimed, "requests that are left")
		r.fine(t)
	})
}
