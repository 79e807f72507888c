package wire_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/wire"
)

// fromElsewhere has no name in the registry of the receiver.
type fromElsewhere struct{ N int }

// tags are golden: what each kind of value looks like.
var tags = []struct {
	name  string
	v     any
	bytes string
}{
	{"nil", (*int)(nil), "01"},
	{"zero", point{}, "02"},
	{"empty", map[string]int{}, "03"},
	{"pointer", ptr(1), "04 08 02"},
	{"false", false, "05"},
	{"true", true, "06"},
	{"int", -1, "08 01"},
	{"int8", int8(1), "09 02"},
	{"int16", int16(1), "0a 02"},
	{"int32", int32(1), "0b 02"},
	{"int64", int64(150), "0c ac02"},
	{"uint", uint(300), "10 ac02"},
	{"uint8", uint8(1), "11 01"},
	{"uint16", uint16(1), "12 01"},
	{"uint32", uint32(1), "13 01"},
	{"uint64", uint64(1), "14 01"},
	{"uintptr", uintptr(1), "15 01"},
	{"float32", float32(1), "18 0000803f"},
	{"float64", 1.0, "19 000000000000f03f"},
	{"complex64", complex64(complex(1, 2)), "1a 0000803f 00000040"},
	{"complex128", complex(1, 2), "1b 000000000000f03f 0000000000000040"},
	{"string", "ab", "20 02 6162"},
	{"bytes", []byte{5}, "21 01 05"},
	{"strings", []string{"a", ""}, "22 02 01 61 00"},
	{"list", []any{1, nil}, "23 02 08 02 01"},
	{"dict", map[string]any{"k": true}, "24 01 01 6b 06"},
	{"typed", []any{time.Duration(1)}, "23 01 30 0d 74696d652e4475726174696f6e 0c 02"},
	{"typed nil", []any{[]int(nil)}, "23 01 30 05 5b5d696e74 01"},
	{"methods", sealed{7}, "31 01 07"},
	{"bools", []bool{true, false}, "46 02 01 00"},
	{"ints", []int{1, -1}, "48 02 0100000000000000 ffffffffffffffff"},
	{"int8s", []int8{-1}, "49 01 ff"},
	{"int16s", []int16{-2}, "4a 01 feff"},
	{"int32s", []int32{1}, "4b 01 01000000"},
	{"int64s", []int64{1}, "4c 01 0100000000000000"},
	{"uints", []uint{1}, "50 01 0100000000000000"},
	{"uint16s", []uint16{1}, "52 01 0100"},
	{"uint32s", []uint32{1}, "53 01 01000000"},
	{"uint64s", []uint64{1}, "54 01 0100000000000000"},
	{"uintptrs", []uintptr{1}, "55 01 0100000000000000"},
	{"float32s", []float32{1}, "58 01 0000803f"},
	{"float64s", []float64{}, "59 00"},
	{"complex64s", []complex64{1}, "5a 01 0000803f 00000000"},
	{"complex128s", []complex128{1}, "5b 01 000000000000f03f 0000000000000000"},
	{"array", [2]int8{1, 2}, "49 02 01 02"},
	{"byte array", [2]byte{1, 2}, "21 02 01 02"},
	{"duration", time.Duration(1), "0c 02"},
	{"time", time.Unix(1, 0).UTC(), "31 0f 01 0000000e7791f701 00000000 ffff"},
}

func TestTagsGolden(t *testing.T) {
	for _, tt := range tags {
		t.Run(tt.name, func(t *testing.T) {
			l := newLink(t)
			b, _, err := l.send(l.codec(reflect.TypeOf(tt.v)), tt.v)
			require.NoError(t, err, "send")
			require.Equal(t, unhex(t, tt.bytes), b, "bytes: got % x", b)
			n, err := wire.Count(b)
			require.NoError(t, err, "count")
			require.Equal(t, 1, n, "count")
		})
	}
}

// Gob numbers types in the order in which a program uses them, so that the bytes of gob differ from run to run. What
// is golden is the frame around them.
func TestGobTags(t *testing.T) {
	l := newLink(t)
	c := l.codec(reflect.TypeFor[point]())
	b, _, err := l.send(c, point{1, 2})
	require.NoError(t, err, "send")
	require.Equal(t, byte(0x32), b[0], "shared gob: % x", b)
	require.Equal(t, len(b)-2, int(b[1]), "length: % x", b)
	again, _, err := l.send(c, point{1, 2})
	require.NoError(t, err, "send again")
	require.Less(t, len(again), len(b), "type definitions are sent once")
	require.Equal(t, unhex(t, "01 02 01 04 00"), again[len(again)-5:], "the second, behind its type id: % x", again)

	own, _, err := l.send(l.codec(reflect.TypeFor[boxed]()), boxed{1})
	require.NoError(t, err, "send interface")
	require.Equal(t, byte(0x33), own[0], "own gob: % x", own)
}

