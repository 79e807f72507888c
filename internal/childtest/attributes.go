package childtest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/task"
)

var attributeRules = []rule{
	{"fields and methods without arguments can be read", attributesRead},
	{"an attribute is read in its turn", attributeInTurn},
	{"GetAttr reads from every child", attributesOfAll},
	{"what is no attribute is refused", attributesRefused},
}

func attributesRead(t *testing.T, k Kind) {
	r := Start(t, k)
	count, err := supervisor.GetChildAttr[int](r.Ctx, r.Sup, r.ID, "Count")
	if !k.Can.Table {
		require.ErrorIs(t, err, supervisor.ErrUnsupported, "an attribute without a method table")
		require.True(t, CallErrorOf(t, err, r.ID, "Count").Unexecuted, "%v", err)
		return
	}
	require.NoError(t, err)
	require.Equal(t, 10, count)
	title, err := supervisor.GetChildAttr[string](r.Ctx, r.Sup, r.ID, "Title")
	require.NoError(t, err)
	require.Equal(t, "worker 10", title)
	CallOf[int](t, r, r.ID, "Add", 3)
	total, err := supervisor.GetChildAttr[int](r.Ctx, r.Sup, r.ID, "Total")
	require.NoError(t, err, "a method as an attribute")
	require.Equal(t, 13, total)
}

func attributeInTurn(t *testing.T, k Kind) {
	if !k.Can.Table {
		attributesRead(t, k) // which shows the refusal
		return
	}
	r := Start(t, k)
	_, v := r.Occupy(t, r.ID)
	r.Send(t, r.ID, "Add", 5)
	var count int
	var err error
	reading := task.Go(func(context.Context) { count, err = supervisor.GetChildAttr[int](r.Ctx, r.Sup, r.ID, "Count") })
	v.Release(t, "")
	reading.Wait()
	require.NoError(t, err)
	require.Equal(t, 15, count, "Count, asked for after Add")
}

func attributesOfAll(t *testing.T, k Kind) {
	r := StartTwo(t, k)
	CallOf[int](t, r, r.Other, "Add", 1)
	results, err := supervisor.GetAttr[int](r.Ctx, r.Sup, "Count")
	require.Len(t, results, 2)
	if !k.Can.Table {
		require.ErrorIs(t, err, supervisor.ErrUnsupported)
		return
	}
	require.NoError(t, err)
	require.Equal(t, []supervisor.Result[int]{{ProcID: r.ID, Value: 10}, {ProcID: r.Other, Value: 11}}, results)
}

func attributesRefused(t *testing.T, k Kind) {
	r := Start(t, k)
	want := supervisor.ErrNoSuchMethod
	if !k.Can.Table {
		want = supervisor.ErrUnsupported
	}
	for _, name := range []string{"Nope", "job", "log", "Add", "Nothing", "Close", ""} {
		_, err := supervisor.GetChildAttr[any](r.Ctx, r.Sup, r.ID, name)
		require.ErrorIs(t, err, want, "attribute %q", name)
		require.True(t, CallErrorOf(t, err, r.ID, name).Unexecuted, "%v", err)
	}
	if k.Can.Table {
		_, err := supervisor.Call[int](r.Ctx, r.Sup, r.ID, "Count")
		require.ErrorIs(t, err, supervisor.ErrNoSuchMethod, "a field, called")
	}
	r.Fine(t, r.ID)
}
