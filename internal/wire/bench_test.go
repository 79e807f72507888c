package wire_test

import (
	"bytes"
	"encoding/gob"
	"math"
	"reflect"
	"testing"

	"github.com/workerlink/supervisor/internal/wire"
)

var benchValues = []struct {
	name string
	v    any
}{
	{"int", math.MaxInt},
	{"string", "a text of usual length"},
	{"bytes 1 MiB", make([]byte, 1<<20)},
	{"floats 1000", make([]float64, 1000)},
	{"struct", stats{Name: "n", Rates: []float64{1, 2, 3}, Next: &point{1, 2}}},
	{"small struct", point{1, 2}},
	{"list", []any{1, "a", 2.5}},
	{"interface in struct", boxed{1}},
}

func BenchmarkValues(b *testing.B) {
	for _, bb := range benchValues {
		b.Run(bb.name, func(b *testing.B) {
			l := newLink(b)
			codecs := []*wire.Codec{l.codec(reflect.TypeOf(bb.v))}
			vals, dst := []any{bb.v}, make([]any, 0, 1)
			b.ReportAllocs()
			for b.Loop() {
				body, err := wire.Prepare(codecs, vals)
				if err == nil {
					err = l.enc.Finish(body)
				}
				if err == nil {
					dst, err = l.dec.Values(wire.Header{Stream: l.enc.Stream()}, body.Bytes(), true, codecs, dst[:0])
				}
				if d, ok := dst[0].(*wire.Deferred); ok && err == nil {
					_, err = d.Decode()
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkGob is the plain way: one gob stream of values in interfaces.
func BenchmarkGob(b *testing.B) {
	registry(b)
	for _, bb := range benchValues {
		b.Run(bb.name, func(b *testing.B) {
			var buf bytes.Buffer
			enc, dec := gob.NewEncoder(&buf), gob.NewDecoder(&buf)
			vals := []any{bb.v}
			if _, ok := bb.v.(stats); ok { // gob wants the address of some fields
				vals = []any{ptr(bb.v.(stats))}
			}
			b.ReportAllocs()
			for b.Loop() {
				var got []any
				if err := enc.Encode(vals); err != nil {
					b.Fatal(err)
				}
				if err := dec.Decode(&got); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkFrames(b *testing.B) {
	frame := wire.AppendFrame(nil, wire.Header{Kind: wire.KindRequest, Request: 7}, []byte("0123456789"))
	b.Run("append", func(b *testing.B) {
		buf := make([]byte, 0, 100)
		b.ReportAllocs()
		for b.Loop() {
			buf = wire.AppendFrame(buf[:0], wire.Header{Kind: wire.KindRequest, Request: 7}, frame[:10])
		}
	})
	b.Run("read", func(b *testing.B) {
		r := wire.NewReader(&endless{frame: frame}, 0)
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := r.Next(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
