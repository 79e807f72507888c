package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/dispatch"
)

type ctxKey struct{}

var errBoom = errors.New("boom")

// noCtx is what methods note that take no context.
var noCtx context.Context

// calls has methods for each form of adapter, and such as have none.
type calls struct {
	log  []any
	Size int
}

func (c *calls) note(ctx context.Context, args ...any) {
	if ctx != nil {
		args = append(args, ctx.Value(ctxKey{}))
	}
	c.log = append(c.log, args...)
}

func (c *calls) N0()                                             { c.note(noCtx) }
func (c *calls) N0E() error                                      { return errBoom }
func (c *calls) N0C(ctx context.Context)                         { c.note(ctx) }
func (c *calls) N0CE(ctx context.Context) error                  { c.note(ctx); return errBoom }
func (c *calls) N1(a int)                                        { c.note(noCtx, a) }
func (c *calls) N1E(a string) error                              { c.note(noCtx, a); return errBoom }
func (c *calls) N1C(ctx context.Context, a []byte)               { c.note(ctx, a) }
func (c *calls) N1CE(ctx context.Context, a any) error           { c.note(ctx, a); return nil }
func (c *calls) N2(a string, b int)                              { c.note(noCtx, a, b) }
func (c *calls) N2E(a, b float64) error                          { c.note(noCtx, a, b); return errBoom }
func (c *calls) N2C(ctx context.Context, a string, b []byte)     { c.note(ctx, a, b) }
func (c *calls) N2CE(ctx context.Context, a string, b any) error { c.note(ctx, a, b); return errBoom }
func (c *calls) R0() int                                         { return 1 << 40 }
func (c *calls) R0E() (string, error)                            { return "s", errBoom }
func (c *calls) R0C(ctx context.Context) any                     { return ctx.Value(ctxKey{}) }
func (c *calls) R0CE(ctx context.Context) ([]byte, error)        { c.note(ctx); return nil, nil }
func (c *calls) R1(a bool) bool                                  { return !a }
func (c *calls) R1E(a int64) (int64, error)                      { return -a, nil }
func (c *calls) R1C(ctx context.Context, a float64) float64      { c.note(ctx); return a / 2 }
func (c *calls) R1CE(ctx context.Context, a []byte) (string, error) {
	c.note(ctx)
	return string(a), errBoom
}
func (c *calls) R2(a, b string) string                 { return a + b }
func (c *calls) R2E(a, b int) (int, error)             { return a * b, errBoom }
func (c *calls) R2C(ctx context.Context, a, b int) any { c.note(ctx); return a - b }
func (c *calls) R2CE(ctx context.Context, a string, b any) (any, error) {
	c.note(ctx)
	return fmt.Sprint(a, b), nil
}
func (c calls) Value(a int) int { return c.Size + a }
func (c *calls) Odd(a int8, b []string, d error) (map[int]string, error) {
	return map[int]string{int(a): b[0]}, d
}
func (c *calls) OddCtx(ctx context.Context, a uint) *calls { c.note(ctx, a); return c }
func (c *calls) Variadic(ctx context.Context, a string, rest ...int) int {
	c.note(ctx, a)
	return len(rest)
}
func (c *calls) Anys(rest ...any) []any           { return rest }
func (c *calls) Swap(a, b string) (string, error) { return b + a, nil }
func (c *calls) Panics(a int)                     { panic(a) }

type caller interface {
	N0()
	R1(a bool) bool
	R2E(a, b int) (int, error)
	OddCtx(ctx context.Context, a uint) *calls
	Variadic(ctx context.Context, a string, rest ...int) int
	Odd(a int8, b []string, d error) (map[int]string, error)
}

// call looks a method up, matches the arguments and calls it.
func call(t testing.TB, tb *dispatch.Table, b *dispatch.Bound, name string, args ...any) (any, error) {
	t.Helper()
	num, m, err := tb.Lookup(name)
	require.NoError(t, err, "Lookup(%q)", name)
	matched, err := dispatch.Match(m, args, nil)
	require.NoError(t, err, "Match(%v, %v)", m, args)
	return b.Call(num, context.WithValue(context.Background(), ctxKey{}, "from ctx"), matched)
}

