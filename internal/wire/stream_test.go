package wire_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/wire"
)

// pointers has values that gob refuses when it meets them: nil in a slice.
type pointers struct{ P []*point }

func TestEncodeErrorBeginsANewStream(t *testing.T) {
	l := newLink(t)
	good := l.codec(reflect.TypeFor[point]())
	bad := l.codec(reflect.TypeFor[pointers]())

	require.Equal(t, point{1, 2}, l.trip(good.Type(), point{1, 2}), "first value")
	require.EqualValues(t, 0, l.enc.Stream(), "first stream")
	for range 2 { // the second finds a stream that nobody has used
		_, _, err := l.send(bad, pointers{[]*point{nil}})
		require.ErrorIs(t, err, wire.ErrEncode, "nil in a slice")
		require.ErrorContains(t, err, "pointers", "the error names the type")
	}
	require.EqualValues(t, 1, l.enc.Stream(), "streams are counted one by one")
	for i := range 3 {
		require.Equal(t, point{i, 9}, l.trip(good.Type(), point{i, 9}), "value %d after the error", i)
		require.Equal(t, pointers{[]*point{{i, 1}}}, l.trip(bad.Type(), pointers{[]*point{{i, 1}}}), "good value %d of the bad type", i)
	}
}

func TestErrorInOneOfSeveralValues(t *testing.T) {
	l := newLink(t)
	codecs := []*wire.Codec{l.codec(reflect.TypeFor[point]()), l.codec(reflect.TypeFor[pointers]())}
	body, err := wire.Prepare(codecs, []any{point{1, 2}, pointers{[]*point{nil}}})
	require.NoError(t, err, "prepare")
	require.ErrorIs(t, l.enc.Finish(body), wire.ErrEncode, "the second value")
	require.False(t, body.Complete(), "a body that failed stays incomplete")
	require.Equal(t, point{1, 2}, l.trip(reflect.TypeFor[point](), point{1, 2}), "the definitions of the lost body are sent again")
}

func TestTooLargeBodies(t *testing.T) {
	l := newLink(t)
	small := wire.NewEncoder(1000)
	c := l.codec(reflect.TypeFor[stats]())
	body, err := wire.Prepare([]*wire.Codec{c}, []any{stats{Name: strings.Repeat("x", 2000)}})
	require.NoError(t, err, "prepare")
	require.ErrorIs(t, small.Finish(body), wire.ErrTooLarge, "a large value of the stream")
	body, err = wire.Prepare(nil, []any{make([]byte, 2000)})
	require.NoError(t, err, "prepare bytes")
	require.ErrorIs(t, small.Finish(body), wire.ErrTooLarge, "a large complete body")

	big := strings.Repeat("x", 2000)
	for _, v := range []any{
		big, []byte(big), color(big),
		[]any{big},
		map[string]any{"a": big},
		[]string{big},
		make([]int, 300),
		[300]int{1},
		boxed{big},
		fragile{big},
		&big,
	} {
		_, err := wire.Packing{Limit: 1000, Registry: l.reg}.Prepare([]*wire.Codec{l.codec(reflect.TypeOf(v))}, []any{v})
		require.ErrorIs(t, err, wire.ErrTooLarge, "%T", v)
	}
}

func TestDecodeErrorKeepsTheStream(t *testing.T) {
	type other struct{ X string } // not what a point is
	l := newLink(t)
	point1, other1 := l.codec(reflect.TypeFor[point]()), l.codec(reflect.TypeFor[other]())

	first, h, err := l.send(point1, point{1, 2}) // holds the definition of point
	require.NoError(t, err, "send")
	_, err = l.receive(other1, h, first)
	require.ErrorIs(t, err, wire.ErrDecode, "a point for another struct")
	for i := range 3 {
		require.Equal(t, point{i, 2}, l.trip(point1.Type(), point{i, 2}), "point %d after the error", i)
		require.Equal(t, other{"x"}, l.trip(other1.Type(), other{"x"}), "other %d after the error", i)
	}
}

