package dispatch_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/workerlink/supervisor/internal/dispatch"
)

type (
	myInt    int
	myFloat  float32
	myInts   []int
	settings struct {
		Base
		*Deep
		Rate     float32
		Steps    int
		Labels   []string
		URL, Url string
		hidden   int
		Next     *settings
	}
	Base struct{ Seed int64 }
	Deep struct{ Depth int }
)

func method(name string, in ...reflect.Type) *dispatch.Method {
	return &dispatch.Method{Name: name, In: in}
}

func TestConvert(t *testing.T) {
	var nilReader io.Reader
	reader := strings.NewReader("")
	for _, tt := range []struct {
		name string
		v    any
		want any // has the type that is wanted
		err  string
	}{
		{"same", 5, 5, ""},
		{"int to int64", 5, int64(5), ""},
		{"int to int8", 127, int8(127), ""},
		{"int to int8, too large", 128, int8(0), "want int8, got int 128, which does not fit without loss"},
		{"int to int8, too small", -129, int8(0), "without loss"},
		{"int to uint", 5, uint(5), ""},
		{"negative to uint", -1, uint(0), "want uint, got int -1"},
		{"uint64 to int64", uint64(math.MaxInt64), int64(math.MaxInt64), ""},
		{"uint64 to int64, too large", uint64(math.MaxInt64 + 1), int64(0), "without loss"},
		{"uint to uint8, too large", uint(256), uint8(0), "without loss"},
		{"whole float to int", 5.0, 5, ""},
		{"broken float to int", 5.5, 0, "want int, got float64 5.5"},
		{"large float to int", 0x1p63, int64(0), "without loss"},
		{"least float to int", -0x1p63, int64(math.MinInt64), ""},
		{"NaN to int", math.NaN(), 0, "without loss"},
		{"Inf to int", math.Inf(1), 0, "without loss"},
		{"Inf to uint", math.Inf(1), uint(0), "without loss"},
		{"large float to uint64", 0x1p63, uint64(1 << 63), ""},
		{"larger float to uint64", 0x1p64, uint64(0), "without loss"},
		{"negative float to uint", -1.0, uint(0), "without loss"},
		{"int to float64", 1 << 53, float64(1 << 53), ""},
		{"int to float64, not exact", 1<<53 + 1, 0.0, "without loss"},
		{"largest int to float64", math.MaxInt64, 0.0, "without loss"},
		{"largest uint to float64", uint64(math.MaxUint64), 0.0, "without loss"},
		{"int to float32, not exact", 1<<24 + 1, float32(0), "without loss"},
		{"float64 to float32", 0.5, float32(0.5), ""},
		{"float64 to float32, not exact", 0.1, float32(0), "without loss"},
		{"float64 to float32, too large", 1e300, float32(0), "without loss"},
		{"Inf to float32", math.Inf(-1), float32(math.Inf(-1)), ""},
		{"float to complex", 1.5, complex64(1.5), ""},
		{"int to complex", 3, complex128(3), ""},
		{"real complex to int", complex(3, 0), 3, ""},
		{"complex to float", complex(3, 1), 0.0, "without loss"},
		{"complex128 to complex64", complex(0.1, 0), complex64(0), "without loss"},
		{"int to named", 5, myInt(5), ""},
		{"named to int", myInt(5), 5, ""},
		{"named to named", myInt(5), myFloat(5), ""},
		{"int to Duration", 5, time.Duration(5), ""},
		{"bool to int", true, 0, "want int, got bool"},
		{"string to int", "5", 0, "want int, got string"},
		{"int to string", 65, "", "want string, got int"},
		{"assignable slice", []int{1}, myInts{1}, ""},
		{"slice of others", []any{1}, []int(nil), "want []int, got []interface {}"},
		{"string to bytes", "x", []byte(nil), "want []uint8, got string"},
		{"value to pointer", settings{}, (*settings)(nil), "want *dispatch_test.settings, got dispatch_test.settings"},
		{"nil to pointer", nil, (*settings)(nil), ""},
		{"nil to slice", nil, []byte(nil), ""},
		{"nil to map", nil, map[string]int(nil), ""},
		{"nil to int", nil, 0, "want int, got nil"},
		{"nil to func", nil, (func())(nil), "want func(), got nil"},
		{"nil to struct", nil, settings{}, "got nil"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := dispatch.Convert(tt.v, reflect.TypeOf(tt.want))
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got, "value and type")
		})
	}
	for _, tt := range []struct {
		name string
		v    any
		want reflect.Type
		ok   bool
	}{
		{"implements", reader, reflect.TypeFor[io.Reader](), true},
		{"implements not", 5, reflect.TypeFor[io.Reader](), false},
		{"nil to interface", nilReader, reflect.TypeFor[io.Reader](), true},
		{"anything to any", 5, reflect.TypeFor[any](), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := dispatch.Convert(tt.v, tt.want)
			require.Equal(t, tt.ok, err == nil, "whether it is accepted; the error is %v", err)
			if tt.ok {
				require.Equal(t, tt.v, got, "the value, as it was")
			}
		})
	}
	got, err := dispatch.Convert(math.NaN(), reflect.TypeFor[float32]())
	require.NoError(t, err, "NaN to float32")
	require.True(t, math.IsNaN(float64(got.(float32))), "NaN stays NaN")
}

