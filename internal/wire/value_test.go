package wire_test

import (
	"math"
	"math/big"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/wire"
)

// The types of these tests.
type (
	color  string
	level  int8
	flags  bool
	floats []float64
	names  []string
	vec    [3]float32
	point  struct{ X, Y int }
	empty  struct{}
	stats  struct {
		Name   string
		Counts map[string]int
		Rates  []float64
		Next   *point
		At     time.Time
		Big    big.Int
		Home   url.URL
	}
	list struct {
		V    int
		Next *list
	}
	boxed  struct{ V any }
	secret struct {
		Name string
		key  string
	}
	sealed struct{ n int } // has methods, see below
)

func (s sealed) GobEncode() ([]byte, error) { return []byte{byte(s.n)}, nil }

func (s *sealed) GobDecode(b []byte) error { s.n = int(b[0]); return nil }

// registry returns a registry that knows the test types.
func registry(t testing.TB) *wire.Registry {
	t.Helper()
	r := wire.NewRegistry()
	for _, v := range []any{point{}, stats{}, list{}, boxed{}, color(""), level(0), floats{}, sealed{}, empty{}} {
		require.NoError(t, r.Register(reflect.TypeOf(v)), "register %T", v)
	}
	return r
}

// link is both ends of one direction.
type link struct {
	t   testing.TB
	reg *wire.Registry
	enc *wire.Encoder
	dec *wire.Decoder
}

func newLink(t testing.TB) *link {
	reg := registry(t)
	return &link{t, reg, wire.NewEncoder(0), wire.NewDecoder(reg, 0)}
}

func (l *link) codec(t reflect.Type) *wire.Codec {
	l.t.Helper()
	c, err := wire.CodecOf(t, l.reg)
	require.NoError(l.t, err, "CodecOf(%v)", t)
	return c
}

// send encodes a value, completely.
func (l *link) send(c *wire.Codec, v any) ([]byte, wire.Header, error) {
	b, err := wire.Packing{Registry: l.reg}.Prepare([]*wire.Codec{c}, []any{v})
	if err != nil {
		return nil, wire.Header{}, err
	}
	if err := l.enc.Finish(b); err != nil {
		return nil, wire.Header{}, err
	}
	return b.Bytes(), wire.Header{Kind: wire.KindRequest, Stream: l.enc.Stream()}, nil
}

// receive decodes a value, on the reader or later.
func (l *link) receive(c *wire.Codec, h wire.Header, b []byte) (any, error) {
	vals, err := l.dec.Values(h, b, false, []*wire.Codec{c}, nil)
	if err != nil {
		return nil, err
	}
	if d, ok := vals[0].(*wire.Deferred); ok {
		return d.Decode()
	}
	return vals[0], nil
}

// trip sends v as type t and returns what arrives.
func (l *link) trip(t reflect.Type, v any) any {
	l.t.Helper()
	c := l.codec(t)
	b, h, err := l.send(c, v)
	require.NoError(l.t, err, "send %T %v", v, v)
	got, err := l.receive(c, h, b)
	require.NoError(l.t, err, "receive %T %v from % x", v, v, b)
	return got
}

func ptr[T any](v T) *T { return &v }

