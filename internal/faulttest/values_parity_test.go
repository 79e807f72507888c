package faulttest_test

// What arrives of a value, for both kinds of child: the table behind the section Values of the package documentation.

import (
	"fmt"
	"math"
	"math/big"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// valuesEach runs a test for both kinds of child.
func valuesEach(t *testing.T, test func(t *testing.T, r *valuesRig)) {
	t.Helper()
	eachKind(t, func(t *testing.T, k childtest.Kind) { test(t, newValuesRig(t, k)) })
}

// valuesText shows a value and everything behind its pointers, with what == does not see.
func valuesText(v any) string {
	switch v := v.(type) {
	case nil:
		return "nil"
	case time.Time:
		return v.String() // has the monotonic part
	case *big.Int:
		return "big " + v.String()
	case float64:
		return fmt.Sprintf("%v %x", v, math.Float64bits(v))
	}
	rv := reflect.ValueOf(v)
	switch {
	case rv.Kind() == reflect.Pointer && !rv.IsNil():
		return "&" + valuesText(rv.Elem().Interface())
	case rv.Kind() == reflect.Struct:
		text := rv.Type().String() + "{"
		for i := range rv.NumField() {
			text += " " + rv.Type().Field(i).Name + ":" + valuesText(rv.Field(i).Interface())
		}
		return text + " }"
	case rv.Kind() == reflect.Slice && !rv.IsNil():
		text := rv.Type().String() + "["
		for i := range rv.Len() {
			text += " " + valuesText(rv.Index(i).Interface())
		}
		return text + " ]"
	}
	return fmt.Sprintf("%#v", v)
}

// same says that a process child gets and returns what a goroutine child does.
type same struct{}

func TestF24ValueParity(t *testing.T) {
	zero, now := 0, time.Now()
	minus := math.Copysign(0, -1)
	rows := []struct {
		name   string
		value  any
		copied any // what is left of it on its way to a process and back
	}{
		{"NaN", math.NaN(), same{}},
		{"a NaN with a payload", math.Float64frombits(0x7ff8000000000123), same{}},
		{"infinity", math.Inf(1), same{}},
		{"minus infinity", math.Inf(-1), same{}},
		{"minus zero", minus, same{}},
		{"minus zeros", []float64{minus, 0}, same{}},
		{"nil slice", []int(nil), same{}},
		{"empty slice", []int{}, same{}},
		{"nil list", []any(nil), same{}},
		{"empty list", []any{}, same{}},
		{"nil map", map[string]int(nil), same{}},
		{"empty map", map[string]int{}, same{}},
		{"nil dict", map[string]any(nil), same{}},
		{"empty dict", map[string]any{}, same{}},
		{"pointer to zero", &zero, same{}},
		{"pointer to a zero struct", &valuesPoint{}, same{}},
		{"nil pointer", (*valuesPoint)(nil), same{}},
		{"time with a monotonic part", now, now.Round(0)},
		{"time of another zone", time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600)), same{}},
		{"big number", new(big.Int).Lsh(big.NewInt(-3), 300), same{}},
		{"largest number", uint64(math.MaxUint64), same{}},
		{"smallest number", int64(math.MinInt64), same{}},
		{"invalid UTF-8", "a\xff\xc0\x00b", same{}},
		{"nothing", nil, same{}},

		// Inside a struct the rules are gob's.
		{"NaN in a field", valuesBox{Float: math.NaN()}, same{}},
		{"minus zero in a field", valuesBox{Float: minus}, valuesBox{}},
		{"empty slice in a field", valuesBox{Slice: []int{}}, valuesBox{}},
		{"slice of zeros in a field", valuesBox{Slice: []int{0, 0}}, same{}},
		{"empty map in a field", valuesBox{Map: map[string]int{}}, same{}},
		{"pointer to zero in a field", valuesBox{Pointer: &zero}, valuesBox{}},
		{"pointer to a zero struct in a field", valuesBox{Point: &valuesPoint{}}, same{}},
		{"pointers to zero structs in a field", valuesBox{Points: []*valuesPoint{{}, {1, 2}}}, same{}},
		{"time with a monotonic part in a field", valuesBox{Time: now}, valuesBox{Time: now.Round(0)}},
		{"big zero in a field", valuesBox{Big: big.NewInt(0)}, same{}},
		{"invalid UTF-8 in a field", valuesBox{Text: "\xff"}, same{}},
		{"zero in an interface in a field", valuesBox{Any: 0}, same{}},
		{"empty string in an interface in a field", valuesBox{Any: ""}, same{}},
	}
	valuesEach(t, func(t *testing.T, r *valuesRig) {
		for _, row := range rows {
			method := "Any"
			if _, ok := row.value.(valuesBox); ok {
				method = "Box"
			}
			want := row.value
			if _, ok := row.copied.(same); !ok && r.kind.Can.Copy {
				want = row.copied
			}
			got, err := r.call(t, method, row.value)
			require.NoError(t, err, row.name)
			require.Equal(t, reflect.TypeOf(want), reflect.TypeOf(got), "type of %s", row.name)
			require.Equal(t, valuesText(want), valuesText(got), row.name)
		}
		zeroSize, err := r.call(t, "Any", [0]int{})
		require.NoError(t, err, "an array of no elements")
		require.Equal(t, [0]int{}, zeroSize, "an array of no elements")
	})
}