func TestEveryBrokenByteLeavesTheStreamUsable(t *testing.T) {
	l := newLink(t)
	c := l.codec(reflect.TypeFor[stats]())
	want := stats{Name: "n", Counts: map[string]int{"a": 1}, Rates: []float64{1}}
	l.trip(c.Type(), want) // the definitions have arrived
	good, h, err := l.send(c, want)
	require.NoError(t, err, "send")
	for i := range good {
		for _, flip := range []byte{0x01, 0x80, 0xff} {
			broken := append([]byte{}, good...)
			broken[i] ^= flip
			if _, err := l.receive(c, h, broken); err != nil {
				require.ErrorIs(t, err, wire.ErrDecode, "byte %d changed by %#x", i, flip)
			}
			got, err := l.receive(c, h, good)
			require.NoError(t, err, "the next value, after byte %d was changed by %#x", i, flip)
			require.Equal(t, want, got, "the next value, after byte %d was changed by %#x", i, flip)
		}
	}
}

func TestDefinitionsSurviveAnErrorBeforeThem(t *testing.T) {
	l := newLink(t)
	codecs := []*wire.Codec{l.codec(reflect.TypeFor[int]()), l.codec(reflect.TypeFor[point]()), l.codec(reflect.TypeFor[list]())}
	body, err := wire.Prepare(codecs, []any{1, point{1, 2}, list{1, nil}})
	require.NoError(t, err, "prepare")
	require.NoError(t, l.enc.Finish(body), "finish")
	wrong := []*wire.Codec{l.codec(reflect.TypeFor[string]()), codecs[1], codecs[2]}
	dst, err := l.dec.Values(wire.Header{}, body.Bytes(), false, wrong, []any{"before"})
	require.ErrorIs(t, err, wire.ErrDecode, "an int for a string")
	require.Equal(t, []any{"before"}, dst, "dst is as it was")
	require.Equal(t, point{3, 4}, l.trip(reflect.TypeFor[point](), point{3, 4}), "a type defined behind the error")
	require.Equal(t, list{3, nil}, l.trip(reflect.TypeFor[list](), list{3, nil}), "another one")
}

func TestSkippedMessagesDefineTypes(t *testing.T) {
	l := newLink(t)
	for i := range 3 {
		b, h, err := l.send(l.codec(reflect.TypeFor[point]()), point{i, i})
		require.NoError(t, err, "send")
		require.NoError(t, l.dec.Skip(h, b), "skip %d", i)
	}
	require.Equal(t, point{5, 6}, l.trip(reflect.TypeFor[point](), point{5, 6}), "value after skipped ones")
	require.ErrorIs(t, l.dec.Skip(wire.Header{}, []byte{0}), wire.ErrDecode, "skip garbage")
	require.Equal(t, point{7, 8}, l.trip(reflect.TypeFor[point](), point{7, 8}), "value after skipped garbage")
}

func TestStreamNumbers(t *testing.T) {
	l := newLink(t)
	c := l.codec(reflect.TypeFor[int]())
	five := unhex(t, "08 0a")
	for _, n := range []uint16{0, 1, 1, 2} {
		got, err := l.dec.Values(wire.Header{Stream: n}, five, false, []*wire.Codec{c}, nil)
		require.NoError(t, err, "stream %d", n)
		require.Equal(t, []any{5}, got, "stream %d", n)
	}
	for _, n := range []uint16{0, 1, 4, 65535} {
		_, err := l.dec.Values(wire.Header{Stream: n}, five, false, []*wire.Codec{c}, nil)
		require.ErrorIs(t, err, wire.ErrProtocol, "stream %d after 2", n)
		require.ErrorIs(t, l.dec.Skip(wire.Header{Stream: n}, five), wire.ErrProtocol, "skip of stream %d after 2", n)
	}
	for n := uint16(3); n != 1; n++ { // all the way round
		require.NoError(t, l.dec.Skip(wire.Header{Stream: n}, nil), "stream %d", n)
	}
}

func TestLargeValuesDoNotStayInTheEncoder(t *testing.T) {
	l := newLink(t)
	c := l.codec(reflect.TypeFor[stats]())
	large := stats{Name: strings.Repeat("x", 5<<20)}
	require.Equal(t, large, l.trip(c.Type(), large), "large value")
	require.EqualValues(t, 0, l.enc.Stream(), "it is sent on the stream it was encoded for")
	require.Equal(t, stats{Name: "s"}, l.trip(c.Type(), stats{Name: "s"}), "small value")
	require.EqualValues(t, 1, l.enc.Stream(), "the next value begins a stream with fresh buffers")
	require.Equal(t, large, l.trip(c.Type(), large), "large value again")
	require.Equal(t, stats{Name: "s"}, l.trip(c.Type(), stats{Name: "s"}), "small value again")
}