// values are sent as their own types and must arrive equal.
var values = []struct {
	name string
	v    any
}{
	{"true", true},
	{"false", false},
	{"named bool", flags(true)},
	{"named false", flags(false)},
	{"int", -5},
	{"largest int", math.MaxInt},
	{"smallest int", math.MinInt},
	{"int8", int8(-128)},
	{"int16", int16(300)},
	{"int32", int32(-70000)},
	{"int64", int64(math.MinInt64)},
	{"named int8", level(7)},
	{"uint", uint(5)},
	{"uint8", uint8(255)},
	{"uint16", uint16(65535)},
	{"uint32", uint32(math.MaxUint32)},
	{"uint64", uint64(math.MaxUint64)},
	{"uintptr", uintptr(9)},
	{"float32", float32(1.5)},
	{"float64", 2.25},
	{"positive infinity", math.Inf(1)},
	{"negative infinity", math.Inf(-1)},
	{"complex64", complex64(complex(1, -2))},
	{"complex128", complex(3, 4)},
	{"string", "grüße"},
	{"empty string", ""},
	{"invalid UTF-8", "a\xff\x00b"},
	{"named string", color("red")},
	{"bytes", []byte{0, 1, 2}},
	{"nil bytes", []byte(nil)},
	{"empty bytes", []byte{}},
	{"bools", []bool{true, false, true}},
	{"ints", []int{1, -2, 3}},
	{"int8s", []int8{-1}},
	{"uint16s", []uint16{1, 2}},
	{"float32s", []float32{1, 2}},
	{"float64s", []float64{1, math.Inf(1)}},
	{"complex64s", []complex64{1, complex(0, 2)}},
	{"nil float64s", []float64(nil)},
	{"empty float64s", []float64{}},
	{"named slice", floats{1, 2}},
	{"strings", []string{"a", "", "c"}},
	{"nil strings", []string(nil)},
	{"empty strings", []string{}},
	{"named strings", names{"x"}},
	{"number array", vec{1, 2, 3}},
	{"byte array", [4]byte{1, 2, 3, 4}},
	{"empty array", [0]int{}},
	{"pointer", ptr(5)},
	{"pointer to zero", ptr(0)},
	{"pointer to pointer", ptr(ptr("x"))},
	{"nil pointer", (*int)(nil)},
	{"pointer to nil slice", ptr([]int(nil))},
	{"list", []any{1, "a", nil, []any{2.5}, map[string]any{"k": int8(1)}}},
	{"nil list", []any(nil)},
	{"empty list", []any{}},
	{"dict", map[string]any{"a": 1, "b": []string{"x"}, "c": nil}},
	{"nil dict", map[string]any(nil)},
	{"empty dict", map[string]any{}},
	{"list of registered", []any{point{1, 2}, &point{3, 4}, color("red"), floats{1}, time.Second, sealed{3}}},
	{"list of typed nils", []any{(*point)(nil), []int(nil), map[string]any(nil), []any(nil)}},
	{"list of composites", []any{map[string]int{"a": 1}, []point{{1, 2}}, [2]int{1, 2}, []*point{{5, 6}}}},
	{"struct", point{1, -2}},
	{"zero struct", point{}},
	{"pointer to struct", &point{1, 2}},
	{"pointer to zero struct", &point{}},
	{"nil struct pointer", (*point)(nil)},
	{"empty struct", empty{}},
	{"pointer to empty struct", &empty{}},
	{"rich struct", stats{
		Name: "n", Counts: map[string]int{"a": 1}, Rates: []float64{1.5}, Next: &point{1, 2},
		At: time.Unix(5, 7).UTC(), Big: *big.NewInt(1), Home: url.URL{Scheme: "https", Host: "example.com"},
	}},
	{"map", map[string]int{"a": 1, "b": 2}},
	{"nil map", map[string]int(nil)},
	{"empty map", map[string]int{}},
	{"struct slice", []point{{1, 2}, {}}},
	{"nil struct slice", []point(nil)},
	{"empty struct slice", []point{}},
	{"struct array", [2]point{{1, 2}, {}}},
	{"zero struct array", [2]point{}},
	{"nested slices", [][]float64{{1}, {2, 3}}},
	{"linked list", &list{1, &list{2, nil}}},
	{"interface in struct", boxed{point{1, 2}}},
	{"list in interface in struct", boxed{[]any{1, "x"}}},
	{"nil in interface in struct", &boxed{}},
	{"own codec", sealed{9}},
	{"zero with own codec", sealed{}},
	{"pointer to own codec", &sealed{9}},
	{"own codec inside", []sealed{{1}, {2}}},
	{"time", time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)},
	{"zero time", time.Time{}},
	{"duration", 5 * time.Second},
	{"big int", new(big.Int).Lsh(big.NewInt(3), 200)},
	{"big int by value", *big.NewInt(-7)},
	{"big rat", big.NewRat(1, 3)},
	{"big float", big.NewFloat(1.5)},
	{"address", netip.MustParseAddr("2001:db8::1")},
	{"prefix", netip.MustParsePrefix("10.0.0.0/8")},
	{"address and port", netip.MustParseAddrPort("10.0.0.1:80")},
	{"url", &url.URL{Scheme: "https", Host: "example.com", Path: "/x"}},
	{"text codec", regexp.MustCompile("a+b")},
}