// A method without a result, and one whose result is a nil interface, end like any other.
func TestC26NothingIsAResult(t *testing.T) {
	valuesEach(t, func(t *testing.T, r *valuesRig) {
		for _, row := range []struct {
			method string
			args   []any
		}{{"Nothing", nil}, {"Nil", nil}, {"Any", []any{nil}}} {
			p := supervisor.SendPayload{ProcID: valuesMain, Method: row.method, Args: row.args}
			start := time.Now()
			got, err := r.sup.Do(testkit.Context(t), p)
			require.NoError(t, err, row.method)
			require.Nil(t, got.Data, "result of %s", row.method)
			require.Less(t, time.Since(start), time.Second*testkit.Slowdown, "time of %s", row.method)
		}
	})
}

// A pointer to zero in a field arrives nil in a process. A handler that relies on it fails by itself only.
func TestC31PointerToZeroInAField(t *testing.T) {
	valuesEach(t, func(t *testing.T, r *valuesRig) {
		zero, one := 0, 1
		got, err := r.call(t, "Deref", valuesBox{Pointer: &one})
		require.NoError(t, err, "a pointer to one")
		require.Equal(t, 1, got, "a pointer to one")
		got, err = r.call(t, "Deref", valuesBox{Pointer: &zero})
		if !r.kind.Can.Copy {
			require.NoError(t, err, "a pointer to zero, by reference")
			require.Equal(t, 0, got, "a pointer to zero, by reference")
			return
		}
		var panicked *supervisor.PanicError
		require.ErrorAs(t, err, &panicked, "a pointer to zero")
		require.Contains(t, panicked.Value, "nil pointer dereference", "what the panic says")
		require.Contains(t, panicked.Stack, "Deref", "where it was")
		r.fine(t)
	})
}

// A nil pointer in an interface crosses at the top. Inside a struct gob has no form for it, and the sender is told.
func TestC32NilPointers(t *testing.T) {
	valuesEach(t, func(t *testing.T, r *valuesRig) {
		got, err := r.call(t, "Any", (*valuesPoint)(nil))
		require.NoError(t, err, "at the top")
		require.Equal(t, (*valuesPoint)(nil), got, "at the top")
		got, err = r.call(t, "Any", []any{(*valuesPoint)(nil), nil, 1})
		require.NoError(t, err, "in a list")
		require.Equal(t, []any{(*valuesPoint)(nil), nil, 1}, got, "in a list")
		for name, box := range map[string]valuesBox{
			"in an interface in a field": {Any: (*valuesPoint)(nil)},
			"in a slice in a field":      {Points: []*valuesPoint{nil}},
		} {
			_, err := r.call(t, "Box", box)
			if !r.kind.Can.Copy {
				require.NoError(t, err, name)
				continue
			}
			r.refused(t, err, supervisor.ErrEncode, true, name)
		}
	})
}

// A pointer arrives as a pointer at the top. In an interface inside a struct, in a process, it arrives as the value.
func TestC33PointersInInterfaces(t *testing.T) {
	valuesEach(t, func(t *testing.T, r *valuesRig) {
		for _, v := range []any{valuesPoint{1, 2}, &valuesPoint{1, 2}, &valuesPoint{}, []valuesPoint{{1, 2}}, []any{&valuesPoint{3, 4}, valuesPoint{5, 6}}} {
			got, err := r.call(t, "Any", v)
			require.NoError(t, err, "%T", v)
			require.Equal(t, v, got, "%T", v)
		}
		got, err := supervisor.Call[valuesBox](testkit.Context(t), r.sup, valuesMain, "Box", valuesBox{Any: &valuesPoint{7, 8}})
		require.NoError(t, err, "a pointer in an interface in a field")
		if r.kind.Can.Copy {
			require.Equal(t, valuesPoint{7, 8}, got.Any, "a pointer in an interface in a field")
		} else {
			require.Equal(t, &valuesPoint{7, 8}, got.Any, "a pointer in an interface in a field, by reference")
		}
	})
}

func TestF15Arguments(t *testing.T) {
	valuesEach(t, func(t *testing.T, r *valuesRig) {
		for _, row := range []struct {
			name, method string
			args         []any
			want         error
		}{
			{"nil for an interface", "Any", []any{nil}, nil},
			{"nil for a slice", "Bytes", []any{nil}, nil},
			{"nil for a pointer", "Chain", []any{nil}, nil},
			{"nil for a struct", "Point", []any{nil}, supervisor.ErrBadArgs},
			{"nil for a number", "Int", []any{nil}, supervisor.ErrBadArgs},
			{"a value for a pointer", "Chain", []any{valuesChain{}}, supervisor.ErrBadArgs},
			{"a pointer for a value", "Point", []any{&valuesPoint{}}, supervisor.ErrBadArgs},
			{"a pointer to a pointer", "Chain", []any{new(*valuesChain)}, supervisor.ErrBadArgs},
			{"another struct of the same fields", "Point", []any{struct{ X, Y int }{1, 2}}, nil},
			{"another named struct", "Point", []any{childtest.Point{}}, supervisor.ErrBadArgs},
			{"a text for bytes", "Bytes", []any{"text"}, supervisor.ErrBadArgs},
			{"a list for a number", "Int", []any{[]any{1}}, supervisor.ErrBadArgs},
			{"one too few", "Make", []any{""}, supervisor.ErrBadArgs},
			{"one too many", "Nothing", []any{1}, supervisor.ErrBadArgs},
			{"a variable part as a slice", "Join", []any{"+", []string{"a"}}, supervisor.ErrBadArgs},
			{"nil in the variable part", "Join", []any{"+", nil}, supervisor.ErrBadArgs},
			{"no variable part", "Join", []any{"+"}, nil},
			{"a method of the pointer", "Int", []any{1}, nil},
		} {
			_, err := r.call(t, row.method, row.args...)
			if row.want == nil {
				require.NoError(t, err, row.name)
				continue
			}
			r.refused(t, err, row.want, true, row.name)
		}
	})
}
