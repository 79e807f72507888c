package wire_test

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/wire"
)

// gobUint appends a number as gob writes it.
func gobUint(dst []byte, u uint64) []byte {
	if u <= 0x7f {
		return append(dst, byte(u))
	}
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], u)
	digits := bytes.TrimLeft(b[:], "\x00")
	return append(append(dst, byte(-len(digits))), digits...)
}

// gobBytes returns what gob makes of v.
func gobBytes(t testing.TB, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, gob.NewEncoder(&b).Encode(v), "gob of %T", v)
	return b.Bytes()
}

// forge returns the gob of v with the last cut bytes of its value message replaced by tail.
func forge(t testing.TB, v any, cut int, tail []byte) []byte {
	t.Helper()
	b := gobBytes(t, v)
	var msg []byte
	at := 0
	for next := 0; next < len(b); {
		at = next
		n, width := uint64(b[next]), 1
		if n > 0x7f {
			width += int(-int8(b[next]))
			n = 0
			for _, d := range b[next+1 : next+width] {
				n = n<<8 | uint64(d)
			}
		}
		next += width
		msg = b[next : next+int(n)]
		next += int(n)
	}
	msg = append(append([]byte{}, msg[:len(msg)-cut]...), tail...)
	return append(gobUint(append([]byte{}, b[:at]...), uint64(len(msg))), msg...)
}

// gobBody returns a body with a gob value under the tag.
func gobBody(tag byte, section []byte) []byte {
	return append(binary.AppendUvarint([]byte{tag}, uint64(len(section))), section...)
}

type (
	huge   struct{ A [1 << 16]int64 }
	inMap  struct{ M map[string]int }
	ignore struct {
		X int
		M map[string]int
	}
	ignores struct{ X int }
	inText  struct{ S string }
)

func TestGobBombs(t *testing.T) {
	const limit = 1 << 20
	manyHuge := make([]byte, 3000) // structs of one terminator each: 512 KiB in memory
	for _, tt := range []struct {
		name    string
		typ     reflect.Type
		section []byte
	}{
		{"map of 2^40", reflect.TypeFor[map[string]int](), forge(t, map[string]int{"k": 1}, 4, append(gobUint(nil, 1<<40), 1, 'k', 2))},
		{"map of 2^27", reflect.TypeFor[map[string]int](), forge(t, map[string]int{"k": 1}, 4, append(gobUint(nil, 1<<27), 1, 'k', 2))},
		{"map of -1", reflect.TypeFor[map[string]int](), forge(t, map[string]int{"k": 1}, 4, append(gobUint(nil, 1<<64-1), 1, 'k', 2))},
		{"map in a struct", reflect.TypeFor[inMap](), forge(t, inMap{map[string]int{"k": 1}}, 5, append(gobUint(nil, 1<<30), 1, 'k', 2, 0))},
		{"map in a slice", reflect.TypeFor[[]map[string]int](), forge(t, []map[string]int{{"k": 1}}, 4, append(gobUint(nil, 1<<30), 1, 'k', 2))},
		{"map of empty structs", reflect.TypeFor[map[point]point](), forge(t, map[point]point{{}: {}}, 3, gobUint(nil, 1<<62))},
		{"map in a field that is not there", reflect.TypeFor[ignores](), forge(t, ignore{X: 1, M: map[string]int{"k": 1}}, 5, append(gobUint(nil, 1<<62), 1, 'k', 2, 0))},
		{"slice of 2^40", reflect.TypeFor[[]point](), forge(t, []point{{1, 2}}, 6, append(gobUint(nil, 1<<40), 1, 2, 1, 4, 0))},
		{"slice of large structs", reflect.TypeFor[[]huge](), forge(t, []huge{}, 1, append(gobUint(nil, 3000), manyHuge...))},
		{"pointers to large structs", reflect.TypeFor[[]*huge](), forge(t, []huge{}, 1, append(gobUint(nil, 3000), manyHuge...))},
		{"large structs in a map", reflect.TypeFor[map[int]huge](), forge(t, map[int]huge{}, 1, append(gobUint(nil, 1500), manyHuge...))},
		{"string of 2^40", reflect.TypeFor[inText](), forge(t, inText{"x"}, 3, append(gobUint(nil, 1<<40), 'x', 0))},
		{"value cut off", reflect.TypeFor[point](), forge(t, point{1, 2}, 1, nil)},
		{"struct without end", reflect.TypeFor[point](), forge(t, point{1, 2}, 0, []byte{1, 2})},
		{"field out of range", reflect.TypeFor[point](), forge(t, point{1, 2}, 1, []byte{100, 2, 0})},
		{"undefined type", reflect.TypeFor[point](), []byte{3, 0xff, 0xf0, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, tag := range []byte{0x32, 0x33} {
				l := newLink(t)
				dec := wire.NewDecoder(l.reg, limit)
				c := l.codec(tt.typ)
				body := gobBody(tag, tt.section)
				var err error
				got := allocated(func() { _, err = dec.Values(wire.Header{}, body, false, []*wire.Codec{c}, nil) })
				require.ErrorIs(t, err, wire.ErrDecode, "tag %#x", tag)
				require.Less(t, got, uint64(wire.MemoryFactor*limit), "bytes allocated for %d received, tag %#x", len(body), tag)
			}
		})
	}
}