func TestValuesArriveAsTheyWere(t *testing.T) {
	for _, tt := range values {
		t.Run(tt.name, func(t *testing.T) {
			l := newLink(t)
			for i := range 3 { // the second use of a stream differs from the first
				got := l.trip(reflect.TypeOf(tt.v), tt.v)
				require.Equal(t, tt.v, got, "round %d", i)
			}
		})
	}
}

func TestValuesArriveInInterfaces(t *testing.T) {
	known := registry(t)
	for _, tt := range values {
		t.Run(tt.name, func(t *testing.T) {
			l := newLink(t)
			_, ok := known.Name(reflect.TypeOf(tt.v))
			if !ok {
				_, _, err := l.send(nil, tt.v)
				require.ErrorIs(t, err, wire.ErrEncode, "send unregistered %T", tt.v)
				require.ErrorContains(t, err, reflect.TypeOf(tt.v).String(), "error names the type")
				return
			}
			require.Equal(t, tt.v, l.trip(reflect.TypeFor[any](), tt.v), "through any")
			got, err := func() (any, error) {
				b, h, err := l.send(nil, tt.v)
				require.NoError(t, err, "send without codec")
				return l.receive(nil, h, b)
			}()
			require.NoError(t, err, "receive without codec")
			require.Equal(t, tt.v, got, "without codecs")
		})
	}
}

func TestValuesArriveSelfContained(t *testing.T) {
	for _, tt := range values {
		t.Run(tt.name, func(t *testing.T) {
			l := newLink(t)
			c := l.codec(reflect.TypeOf(tt.v))
			b, err := wire.Packing{SelfContained: true}.Prepare([]*wire.Codec{c}, []any{tt.v})
			require.NoError(t, err, "prepare")
			require.True(t, b.Complete(), "self-contained body is complete")
			got, err := l.receive(c, wire.Header{}, b.Bytes())
			require.NoError(t, err, "receive")
			require.Equal(t, tt.v, got, "value")
		})
	}
}

func TestFloatsKeepTheirBits(t *testing.T) {
	odd := []float64{math.Copysign(0, -1), math.NaN(), math.Float64frombits(0x7ff8000000000123), math.SmallestNonzeroFloat64}
	l := newLink(t)
	for _, f := range odd {
		got := l.trip(reflect.TypeFor[float64](), f).(float64)
		require.Equal(t, math.Float64bits(f), math.Float64bits(got), "float %v", f)
	}
	for i, got := range l.trip(reflect.TypeOf(odd), odd).([]float64) {
		require.Equal(t, math.Float64bits(odd[i]), math.Float64bits(got), "element %v", odd[i])
	}
}

// What gob's rules change inside a body, as PROTOCOL.md says.
func TestGobsRulesInsideBodies(t *testing.T) {
	type inner struct {
		S []int
		P *int
		F float64
		M map[string]int
	}
	l := newLink(t)
	got := l.trip(reflect.TypeFor[inner](), inner{S: []int{}, P: ptr(0), F: math.Copysign(0, -1), M: map[string]int{"a": 1}}).(inner)
	require.Nil(t, got.S, "an empty slice in a field arrives nil")
	require.Nil(t, got.P, "a pointer to zero in a field arrives nil")
	require.False(t, math.Signbit(got.F), "minus zero in a field arrives as zero")

	now := time.Now()
	at := l.trip(reflect.TypeFor[time.Time](), now).(time.Time)
	require.True(t, now.Equal(at), "the instant stays: %v, got %v", now, at)
	require.NotContains(t, at.String(), "m=", "the monotonic part does not travel")
}