func TestMalformedValues(t *testing.T) {
	for _, tt := range []struct {
		name  string
		v     any // its type is expected
		bytes string
	}{
		{"nothing", 0, ""},
		{"tag 00", 0, "00"},
		{"unknown tag", 0, "07"},
		{"highest tag", 0, "ff"},
		{"numbers tag of bytes", []byte{}, "51 00"},
		{"numbers tag of false", []bool{}, "45 00"},
		{"trailing byte", 0, "08 02 00"},
		{"second value", 0, "08 02 08 02"},
		{"cut off number", 0, "08"},
		{"number without end", 0, "08 ffffffffffffffffffff"},
		{"long form", 0, "08 8000"},
		{"overflow", int8(0), "09 8002"},
		{"unsigned overflow", uint16(0), "12 808004"},
		{"other kind", 0, "09 02"},
		{"nil for a number", 0, "01"},
		{"zero for a number", 0, "02"},
		{"string too long", "", "20 05 61"},
		{"string far too long", "", "20 ffffffffffffffff7f"},
		{"numbers too many", []int{}, "48 02 0100000000000000"},
		{"numbers far too many", []int64{}, "4c ffffffffffffffff1f"},
		{"strings too many", []string{}, "22 05 00"},
		{"bool of 2", []bool{}, "46 01 02"},
		{"array too short", [2]int8{}, "49 01 01"},
		{"array too long", [2]int8{}, "49 03 01 01 01"},
		{"list too long", []any{}, "23 03 01 01"},
		{"list with zero", []any{}, "23 01 02"},
		{"dict with a key twice", map[string]any{}, "24 02 00 01 00 01"},
		{"dict too long", map[string]any{}, "24 02 00 01"},
		{"unknown type", []any{}, "23 01 30 03 782e59 02"},
		{"chan type", []any{}, "23 01 30 08 6368616e20696e74 01"},
		{"error type", []any{}, "23 01 30 05 6572726f72 01"},
		{"type without value", []any{}, "23 01 30 03 696e74"},
		{"shared gob in an interface", []any{}, "23 01 32 00"},
		{"empty for a struct", point{}, "03"},
		{"zero for a map", map[string]int{}, "02"},
		{"empty gob", point{}, "33 00"},
		{"empty shared gob", point{}, "32 00"},
		{"garbage gob", point{}, "33 05 ffffffffff"},
		{"methods with nothing", sealed{}, "31 00"},
		{"bad time", time.Time{}, "31 02 09 09"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLink(t)
			got, err := l.receive(l.codec(reflect.TypeOf(tt.v)), wire.Header{}, unhex(t, tt.bytes))
			require.ErrorIs(t, err, wire.ErrDecode, "decode %s as %T: got %v", tt.bytes, tt.v, got)
			require.NotErrorIs(t, err, wire.ErrProtocol, "it concerns the value only")
		})
	}
}

func TestNumberOfValues(t *testing.T) {
	l := newLink(t)
	c := l.codec(reflect.TypeFor[int]())
	one := unhex(t, "08 02")
	_, err := l.dec.Values(wire.Header{}, one, false, []*wire.Codec{c, c}, nil)
	require.ErrorIs(t, err, wire.ErrDecode, "one for two")
	_, err = l.dec.Values(wire.Header{}, one, false, []*wire.Codec{}, nil)
	require.ErrorIs(t, err, wire.ErrDecode, "one for none")
	got, err := l.dec.Values(wire.Header{}, append(one, one...), false, nil, nil)
	require.NoError(t, err, "any number")
	require.Equal(t, []any{1, 1}, got, "any number")
	got, err = l.dec.Values(wire.Header{}, nil, false, nil, nil)
	require.NoError(t, err, "none")
	require.Empty(t, got, "none")
	for _, s := range []string{"00", "08", "23 05 01", "04", "30 01 61"} {
		_, err := wire.Count(unhex(t, s))
		require.ErrorIs(t, err, wire.ErrDecode, "count of %s", s)
	}
}
