package childtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/future"
	"github.com/workerlink/supervisor/internal/testkit"
)

var resultRules = []rule{
	{"a typed call converts numbers that lose nothing", typedCall},
	{"Value says what does not fit", valueConverts},
	{"Go returns a future", goFuture},
	{"the future of a refused call fails", goRefused},
	{"cancelling a future withdraws its call", goCancel},
	{"Broadcast calls every child", broadcast},
	{"Broadcast tells the children's errors apart", broadcastErrors},
	{"a lent buffer receives the result if it has the room", lentBuffer},
	{"keyword arguments fill the last parameter", keywords},
	{"timings are filled on demand", timings},
	{"a handler knows who it is", selfKnown},
}

func typedCall(t *testing.T, k Kind) {
	r := Start(t, k)
	require.Equal(t, 15, CallOf[int](t, r, r.ID, "Add", 5), "Add(5) of 10")
	require.Equal(t, int64(16), CallOf[int64](t, r, r.ID, "Add", 1), "an int asked for as int64")
	require.InDelta(t, 17, CallOf[float64](t, r, r.ID, "Add", 1), 0, "an int asked for as float64")
	_, err := supervisor.Call[string](r.Ctx, r.Sup, r.ID, "Add", 1)
	e := CallErrorOf(t, err, r.ID, "Add")
	require.ErrorIs(t, e, supervisor.ErrDecode, "an int asked for as string")
	require.False(t, e.Unexecuted, "%v", e)
}

func valueConverts(t *testing.T, k Kind) {
	r := Start(t, k)
	p := r.Recv(t, r.Send(t, r.ID, "Int", 300))
	n, err := supervisor.Value[int32](p)
	require.NoError(t, err, "Value[int32] of 300")
	require.EqualValues(t, 300, n)
	_, err = supervisor.Value[uint8](p)
	require.ErrorIs(t, err, supervisor.ErrDecode, "Value[uint8] of 300")
	_ = CallErrorOf(t, err, r.ID, "Int")
	nothing, err := supervisor.Value[int](r.Recv(t, r.Send(t, r.ID, "Nothing")))
	require.NoError(t, err, "Value of a method without a result")
	require.Zero(t, nothing)
}

func goFuture(t *testing.T, k Kind) {
	r := Start(t, k)
	var all []*future.Future[int]
	for i := range 20 {
		all = append(all, supervisor.Go[int](r.Ctx, r.Sup, r.ID, "Int", i))
	}
	for i, f := range all {
		n, err := f.Result(r.Ctx)
		require.NoError(t, err, "result %d", i)
		require.Equal(t, i, n, "result %d", i)
	}
}

func goRefused(t *testing.T, k Kind) {
	r := Start(t, k)
	_, err := supervisor.Go[int](r.Ctx, r.Sup, r.ID+7, "Int", 1).Result(r.Ctx)
	require.ErrorIs(t, err, supervisor.ErrNoSuchChild)
	require.True(t, CallErrorOf(t, err, r.ID+7, "Int").Unexecuted, "%v", err)
}

func goCancel(t *testing.T, k Kind) {
	r := Start(t, k)
	f := supervisor.Go[string](r.Ctx, r.Sup, r.ID, "Hold", "one")
	v := r.Gate.Next(t)
	f.Cancel()
	testkit.Closed(t, f.Done(), "the cancelled future")
	require.ErrorIs(t, f.Err(), supervisor.ErrCanceled)
	require.Contains(t, v.Left(t), "cancel", "what the handler's ctx says")
	r.Fine(t, r.ID)
}

func broadcast(t *testing.T, k Kind) {
	r := StartTwo(t, k)
	CallOf[int](t, r, r.Other, "Add", 5)
	results, err := supervisor.Broadcast[int](r.Ctx, r.Sup, "Add", 1)
	require.NoError(t, err)
	require.Equal(t, []supervisor.Result[int]{{ProcID: r.ID, Value: 11}, {ProcID: r.Other, Value: 16}}, results)
}

