package childtest

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
)

var valueRules = []rule{
	{"values of many types arrive and return as they are", valuesReturn},
	{"a variadic method takes its arguments one by one", variadic},
	{"what is special about a value is kept", specialValues},
	{"values inside interfaces keep their types", dynamicValues},
	{"numbers become the parameter's type if nothing is lost", numbersConvert},
	{"a large value arrives whole", largeValue},
	{"arguments are copied or shared, as the kind says", sharing},
}

func valuesReturn(t *testing.T, k Kind) {
	r := Start(t, k)
	moment := time.Date(2026, 7, 1, 12, 30, 0, 5, time.UTC)
	for _, row := range []struct {
		method string
		args   []any
		want   any
	}{
		{"Int", []any{-42}, -42},
		{"Int64", []any{int64(math.MinInt64)}, int64(math.MinInt64)},
		{"Byte", []any{uint8(255)}, uint8(255)},
		{"Uint64", []any{uint64(math.MaxUint64)}, uint64(math.MaxUint64)},
		{"Float", []any{1.5e-300}, 1.5e-300},
		{"Bool", []any{true}, true},
		{"Text", []any{"grün\x00\xff"}, "grün\x00\xff"},
		{"Bytes", []any{[]byte{0, 1, 255}}, []byte{0, 1, 255}},
		{"Floats", []any{[]float32{1, -2.5}}, []float32{1, -2.5}},
		{"Texts", []any{[]string{"a", "", "c"}}, []string{"a", "", "c"}},
		{"Map", []any{map[string]int{"a": 1, "b": 0}}, map[string]int{"a": 1, "b": 0}},
		{"Struct", []any{Point{X: 1, Y: -1}}, Point{X: 1, Y: -1}},
		{"Pointer", []any{&Point{X: 3}}, &Point{X: 3}},
		{"Tree", []any{&Tree{Name: "root", Kids: []*Tree{{Name: "leaf"}}}}, &Tree{Name: "root", Kids: []*Tree{{Name: "leaf"}}}},
		{"Grade", []any{Grade(7)}, Grade(7)},
		{"Time", []any{moment}, moment},
		{"Duration", []any{time.Hour}, time.Hour},
		{"Both", []any{"x"}, "<x>"},
		{"Nothing", nil, nil},
		{"Only", nil, nil},
	} {
		got, err := r.Sup.Do(r.Ctx, supervisor.SendPayload{ProcID: r.ID, Method: row.method, Args: row.args})
		require.NoError(t, err, "%s(%v)", row.method, row.args)
		require.Equal(t, row.want, got.Data, "%s(%v)", row.method, row.args)
	}
}

func variadic(t *testing.T, k Kind) {
	r := Start(t, k)
	require.Equal(t, 1, CallOf[int](t, r, r.ID, "Sum", 1), "none of the variable arguments")
	require.Equal(t, 3, CallOf[int](t, r, r.ID, "Sum", 1, 2), "one of them")
	require.Equal(t, 10, CallOf[int](t, r, r.ID, "Sum", 1, 2, 3, 4), "three of them")
}

func specialValues(t *testing.T, k Kind) {
	r := Start(t, k)
	require.True(t, math.IsNaN(CallOf[float64](t, r, r.ID, "Float", math.NaN())), "NaN")
	require.True(t, math.IsInf(CallOf[float64](t, r, r.ID, "Float", math.Inf(-1)), -1), "-Inf")
	require.True(t, math.Signbit(CallOf[float64](t, r, r.ID, "Float", math.Copysign(0, -1))), "-0")
	require.Nil(t, CallOf[[]byte](t, r, r.ID, "Bytes", []byte(nil)), "nil bytes")
	require.Equal(t, []byte{}, CallOf[[]byte](t, r, r.ID, "Bytes", []byte{}), "empty bytes")
	require.Nil(t, CallOf[map[string]int](t, r, r.ID, "Map", map[string]int(nil)), "nil map")
	require.Equal(t, map[string]int{}, CallOf[map[string]int](t, r, r.ID, "Map", map[string]int{}), "empty map")
	require.Nil(t, CallOf[[]string](t, r, r.ID, "Texts", []string(nil)), "nil slice")
	require.Equal(t, []string{}, CallOf[[]string](t, r, r.ID, "Texts", []string{}), "empty slice")
	require.Nil(t, CallOf[*Point](t, r, r.ID, "Pointer", (*Point)(nil)), "nil pointer")
	require.Equal(t, &Point{}, CallOf[*Point](t, r, r.ID, "Pointer", &Point{}), "pointer to a zero value")
	require.Empty(t, CallOf[string](t, r, r.ID, "Text", ""), "empty string")
}

func dynamicValues(t *testing.T, k Kind) {
	r := Start(t, k)
	for _, v := range []any{
		nil, 1, int8(-3), uint16(9), 2.5, "s", true, []byte("b"),
		[]string{"x"},
		[]float64{1},
		map[string]any{"k": 1},
		[]any{1, "two", nil},
		Point{X: 1, Y: 2},
		&Point{X: 5},
		[]Point{{X: 1}},
		time.Minute,
	} {
		got, err := r.Sup.Do(r.Ctx, supervisor.SendPayload{ProcID: r.ID, Method: "Any", Args: []any{v}})
		require.NoError(t, err, "Any(%#v)", v)
		require.Equal(t, v, got.Data, "Any(%#v)", v)
	}
}

func numbersConvert(t *testing.T, k Kind) {
	r := Start(t, k)
	for _, row := range []struct {
		method string
		arg    any
		want   any
	}{
		{"Float", 3, 3.0},
		{"Int", int8(7), 7},
		{"Int", 4.0, 4},
		{"Byte", 200, uint8(200)},
		{"Grade", 9, Grade(9)},
		{"Duration", 5, time.Duration(5)},
	} {
		got, err := r.Sup.Do(r.Ctx, supervisor.SendPayload{ProcID: r.ID, Method: row.method, Args: []any{row.arg}})
		if !k.Can.Table {
			require.ErrorIs(t, err, supervisor.ErrBadArgs, "%s(%T) without a method table", row.method, row.arg)
			continue
		}
		require.NoError(t, err, "%s(%T)", row.method, row.arg)
		require.Equal(t, row.want, got.Data, "%s(%T)", row.method, row.arg)
	}
}

func largeValue(t *testing.T, k Kind) {
	r := Start(t, k)
	text := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB, many times what a pipe holds
	require.Zero(t, strings.Compare(text, CallOf[string](t, r, r.ID, "Text", text)), "a text of 1 MiB returns as it was")
	blob := []byte(text)
	require.Equal(t, blob, CallOf[[]byte](t, r, r.ID, "Bytes", blob), "bytes")
}

func sharing(t *testing.T, k Kind) {
	r := Start(t, k)
	mine := []byte("abc")
	CallOf[any](t, r, r.ID, "Scribble", mine)
	if k.Can.Copy {
		require.Equal(t, "abc", string(mine), "the caller's bytes, after a handler changed its copy")
	} else {
		require.Equal(t, "Xbc", string(mine), "the caller's bytes, which the handler shares")
	}
	mine = []byte("abc")
	p := r.Send(t, r.ID, "Bytes", mine)
	if k.Can.Copy {
		mine[0] = 'Z' // they are the caller's again
		require.Equal(t, []byte("abc"), r.Recv(t, p).Data, "result of Bytes")
		return
	}
	got, ok := r.Recv(t, p).Data.([]byte)
	require.True(t, ok, "result of Bytes is bytes")
	require.Same(t, &mine[0], &got[0], "the result is the very memory that was sent")
}