func TestNilForAnyNilableType(t *testing.T) {
	l := newLink(t)
	for _, typ := range []reflect.Type{
		reflect.TypeFor[*int](), reflect.TypeFor[*point](), reflect.TypeFor[[]int](), reflect.TypeFor[map[string]int](),
		reflect.TypeFor[any](), reflect.TypeFor[interface{ String() string }](),
	} {
		got := l.trip(typ, nil)
		if typ.Kind() == reflect.Interface {
			require.Nil(t, got, "%v", typ)
			continue
		}
		require.Equal(t, reflect.Zero(typ).Interface(), got, "%v", typ)
	}
	_, _, err := l.send(l.codec(reflect.TypeFor[int]()), nil)
	require.ErrorIs(t, err, wire.ErrEncode, "nil for int")
}

func TestValueOfAnotherType(t *testing.T) {
	l := newLink(t)
	_, _, err := l.send(l.codec(reflect.TypeFor[int]()), "x")
	require.ErrorIs(t, err, wire.ErrEncode, "string for int")
	got := l.trip(reflect.TypeFor[floats](), []float64{1})
	require.Equal(t, floats{1}, got, "assignable value takes the type")

	b, h, err := l.send(l.codec(reflect.TypeFor[string]()), "x")
	require.NoError(t, err, "send string")
	_, err = l.receive(l.codec(reflect.TypeFor[int]()), h, b)
	require.ErrorIs(t, err, wire.ErrDecode, "string for int, received")
	_, err = l.receive(l.codec(reflect.TypeFor[interface{ Foo() }]()), h, b)
	require.ErrorIs(t, err, wire.ErrDecode, "string for an interface that it does not implement")
}

func TestBytesAliasOwnedBodiesOnly(t *testing.T) {
	l := newLink(t)
	c := l.codec(reflect.TypeFor[[]byte]())
	b, h, err := l.send(c, []byte("abc"))
	require.NoError(t, err, "send")
	for _, owned := range []bool{false, true} {
		vals, err := l.dec.Values(h, b, owned, []*wire.Codec{c}, nil)
		require.NoError(t, err, "values")
		got := vals[0].([]byte)
		require.Equal(t, owned, &got[0] == &b[len(b)-3], "bytes are a part of the body: owned %v", owned)
		require.Equal(t, len(got), cap(got), "no room to write over what follows")
	}
}

func TestPrefixAndSeveralValues(t *testing.T) {
	l := newLink(t)
	types := []reflect.Type{reflect.TypeFor[point](), reflect.TypeFor[int](), reflect.TypeFor[stats](), reflect.TypeFor[string]()}
	var codecs []*wire.Codec
	for _, typ := range types {
		codecs = append(codecs, l.codec(typ))
	}
	vals := []any{point{1, 2}, 7, stats{Name: "x"}, strings.Repeat("s", 500)}
	for range 2 {
		b, err := wire.Packing{Prefix: []byte{9, 8}}.Prepare(codecs, vals)
		require.NoError(t, err, "prepare")
		require.False(t, b.Complete(), "structs wait for the stream")
		require.Panics(t, func() { b.Bytes() }, "bytes of an incomplete body")
		guess := b.Size()
		require.NoError(t, l.enc.Finish(b), "finish")
		require.True(t, b.Complete(), "finished")
		require.Equal(t, len(b.Bytes()), b.Size(), "size of a complete body")
		require.Less(t, b.Size(), 2*guess, "the guess is of the right order")
		require.Equal(t, []byte{9, 8}, b.Bytes()[:2], "prefix")

		n, err := wire.Count(b.Bytes()[2:])
		require.NoError(t, err, "count")
		require.Equal(t, 4, n, "count")
		got, err := l.dec.Values(wire.Header{}, b.Bytes()[2:], false, codecs, []any{"kept"})
		require.NoError(t, err, "values")
		require.Equal(t, append([]any{"kept"}, vals...), got, "values")
	}
}