// What Convert accepts comes back unchanged on the way back.
func TestConvertLosesNothing(t *testing.T) {
	types := []reflect.Type{
		reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[int32](), reflect.TypeFor[uint8](),
		reflect.TypeFor[uint64](), reflect.TypeFor[float32](), reflect.TypeFor[float64](), reflect.TypeFor[complex64](),
		reflect.TypeFor[myInt](), reflect.TypeFor[myFloat](),
	}
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.OneOf(
			rapid.Int().AsAny(), rapid.Uint64().AsAny(), rapid.Float64().AsAny(), rapid.Float32().AsAny(),
			rapid.Map(rapid.IntRange(-300, 300), func(n int) any { return float64(n) / 2 }),
		).Draw(t, "v")
		want := rapid.SampledFrom(types).Draw(t, "type")
		there, err := dispatch.Convert(v, want)
		if err != nil {
			t.Skip("refused")
		}
		require.Equal(t, want, reflect.TypeOf(there), "type of the converted value")
		back, err := dispatch.Convert(there, reflect.TypeOf(v))
		require.NoError(t, err, "the way back of %T %v", there, there)
		require.Equal(t, v, back, "%T %v after the way there and back", v, v)
	})
}

func TestMatch(t *testing.T) {
	integer, text := reflect.TypeFor[int](), reflect.TypeFor[string]()
	variadic := &dispatch.Method{Name: "Sum", In: []reflect.Type{text, reflect.TypeFor[[]int]()}, Variadic: true}
	for _, tt := range []struct {
		name   string
		method *dispatch.Method
		args   []any
		want   []any
		err    string
	}{
		{"none", method("M"), nil, nil, ""},
		{"converted", method("M", integer, text), []any{5.0, "x"}, []any{5, "x"}, ""},
		{"too few", method("M", integer, text), []any{5}, nil, "M: want 2 arguments for M(int, string), got 1"},
		{"too many", method("M", integer), []any{5, 6}, nil, "M: want 1 argument for M(int), got 2"},
		{"any where none is", method("M"), []any{5}, nil, "M: want no arguments, got 1"},
		{"wrong one", method("M", integer, text), []any{5, 6}, nil, "M: argument 2: want string, got int"},
		{"variadic, none", variadic, []any{"x"}, []any{"x"}, ""},
		{"variadic, some", variadic, []any{"x", 1, 2.0, int8(3)}, []any{"x", 1, 2, 3}, ""},
		{"variadic, wrong one", variadic, []any{"x", 1, "2"}, nil, "Sum: argument 3: want int, got string"},
		{"variadic, too few", variadic, nil, nil, "Sum: want at least 1 arguments for Sum(string, ...int), got 0"},
		{"field", &dispatch.Method{Name: "F", Out: integer, Field: true}, []any{1}, nil, "F: want no arguments, got 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			given := fmt.Sprint(tt.args...)
			got, err := dispatch.Match(tt.method, tt.args, nil)
			require.Equal(t, given, fmt.Sprint(tt.args...), "the caller's arguments afterwards")
			if tt.err != "" {
				require.ErrorIs(t, err, dispatch.ErrArgs)
				require.EqualError(t, err, "supervisor: bad arguments: "+tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestMatchFastPath(t *testing.T) {
	m := method("M", reflect.TypeFor[int](), reflect.TypeFor[any](), reflect.TypeFor[context.Context]())
	args := []any{1, nil, context.Background()}
	got, err := dispatch.Match(m, args, nil)
	require.NoError(t, err, "Match")
	require.Same(t, &args[0], &got[0], "the slice that was passed comes back")
	allocs := testing.AllocsPerRun(100, func() { _, _ = dispatch.Match(m, args, nil) })
	require.Zero(t, allocs, "allocations of arguments that fit")
}

func TestKeywords(t *testing.T) {
	str := reflect.TypeFor[string]()
	byValue := method("M", str, reflect.TypeFor[settings]())
	byPointer := method("M", str, reflect.TypeFor[*settings]())
	given := &settings{Rate: 1, Steps: 2}
	type kw = map[string]any
	for _, tt := range []struct {
		name   string
		method *dispatch.Method
		args   []any
		kwargs kw
		want   any
		err    string
	}{
		{"from zero", byValue, []any{"x"}, kw{"Rate": 0.5, "Steps": 3.0}, settings{Rate: 0.5, Steps: 3}, ""},
		{"from zero, pointer", byPointer, []any{"x"}, kw{"Labels": []string{"a"}}, &settings{Labels: []string{"a"}}, ""},
		{"on top", byValue, []any{"x", *given}, kw{"Steps": 3}, settings{Rate: 1, Steps: 3}, ""},
		{"on top, pointer", byPointer, []any{"x", given}, kw{"Steps": 3}, &settings{Rate: 1, Steps: 3}, ""},
		{"on top of nil", byPointer, []any{"x", nil}, kw{"Steps": 3}, &settings{Steps: 3}, ""},
		{"by case", byValue, []any{"x"}, kw{"rate": 2}, settings{Rate: 2}, ""},
		{"embedded", byValue, []any{"x"}, kw{"seed": 2}, settings{Base: Base{2}}, ""},
		{"nil", byValue, []any{"x", settings{Labels: []string{"a"}}}, kw{"Labels": nil, "Next": nil}, settings{}, ""},
		{"exact before case", byValue, []any{"x"}, kw{"URL": "a", "Url": "b"}, settings{URL: "a", Url: "b"}, ""},
		{
			"ambiguous", byValue,
			[]any{"x"},
			kw{"url": "a"},
			nil,
			`keyword argument "url": more than one such field of dispatch_test.settings`,
		},
		{
			"the same twice", byValue,
			[]any{"x"},
			kw{"Rate": 1, "rate": 1},
			nil,
			`keyword arguments "Rate" and "rate" are the same field Rate`,
		},
		{"unknown", byValue, []any{"x"}, kw{"speed": 1}, nil, `keyword argument "speed": no such field of dispatch_test.settings`},
		{"unexported", byValue, []any{"x", settings{hidden: 1}}, kw{"hidden": 2}, nil, `keyword argument "hidden": no such field`},
		{"through a pointer", byValue, []any{"x"}, kw{"Depth": 1}, nil, `keyword argument "Depth": no such field`},
		{"wrong type", byValue, []any{"x"}, kw{"Steps": "1"}, nil, `keyword argument "Steps": want int, got string`},
		{"wrong base", byValue, []any{"x", 5}, kw{"Steps": 1}, nil, "argument 2: want dispatch_test.settings, got int"},
		{"too few before", byValue, nil, kw{"Steps": 1}, nil, "want 1 or 2 arguments before the keyword arguments, got 0"},
		{"too many before", byValue, []any{"x", *given, 1}, kw{"Steps": 1}, nil, "got 3"},
		{"wrong one before", byValue, []any{5}, kw{"Steps": 1}, nil, "argument 1: want string, got int"},
		{"no struct", method("M", str), []any{"x"}, kw{"Steps": 1}, nil, "need a last parameter that is a struct"},
		{"no parameter", method("M"), nil, kw{"Steps": 1}, nil, "need a last parameter that is a struct"},
		{
			"variadic", &dispatch.Method{Name: "M", In: []reflect.Type{reflect.TypeFor[[]settings]()}, Variadic: true}, nil,
			kw{"Steps": 1},
			nil, "need a last parameter that is a struct",
		},
		{"empty is none", byValue, []any{"x"}, kw{}, nil, "want 2 arguments"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := dispatch.Match(tt.method, tt.args, tt.kwargs)
			if tt.err != "" {
				require.ErrorIs(t, err, dispatch.ErrArgs)
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, []any{"x", tt.want}, got)
			require.Equal(t, &settings{Rate: 1, Steps: 2}, given, "the struct that the caller passed, afterwards")
		})
	}
}
