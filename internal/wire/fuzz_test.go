package wire_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/big"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/wire"
)

func FuzzReader(f *testing.F) {
	for _, tt := range frames {
		f.Add(tt.header.Append(nil))
	}
	small := wire.AppendFrame(nil, wire.Header{Kind: wire.KindReply, Request: 1}, []byte("payload"))
	f.Add(wire.AppendFrame(small, wire.Header{Kind: wire.KindStop}, nil))
	f.Add(appendMessage(nil, wire.Header{Kind: wire.KindReply, Request: 1}, make([]byte, wire.ChunkSize+10)))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add(wire.Header{Kind: wire.KindReply, Flags: wire.FlagMore, Length: math.MaxUint32}.Append(nil))
	f.Add(wire.Header{Kind: wire.KindReply, Flags: wire.FlagMore, Length: 1 << 20}.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		took := allocated(func() { readStream(t, b) })
		require.Less(t, took, uint64(4<<20+10*len(b)), "bytes allocated for %d received", len(b))
	})
}

// readStream reads messages from b, which may hold anything, with a limit of 1 MiB.
func readStream(t *testing.T, b []byte) {
	r := wire.NewReader(bytes.NewReader(b), 1<<20)
	var back []byte
	for {
		h, payload, err := r.Next()
		if err != nil {
			_, _, again := r.Next()
			require.Equal(t, err, again, "the first error stays")
			if errors.Is(err, io.EOF) {
				require.Equal(t, b, append([]byte{}, back...), "a stream that ends well is that of its messages")
			}
			return
		}
		require.Len(t, payload, int(h.Length), "payload")
		require.LessOrEqual(t, len(payload), 1<<20, "payload")
		back = appendMessage(back, h, payload)
		if h.Length > wire.ChunkSize { // control frames between its pieces come first
			return
		}
	}
}

func FuzzHandshake(f *testing.F) {
	f.Add(hello.Append(nil))
	f.Add(ready.Append(nil))
	f.Add(failed.Append(nil))
	f.Add(wire.RequestPrefix{HasDeadline: true, Remaining: time.Second, Name: "Add"}.Append(nil))
	f.Add(wire.Ready{Version: wire.Version, Methods: make([]wire.MethodDesc, 300)}.Append(nil))
	f.Add(append(wire.Ready{Version: wire.Version}.Append(nil)[:3], 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := wire.ParseHello(b); err == nil {
			again, err := wire.ParseHello(m.Append(nil))
			require.NoError(t, err, "Hello again")
			require.Equal(t, m, again, "Hello again")
		}
		if m, err := wire.ParseReady(b); err == nil {
			again, err := wire.ParseReady(m.Append(nil))
			require.NoError(t, err, "Ready again")
			require.Equal(t, m, again, "Ready again")
		}
		if m, err := wire.ParseFailed(b); err == nil {
			_, err := wire.ParseFailed(m.Append(nil))
			require.NoError(t, err, "Failed again")
		}
		for _, flags := range []wire.Flags{0, wire.FlagDeadline, wire.FlagNamed, wire.FlagDeadline | wire.FlagNamed} {
			if p, rest, err := wire.ParseRequestPrefix(flags, b); err == nil {
				again, more, err := wire.ParseRequestPrefix(p.Flags(), append(p.Append(nil), rest...))
				require.NoError(t, err, "request prefix again")
				require.Equal(t, p, again, "request prefix again")
				require.Equal(t, string(rest), string(more), "what follows the request prefix")
			}
		}
		if p, rest, err := wire.ParseReplyPrefix(wire.FlagTimings, b); err == nil {
			require.LessOrEqual(t, len(rest), len(b), "rest")
			again, _, err := wire.ParseReplyPrefix(wire.FlagTimings, p.Append(nil))
			require.NoError(t, err, "reply prefix again")
			require.Equal(t, p, again, "reply prefix again")
		}
	})
}

func FuzzError(f *testing.F) {
	f.Add(wire.AppendError(nil, wire.ErrorNode{Text: "a", Type: "T", Name: "n", Data: []byte{1}, Stack: "s", Kids: []wire.ErrorNode{{Text: "k"}}}))
	f.Add(wire.AppendError(nil, wire.ErrorNode{Kids: make([]wire.ErrorNode, 70)}))
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := wire.ParseError(b)
		if err != nil {
			require.ErrorIs(t, err, wire.ErrProtocol, "parse")
			return
		}
		nodes, depth := count(n)
		require.LessOrEqual(t, nodes, 64, "nodes")
		require.LessOrEqual(t, depth, 16, "levels")
		out := wire.AppendError(nil, n)
		require.LessOrEqual(t, len(out), 64<<10, "size")
		again, err := wire.ParseError(out)
		require.NoError(t, err, "again")
		require.Equal(t, out, wire.AppendError(nil, again), "what was cut once stays as it is")
	})
}

// fuzzTypes are types of all forms.
var fuzzTypes = []reflect.Type{
	reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[bool](), reflect.TypeFor[string](), reflect.TypeFor[[]byte](),
	reflect.TypeFor[[]float64](), reflect.TypeFor[[]bool](), reflect.TypeFor[[3]int16](), reflect.TypeFor[[]string](),
	reflect.TypeFor[any](), reflect.TypeFor[[]any](), reflect.TypeFor[map[string]any](), reflect.TypeFor[**int](),
	reflect.TypeFor[point](), reflect.TypeFor[*stats](), reflect.TypeFor[list](), reflect.TypeFor[map[string][]point](),
	reflect.TypeFor[boxed](), reflect.TypeFor[time.Time](), reflect.TypeFor[big.Int](), reflect.TypeFor[[]map[int]huge](),
	reflect.TypeFor[*[2]list](), reflect.TypeFor[ignores](), reflect.TypeFor[recursive](), reflect.TypeFor[selfish](),
	reflect.TypeFor[everything](), reflect.TypeFor[map[string]int](), reflect.TypeFor[[]huge](), reflect.TypeFor[[]point](),
	reflect.TypeFor[[]empty](), reflect.TypeFor[[]*empty](), reflect.TypeFor[[]sealed](),
}