func TestGobBombsInInterfaces(t *testing.T) {
	l := newLink(t)
	c := l.codec(reflect.TypeFor[boxed]())
	require.NoError(t, l.reg.Register(reflect.TypeFor[map[string]int]()), "register")
	// The value in the interface ends the message: its map's count, "k", 1, and the end of the struct.
	body := gobBody(0x33, forge(t, boxed{map[string]int{"k": 1}}, 5, append(gobUint(nil, 1<<40), 1, 'k', 2, 0)))
	var err error
	got := allocated(func() {
		var vals []any
		vals, err = l.dec.Values(wire.Header{}, body, false, []*wire.Codec{c}, nil)
		require.NoError(t, err, "values")
		_, err = vals[0].(*wire.Deferred).Decode()
	})
	require.ErrorIs(t, err, wire.ErrDecode, "map of 2^40 in an interface")
	require.Less(t, got, uint64(1<<20), "bytes allocated")
}

func TestDeepGobIsRefused(t *testing.T) {
	// Each level is the step to field 1 (Next) and, at the end, the mark that ends a struct.
	deep := append(bytes.Repeat([]byte{2}, 1_000_000), bytes.Repeat([]byte{0}, 1_000_001)...)
	levels := func(n int) []byte {
		return forge(t, list{V: 1, Next: &list{V: 1}}, 7, append(deep[:n:n], deep[1_000_000:1_000_001+n]...))
	}
	for _, tag := range []byte{0x32, 0x33} {
		receive := func(n int) (any, error) {
			l := newLink(t)
			return l.receive(l.codec(reflect.TypeFor[list]()), wire.Header{}, gobBody(tag, levels(n)))
		}
		_, err := receive(1_000_000)
		require.ErrorIs(t, err, wire.ErrDecode, "over the size, tag %#x", tag)
		require.ErrorContains(t, err, "too large", "over the size, tag %#x", tag)
		_, err = receive(200_000)
		require.ErrorIs(t, err, wire.ErrDecode, "under the size, tag %#x", tag)
		require.ErrorContains(t, err, "deep", "under the size, tag %#x", tag)
		got, err := receive(9_000)
		require.NoError(t, err, "9000 levels, tag %#x", tag)
		depth := 0
		for n := ptr(got.(list)); n != nil; n = n.Next {
			depth++
		}
		require.Equal(t, 9_001, depth, "levels that arrive, tag %#x", tag)
	}
}

func TestMemoryOfInlineValues(t *testing.T) {
	const limit = 1 << 20
	reg := registry(t)
	dec := wire.NewDecoder(reg, limit)
	require.NoError(t, reg.Register(reflect.TypeFor[huge]()), "register")
	million := binary.AppendUvarint(nil, 1_000_000)
	hugeText := wire.TypeText(reflect.TypeFor[huge]())
	oneHuge := append(binary.AppendUvarint([]byte{0x30}, uint64(len(hugeText))), hugeText...)
	oneHuge = append(oneHuge, 0x02)
	for _, tt := range []struct {
		name string
		typ  reflect.Type
		body []byte
	}{
		{"empty strings", reflect.TypeFor[[]string](), append(append([]byte{0x22}, million...), make([]byte, 1_000_000)...)},
		{"list of nils", reflect.TypeFor[any](), append(append([]byte{0x23}, million...), bytes.Repeat([]byte{1}, 1_000_000)...)},
		{"large zero values", reflect.TypeFor[[]any](), append([]byte{0x23, 100}, bytes.Repeat(oneHuge, 100)...)},
		{"pointers to large zero values", reflect.TypeFor[[]any](), append([]byte{0x23, 100}, bytes.Repeat(
			append(append(binary.AppendUvarint([]byte{0x30}, uint64(len(hugeText)+1)), '*'), append([]byte(hugeText), 4, 2)...), 100)...)},
		{"nested lists", reflect.TypeFor[any](), bytes.Repeat([]byte{0x23, 1}, 1_000_000)},
		{"nested pointers", reflect.TypeFor[any](), bytes.Repeat([]byte{0x04}, 1_000_000)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := wire.CodecOf(tt.typ, reg)
			require.NoError(t, err, "codec")
			got := allocated(func() { _, err = dec.Values(wire.Header{}, tt.body, false, []*wire.Codec{c}, nil) })
			require.ErrorIs(t, err, wire.ErrDecode, "decode")
			require.Less(t, got, uint64(2*wire.MemoryFactor*limit), "bytes allocated")
		})
	}
}

func TestDefinitionsOfAStreamAreBounded(t *testing.T) {
	l := newLink(t)
	c := l.codec(reflect.TypeFor[point]())
	b, h, err := l.send(c, point{1, 2})
	require.NoError(t, err, "send")
	_, err = l.receive(c, h, b)
	require.NoError(t, err, "first time")
	_, err = l.receive(c, h, b)
	require.ErrorIs(t, err, wire.ErrDecode, "the same definitions again")

	// A slice type with a name of 64 KiB, again and again under new numbers.
	name := bytes.Repeat([]byte{'n'}, 64<<10)
	var refused error
	for id := uint64(1000); id < 1300 && refused == nil; id++ {
		def := gobUint(nil, 2*(id-1)+1) // -id
		def = append(gobUint(append(def, 2, 1, 1), uint64(len(name))), name...)
		def = append(def, 0, 1, 4, 0, 0) // element type int
		section := append(gobUint(nil, uint64(len(def))), def...)
		refused = l.dec.Skip(h, gobBody(0x32, append(section, 2, 4, 0)))
	}
	require.ErrorIs(t, refused, wire.ErrDecode, "definitions without end")
	require.ErrorContains(t, refused, "definitions", "definitions without end")
}
