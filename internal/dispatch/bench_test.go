package dispatch_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/dispatch"
)

type adder struct{ n int }

func (a *adder) Add(d int) int                             { a.n += d; return a.n & 0xff }
func (a *adder) Big(d int) int                             { a.n += d; return a.n | 1<<40 }
func (a *adder) Ctx(_ context.Context, d int) (int, error) { a.n += d; return 1, nil }
func (a *adder) Two(_ string, b []byte) error              { a.n += len(b); return nil }
func (a *adder) Odd(d int32, _ map[string]int) int32       { a.n += int(d); return 1 }

type adderInterface interface{ Add(d int) int }

var benchmarks = []struct {
	name string
	args []any
}{
	{"Add", []any{5}},
	{"Big", []any{5}},
	{"Ctx", []any{5}},
	{"Two", []any{"s", []byte("b")}},
	{"Odd", []any{int32(5), map[string]int(nil)}},
}

// Calls through an adapter allocate at most the box of their result.
func TestCallCost(t *testing.T) {
	tb := table[*adder](t)
	b := tb.Bind(new(adder))
	for name, want := range map[string]float64{"Add": 0, "Big": 1, "Ctx": 0, "Two": 0} {
		for _, bm := range benchmarks {
			if bm.name != name {
				continue
			}
			num, _, err := tb.Lookup(name)
			require.NoError(t, err, "Lookup(%q)", name)
			got := testing.AllocsPerRun(100, func() { _, _ = b.Call(num, context.Background(), bm.args) })
			require.InDelta(t, want, got, 0, "allocations of %s", name)
		}
	}
}

func BenchmarkCall(b *testing.B) {
	ctx := context.Background()
	tb := table[*adder](b)
	for _, bm := range benchmarks {
		b.Run(bm.name, func(b *testing.B) {
			num, m, _ := tb.Lookup(bm.name)
			bound := tb.Bind(new(adder))
			b.ReportAllocs()
			for b.Loop() {
				args, _ := dispatch.Match(m, bm.args, nil)
				_, _ = bound.Call(num, ctx, args)
			}
		})
	}
	b.Run("Add, by interface", func(b *testing.B) {
		tb := table[adderInterface](b)
		bound := tb.Bind(new(adder))
		args := []any{5}
		b.ReportAllocs()
		for b.Loop() {
			_, _ = bound.Call(0, ctx, args)
		}
	})
	b.Run("Add, plain closure", func(b *testing.B) {
		a := new(adder)
		f := func(args []any) (any, error) { return a.Add(args[0].(int)), nil }
		args := []any{5}
		b.ReportAllocs()
		for b.Loop() {
			_, _ = f(args)
		}
	})
	b.Run("Add, reflection", func(b *testing.B) {
		f := reflect.ValueOf(new(adder)).MethodByName("Add")
		args := []any{5}
		b.ReportAllocs()
		for b.Loop() {
			_ = f.Call([]reflect.Value{reflect.ValueOf(args[0])})[0].Interface()
		}
	})
}

func BenchmarkTableFor(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_, _ = dispatch.TableFor[*calls]()
	}
}