func TestCall(t *testing.T) {
	type row struct {
		method string
		args   []any
		log    []any
		result any
		err    error
	}
	const c = "from ctx"
	rows := []row{
		{"N0", nil, nil, nil, nil},
		{"N0E", nil, nil, nil, errBoom},
		{"N0C", nil, []any{c}, nil, nil},
		{"N0CE", nil, []any{c}, nil, errBoom},
		{"N1", []any{5}, []any{5}, nil, nil},
		{"N1E", []any{"a"}, []any{"a"}, nil, errBoom},
		{"N1C", []any{[]byte("b")}, []any{[]byte("b"), c}, nil, nil},
		{"N1CE", []any{nil}, []any{nil, c}, nil, nil},
		{"N2", []any{"a", 2}, []any{"a", 2}, nil, nil},
		{"N2E", []any{1.5, 2.5}, []any{1.5, 2.5}, nil, errBoom},
		{"N2C", []any{"a", nil}, []any{"a", []byte(nil), c}, nil, nil},
		{"N2CE", []any{"a", 3}, []any{"a", 3, c}, nil, errBoom},
		{"R0", nil, nil, 1 << 40, nil},
		{"R0E", nil, nil, "s", errBoom},
		{"R0C", nil, nil, c, nil},
		{"R0CE", nil, []any{c}, []byte(nil), nil},
		{"R1", []any{true}, nil, false, nil},
		{"R1E", []any{int64(4)}, nil, int64(-4), nil},
		{"R1C", []any{5.0}, []any{c}, 2.5, nil},
		{"R1CE", []any{[]byte("x")}, []any{c}, "x", errBoom},
		{"R2", []any{"a", "b"}, nil, "ab", nil},
		{"R2E", []any{6, 7}, nil, 42, errBoom},
		{"R2C", []any{6, 7}, []any{c}, -1, nil},
		{"R2CE", []any{"a", 7}, []any{c}, "a7", nil},
		{"Value", []any{2}, nil, 42, nil},
		{"Odd", []any{int8(1), []string{"x"}, nil}, nil, map[int]string{1: "x"}, nil},
		{"Odd", []any{1, []string{"x"}, errBoom}, nil, map[int]string{1: "x"}, errBoom},
		{"Variadic", []any{"a"}, []any{"a", c}, 0, nil},
		{"Variadic", []any{"a", 1, 2.0}, []any{"a", c}, 2, nil},
		{"Anys", []any{1, nil, "x"}, nil, []any{1, nil, "x"}, nil},
		{"Swap", []any{"a", "b"}, nil, "ba", nil},
	}
	tb := table[*calls](t)
	for _, r := range rows {
		t.Run(r.method, func(t *testing.T) {
			obj := &calls{Size: 40}
			result, err := call(t, tb, tb.Bind(obj), r.method, r.args...)
			require.Equal(t, r.err, err, "error of %s%v", r.method, r.args)
			require.Equal(t, r.result, result, "result of %s%v", r.method, r.args)
			require.Equal(t, r.log, obj.log, "what %s%v was given", r.method, r.args)
		})
	}
	t.Run("OddCtx", func(t *testing.T) {
		obj := new(calls)
		result, err := call(t, tb, tb.Bind(obj), "OddCtx", 3)
		require.NoError(t, err)
		require.Same(t, obj, result, "the receiver that the method saw")
	})

	// The same through an interface, as far as it goes.
	tb = table[caller](t)
	for _, r := range rows {
		if _, _, err := tb.Lookup(r.method); err != nil {
			continue
		}
		t.Run("interface/"+r.method, func(t *testing.T) {
			obj := &calls{Size: 40}
			result, err := call(t, tb, tb.Bind(obj), r.method, r.args...)
			require.Equal(t, r.err, err, "error of %s%v", r.method, r.args)
			require.Equal(t, r.result, result, "result of %s%v", r.method, r.args)
			require.Equal(t, r.log, obj.log, "what %s%v was given", r.method, r.args)
		})
	}
}

