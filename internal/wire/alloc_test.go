package wire_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/wire"
)

func TestFastPathAllocations(t *testing.T) {
	l := newLink(t)
	for _, tt := range []struct {
		v         any
		out, back float64 // allocations
	}{
		{true, 1, 0},
		{7, 1, 0},
		{math.MaxInt, 1, 1}, // in an interface a large number has memory of its own
		{int64(1 << 40), 1, 1},
		{uint64(1 << 40), 1, 1},
		{2.5, 1, 1},
		{"text", 1, 2}, // the text, and its place in the interface
		{[]byte("bytes"), 1, 2},
		{strings.Repeat("x", 10_000), 2, 2},
	} {
		codecs := []*wire.Codec{l.codec(reflect.TypeOf(tt.v))}
		vals := []any{tt.v}
		packing := wire.Packing{Prefix: []byte{1}}
		var body *wire.Body
		out := testing.AllocsPerRun(100, func() {
			body, _ = packing.Prepare(codecs, vals)
			_ = l.enc.Finish(body)
		})
		require.LessOrEqual(t, out, tt.out, "allocations to send %T: the body only", tt.v)
		dst := make([]any, 0, 1)
		back := testing.AllocsPerRun(100, func() {
			dst, _ = l.dec.Values(wire.Header{}, body.Bytes()[1:], false, codecs, dst[:0])
		})
		require.Equal(t, vals, dst, "value")
		require.LessOrEqual(t, back, tt.back, "allocations to receive %T", tt.v)
	}
}

func TestLargeBytesAreCopiedOnce(t *testing.T) {
	l := newLink(t)
	c := l.codec(reflect.TypeFor[[]byte]())
	v := []any{make([]byte, 16<<20)}
	var body *wire.Body
	var err error
	sent := allocated(func() { body, err = wire.Prepare([]*wire.Codec{c}, v) })
	require.NoError(t, err, "prepare")
	require.Less(t, sent, uint64(17<<20), "bytes allocated to send 16 MiB")
	received := allocated(func() { _, err = l.dec.Values(wire.Header{}, body.Bytes(), true, []*wire.Codec{c}, nil) })
	require.NoError(t, err, "values")
	require.Less(t, received, uint64(1<<20), "bytes allocated to receive 16 MiB in an owned body")
}

func TestFramesAllocateNothing(t *testing.T) {
	buf := make([]byte, 0, 200)
	payload := []byte("payload")
	h := wire.Header{Kind: wire.KindReply, Request: 1}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		buf = wire.AppendFrame(buf[:0], h, payload)
		_, _ = wire.ParseHeader(buf)
	}), "allocations of a frame")
	r := wire.NewReader(&endless{frame: buf}, 0)
	require.Zero(t, testing.AllocsPerRun(1000, func() { _, _, _ = r.Next() }), "allocations of a message")
}

// endless gives the same frame again and again.
type endless struct {
	frame []byte
	at    int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.frame[e.at:])
	e.at = (e.at + n) % len(e.frame)
	return n, nil
}
