package wire_test

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/wire"
)

// gobSeed is input that took a gob decoder down, or made it take memory or time without end: from public reports, or made
// after one whose input is not public. The ids are those of the catalogue of faults.
type gobSeed struct {
	id, name string
	typ      reflect.Type
	section  []byte
}

type (
	// recursive has what the reports' types have: itself and a map.
	recursive struct {
		J *recursive
		K map[string]int
	}
	selfish []selfish
	// everything has a field of each form that gob can skip; ignores has none of them.
	everything struct {
		X     int
		Bytes []byte
		Any   any
		Own   sealed
		Ints  []int
		Text  string
		Deep  []everything
	}
)

// sliceOfItself is the one that is a sound value, of a type of which a decoder may not try to see the end.
const sliceOfItself = "a slice type of itself"

// gobSeeds are all of them.
func gobSeeds(t testing.TB) []gobSeed {
	t.Helper()
	b := func(digits ...string) []byte {
		raw, err := hex.DecodeString(strings.Join(digits, ""))
		require.NoError(t, err, "hexadecimal digits")
		return raw
	}
	skipped := reflect.TypeFor[ignores]()
	count := func(n uint64, rest ...byte) []byte { return append(gobUint(nil, n), rest...) }
	limits := "53ff8f03010106696e7075745401ff900001fc0701044d61786901040001044d696e6901040001044d617875010600" +
		"01044d61786601080001044d696e6601080001044d617863010e0001044d696e63010e0000"
	return []gobSeed{
		{"C27", "four billion entries for a map in a struct", reflect.TypeFor[recursive](), b(
			"4dffb503010102303001ff30000109010130010800010130010800010130", "01ffb80001014a01ffb60001014b01ff860001013001ff860001013001ff",
			"860001013001ff860001013001ffb80000001eff850401010e3030303030", "30303030303030303001ff3000010c0104000016ffb70201010830303030",
			"3030303001ff3000010c000030ffb6040405fcff00", strings.Repeat("30", 43),
		)},
		{"C27", "2^27 entries for a map", reflect.TypeFor[map[string]int](), forge(t, map[string]int{"k": 1}, 4, count(1<<27, 1, 'k', 2))},
		{"C27", "2^62 entries for a map that is skipped", skipped, forge(t, ignore{X: 1, M: map[string]int{"k": 1}}, 5, count(1<<62, 1, 'k', 2, 0))},
		{"C28", "a million levels", reflect.TypeFor[list](), forge(t, list{V: 1, Next: &list{V: 1}}, 7,
			append(bytes.Repeat([]byte{2}, 1_000_000), make([]byte, 1_000_001)...))},
		{"C28", sliceOfItself, reflect.TypeFor[selfish](), b("1dffd30201010e726563757273697665536c69636501ffd40001ffd4000007ffd40002010000")},
		{"C28", "two hundred thousand levels that are skipped", skipped, forge(t, everything{X: 1, Deep: []everything{{X: 1}}}, 4,
			append(bytes.Repeat([]byte{7, 1}, 200_000), make([]byte, 200_001)...))},
		{"C29", "two billion fields in a type", reflect.TypeFor[ignores](), b(limits, "0007ff9001fe0000")},
		{"C29", "two billion fields in a type, and a value", reflect.TypeFor[point](), b(limits, "0007ff9001fe010000")},
		{"C29", "a slice of a length with five bytes", reflect.TypeFor[point](), b("130a00fb5dad0bf8ff020263e70002fa28020202a89859")},
		{"C29", "an interface of a length with five bytes", reflect.TypeFor[boxed](), b("0f1000fb285d003316020735ff023a65c5")},
		{"C29", "methods' bytes of a length without end", reflect.TypeFor[[]sealed](), b("03fffb0616fffc00f902ff02ff03bf005d02885802a311a8120228022c028ee7")},
		{"C29", "an empty struct, six trillion times", reflect.TypeFor[[]empty](), b(
			"10fe010f020102fe01100001fe010e000025fe010d030102fe010e0001020103", "4e756d01040001084368696c6472656e01fe01100000000bfe011000f8060102", "00de010400")},
		{"C29", "structs without end", reflect.TypeFor[[]point](), b(
			"10fe010f020102fe01100001fe010e000016fe010d030102fe010e00010101015801fe01100000000bfe011000f85555555555555555")},
		{"C29", "a message of 3.8 GB", reflect.TypeFor[point](), b("fce4303030")},
		{"C29", "a message of more than there is", reflect.TypeFor[point](), b("7f6869")},
		{"C29", "a slice of 2^40 structs", reflect.TypeFor[[]point](), forge(t, []point{{1, 2}}, 6, count(1<<40, 1, 2, 1, 4, 0))},
		{"C29", "large structs of one byte each", reflect.TypeFor[[]huge](), forge(t, []huge{}, 1, count(3000, make([]byte, 3000)...))},
		{"C29", "skipped bytes of 2^33", skipped, forge(t, everything{X: 1, Bytes: []byte("b")}, 3, count(1<<33, 'b', 0))},
		{"C29", "a skipped slice of 2^40", skipped, forge(t, everything{X: 1, Ints: []int{5}}, 3, count(1<<40, 10, 0))},
		{"C29", "a skipped text of 2^63", skipped, forge(t, everything{X: 1, Text: "t"}, 3, count(1<<63, 't', 0))},
		{"C30", "an index of -2^63", reflect.TypeFor[boxed](), b("12ffff02022000f87fffffffffffffffffff2020202020")},
		{"C30", "a type that is not there", reflect.TypeFor[ignores](), b("01000100")},
		{"C30", "more to drop than there is", reflect.TypeFor[boxed](), b("05100028557b02027f8302")},
		{"C30", "a value in an interface with a negative length", skipped, forge(t, everything{X: 1, Any: 5}, 4, count(1<<64-2, 0, 10, 0))},
		{"C30", "skipped methods' bytes with a negative length", skipped, forge(t, everything{X: 1, Own: sealed{1}}, 3, count(1<<64-1, 1, 0))},
		{"C30", "a struct type without fields for a slice", reflect.TypeFor[[]*empty](), b("097f030102ff800000000003ff8000")},
		{"C30", "field numbers out of bounds", reflect.TypeFor[point](), b("0424666f6f")},
		{"C30", "a text", reflect.TypeFor[point](), []byte("\x03now is the time for all good men")},
		{"C30", "a length of more than eight bytes", reflect.TypeFor[point](), b("fba5822fca01")},
		{"C30", "nothing", reflect.TypeFor[point](), nil},
	}
}