func FuzzValues(f *testing.F) {
	l := newLink(f)
	for i, typ := range fuzzTypes {
		for _, tt := range values {
			if reflect.TypeOf(tt.v) == typ {
				b, _, err := newLink(f).send(l.codec(typ), tt.v)
				require.NoError(f, err, "seed")
				f.Add(uint8(i), b)
			}
		}
	}
	for _, tt := range tags {
		f.Add(uint8(9), unhex(f, tt.bytes))
	}
	f.Add(uint8(13), gobBody(0x33, gobBytes(f, point{1, 2})))
	f.Add(uint8(22), gobBody(0x33, gobBytes(f, ignore{1, map[string]int{"a": 1}})))
	f.Add(uint8(17), gobBody(0x33, gobBytes(f, boxed{[]any{1, map[string]any{"a": 2}}})))
	for _, seed := range gobSeeds(f) {
		if len(seed.section) > 1<<16 { // those are for the test that replays all
			continue
		}
		for i := range fuzzTypes {
			if fuzzTypes[i] == seed.typ {
				f.Add(uint8(i), gobBody(0x32, seed.section))
				f.Add(uint8(i), gobBody(0x33, seed.section))
			}
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		l.t = t
		c := l.codec(fuzzTypes[int(which)%len(fuzzTypes)])
		for _, codecs := range [][]*wire.Codec{{c}, nil} {
			took := allocated(func() { decodeAnything(l, c, codecs, b) })
			require.Less(t, took, uint64(64<<20), "bytes allocated for %d received", len(b))
		}
	})
}

// decodeAnything decodes b, which may hold anything, with a limit of 1 MiB, and then a sound value.
func decodeAnything(l *link, c *wire.Codec, codecs []*wire.Codec, b []byte) {
	dec := wire.NewDecoder(l.reg, 1<<20)
	vals, err := dec.Values(wire.Header{}, b, false, codecs, nil)
	if err != nil {
		require.ErrorIs(l.t, err, wire.ErrDecode, "values")
	}
	if len(vals) > 0 {
		n, err := wire.Count(b)
		require.NoError(l.t, err, "count of what was decoded")
		require.Len(l.t, vals, n, "values")
	}
	for _, v := range vals {
		switch v := v.(type) {
		case *wire.Deferred:
			_, err = v.Decode()
		case *wire.Raw:
			_, err = v.Decode(c.Type())
		}
		if err != nil {
			require.ErrorIs(l.t, err, wire.ErrDecode, "decoded later")
		}
	}
	unseen := l.codec(reflect.TypeFor[boxless]())
	enc := wire.NewEncoder(0)
	body, err := wire.Prepare([]*wire.Codec{unseen}, []any{boxless{5}})
	require.NoError(l.t, err, "prepare")
	require.NoError(l.t, enc.Finish(body), "finish")
	got, err := dec.Values(wire.Header{Stream: 1}, body.Bytes(), false, []*wire.Codec{unseen}, nil)
	require.NoError(l.t, err, "the next stream")
	require.Equal(l.t, []any{boxless{5}}, got, "the next stream")
}

// boxless has no values among the seeds.
type boxless struct{ Unseen int }

func FuzzRoundTrip(f *testing.F) {
	f.Add(int64(1), uint8(2), 1.5, "text", []byte{1, 2}, true)
	f.Add(int64(math.MinInt64), uint8(255), math.Inf(-1), "\xff", []byte(nil), false)
	l := newLink(f)
	f.Fuzz(func(t *testing.T, i int64, u uint8, x float64, s string, b []byte, flag bool) {
		if x != x || x == 0 { // NaN is unequal to itself, minus zero arrives as zero inside gob
			x = 1
		}
		l.t = t
		floats := make([]float64, u)
		for n := range floats {
			floats[n] = x * float64(n+1)
		}
		for _, v := range []any{
			i, u, x, s, flag, b, floats, level(i), color(s),
			point{int(i), int(u)},
			&point{int(u), int(i)},
			[]any{i, s, b, []any{flag, x}, map[string]any{s: u}},
			map[string]any{s: floats, s + "x": point{int(i), 1}},
			map[string]int{s: int(i)},
			[]point{{int(i), 1}, {1, int(u)}},
			boxed{s},
			&list{int(i), &list{int(u), nil}},
			stats{Name: s, Counts: map[string]int{s: int(u)}, At: time.Unix(i>>32, int64(u)).UTC()},
			sealed{int(u)},
			[]sealed{{int(u)}},
			big.NewInt(i),
			[2]bool{flag, true},
			[]string{s, "", s},
			complex(x, 1),
		} {
			if bytes, ok := v.([]byte); ok && bytes == nil {
				continue // nil stays nil, which Equal takes for empty
			}
			require.Equal(t, v, l.trip(reflect.TypeOf(v), v), "%T", v)
			require.Equal(t, v, l.trip(reflect.TypeFor[any](), v), "%T in any", v)
		}
	})
}