func broadcastErrors(t *testing.T, k Kind) {
	r := StartTwo(t, k)
	results, err := supervisor.Broadcast[int](r.Ctx, r.Sup, "Fail", "sentinel")
	require.ErrorIs(t, err, ErrSentinel)
	require.Len(t, results, 2)
	for i, id := range []int{r.ID, r.Other} {
		_ = CallErrorOf(t, results[i].Err, id, "Fail")
		require.Equal(t, id, results[i].ProcID)
	}
}

func lentBuffer(t *testing.T, k Kind) {
	r := Start(t, k)
	want := []byte("result")
	for _, row := range []struct {
		name   string
		buffer []byte
		lent   bool
	}{
		{"enough room", make([]byte, 100), true},
		{"room in the capacity", make([]byte, 0, 6), true},
		{"too small", make([]byte, 5), false},
	} {
		p := supervisor.NewSendPayload(r.ID, "Bytes", want)
		p.Into = row.buffer
		got, err := r.Sup.Do(r.Ctx, p)
		require.NoError(t, err, row.name)
		require.Equal(t, want, got.Data, row.name)
		data, _ := got.Data.([]byte)
		require.Equal(t, row.lent, &data[0] == &row.buffer[:1][0], "%s: the result lies in the buffer", row.name)
	}
}

func keywords(t *testing.T, k Kind) {
	r := Start(t, k)
	do := func(kwargs map[string]any, args ...any) (supervisor.RecvPayload, error) {
		return r.Sup.Do(r.Ctx, supervisor.SendPayload{ProcID: r.ID, Method: "Configure", Args: args, Kwargs: kwargs})
	}
	got, err := do(map[string]any{"Size": 3, "tags": []string{"a", "b"}}, "x")
	if !k.Can.Table {
		require.ErrorIs(t, err, supervisor.ErrBadArgs, "keyword arguments without a method table")
		require.True(t, CallErrorOf(t, err, r.ID, "Configure").Unexecuted, "%v", err)
		return
	}
	require.NoError(t, err)
	require.Equal(t, "x: size 3, tags a+b, verbose false", got.Data)
	got, err = do(map[string]any{"Verbose": true}, "y", Options{Size: 9})
	require.NoError(t, err, "on top of a struct in its place")
	require.Equal(t, "y: size 9, tags , verbose true", got.Data)
	_, err = do(map[string]any{"Colour": 1}, "z")
	require.ErrorIs(t, err, supervisor.ErrBadArgs, "a field that is not there")
	require.ErrorContains(t, err, "Colour")
	_, err = r.Sup.Do(r.Ctx, supervisor.SendPayload{ProcID: r.ID, Method: "Int", Args: []any{1}, Kwargs: map[string]any{"V": 1}})
	require.ErrorIs(t, err, supervisor.ErrBadArgs, "a method without a struct")
}

func timings(t *testing.T, k Kind) {
	r := NewRig(t, k)
	id, err := k.Register(r.Ctx, r.Sup, r.Job(), supervisor.WithTimings())
	if !k.Can.Concurrency {
		require.ErrorIs(t, err, supervisor.ErrUnsupported, "WithTimings")
		return
	}
	require.NoError(t, err)
	plain := r.Register(t, r.Job())
	r.StartLink(t)
	_, v := r.Occupy(t, id)
	waiting := r.Send(t, id, "Hold", "second")
	v.Release(t, "")
	r.Gate.Next(t).Release(t, "")
	p := r.Recv(t, waiting)
	require.NoError(t, p.Err)
	require.Positive(t, p.Queued, "time in the queue")
	require.Positive(t, p.Ran, "time of the handler")
	p = r.Recv(t, r.Send(t, plain, "Int", 1))
	require.Zero(t, p.Queued+p.Ran, "timings that nobody asked for")
}

func selfKnown(t *testing.T, k Kind) {
	r := NewRig(t, k)
	r.Register(t, r.Job())
	id := r.Register(t, r.Job(), supervisor.WithName("ada"))
	r.StartLink(t)
	p := r.Recv(t, r.Send(t, id, "Me"))
	info, err := supervisor.Value[supervisor.Info](p)
	require.NoError(t, err)
	require.Equal(t, id, info.ProcID)
	require.Equal(t, "ada", info.Name)
	require.Equal(t, p.Incarnation, info.Incarnation)
	require.NotZero(t, info.Incarnation)
	require.NotZero(t, info.Request)
}