// What took others down costs one call: its error is ErrDecode, its memory is bounded by the limit, and the stream goes on.
func TestPublicGobInputs(t *testing.T) {
	const limit = 1 << 20
	for _, seed := range gobSeeds(t) {
		t.Run(seed.id+" "+seed.name, func(t *testing.T) {
			for _, tag := range []byte{0x32, 0x33} {
				l := newLink(t)
				c := l.codec(seed.typ)
				body := gobBody(tag, seed.section)
				var err error
				took := allocated(func() { err = decodeWith(l, wire.NewDecoder(l.reg, limit), []*wire.Codec{c}, body) })
				if seed.name == sliceOfItself {
					require.NoError(t, err, "as %v, tag %#x", seed.typ, tag)
				} else {
					require.ErrorIs(t, err, wire.ErrDecode, "as %v, tag %#x", seed.typ, tag)
				}
				require.Less(t, took, uint64(wire.MemoryFactor*limit+2*len(body)), "bytes allocated for %d received, tag %#x", len(body), tag)
				decodeAnything(l, c, []*wire.Codec{c}, body)
				decodeAnything(l, c, nil, body)
			}
		})
	}
}

// decodeWith decodes a body completely, also what is left for later.
func decodeWith(l *link, dec *wire.Decoder, codecs []*wire.Codec, body []byte) error {
	l.t.Helper()
	vals, err := dec.Values(wire.Header{}, body, false, codecs, nil)
	for _, v := range vals {
		if d, ok := v.(*wire.Deferred); ok && err == nil {
			_, err = d.Decode()
		}
	}
	return err
}