func TestCallGeneric(t *testing.T) {
	tb := table[generic[string]](t)
	b := tb.Bind(generic[string]{Held: "old"})
	_, err := call(t, tb, b, "OwnSet", "new")
	require.NoError(t, err, "OwnSet")
	for _, name := range []string{"OwnGet", "OwnValue"} {
		got, err := call(t, tb, b, name)
		require.NoError(t, err, name)
		require.Equal(t, "new", got, name)
	}
	got, err := call(t, tb, b, "OwnLarge", "x", 1)
	require.NoError(t, err, "OwnLarge")
	require.Equal(t, "newx1", got, "OwnLarge")
}

func TestCallUnknownNumber(t *testing.T) {
	tb := table[*calls](t)
	for _, num := range []int{-1, len(tb.All())} {
		_, err := tb.Bind(new(calls)).Call(num, t.Context(), nil)
		require.ErrorIs(t, err, dispatch.ErrNoMethod, "Call(%d)", num)
	}
}

func TestCallDoesNotRecover(t *testing.T) {
	tb := table[*calls](t)
	require.PanicsWithValue(t, 7, func() { _, _ = call(t, tb, tb.Bind(new(calls)), "Panics", 7) })
	num, _, err := tb.Lookup("Swap")
	require.NoError(t, err, "Lookup")
	require.Panics(t, func() { _, _ = tb.Bind(new(calls)).Call(num, t.Context(), []any{1, 2}) },
		"arguments that Match did not return")
}

func TestBind(t *testing.T) {
	tb := table[calls](t)
	t.Run("pointer", func(t *testing.T) {
		obj := new(calls)
		require.Same(t, obj, tb.Bind(obj).Object(), "Object")
	})
	t.Run("value", func(t *testing.T) {
		b := tb.Bind(calls{Size: 3})
		obj, ok := b.Object().(*calls)
		require.True(t, ok, "Object is a pointer")
		obj.Size = 4
		got, err := call(t, tb, b, "Value", 1)
		require.NoError(t, err)
		require.Equal(t, 5, got, "a method sees the object that Object returns")
	})
	t.Run("others panic", func(t *testing.T) {
		for _, obj := range []any{nil, 1, new(shapes), shapes{}} {
			require.Panics(t, func() { tb.Bind(obj) }, "Bind(%T)", obj)
			require.Panics(t, func() { table[caller](t).Bind(obj) }, "Bind(%T) to an interface", obj)
		}
	})
	t.Run("the collector knows the object", func(t *testing.T) {
		b := tb.Bind(&calls{Size: 3})
		for range 3 {
			runtime.GC()
		}
		got, err := call(t, tb, b, "Value", 1)
		require.NoError(t, err)
		require.Equal(t, 4, got, "result after collections")
	})
}

func TestReadAttributes(t *testing.T) {
	tb := table[object](t)
	read := func(b *dispatch.Bound, name string) (any, error) {
		num, _, err := tb.Attr(name)
		require.NoError(t, err, "Attr(%q)", name)
		return b.Call(num, t.Context(), nil)
	}
	b := tb.Bind(object{base: base{7}, Other: &Other{"o"}, Public: 8})
	for name, want := range map[string]any{"BaseField": 7, "OtherField": "o", "Public": 8, "OwnValue": 8, "Other": &Other{"o"}} {
		got, err := read(b, name)
		require.NoError(t, err, "reading %s", name)
		require.Equal(t, want, got, "reading %s", name)
	}
	_, err := read(tb.Bind(object{}), "OtherField")
	require.EqualError(t, err, "supervisor: field OtherField of *dispatch_test.object: an embedded pointer is nil")
	_, err = read(tb.Bind((*object)(nil)), "Public")
	require.EqualError(t, err, "supervisor: field Public of a nil *dispatch_test.object")
}
