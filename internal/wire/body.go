package wire

import (
	"reflect"
)

// Packing says how values become the body of a message. The zero value is ready.
type Packing struct {
	Prefix        []byte    // put first, as it is; copied
	Registry      *Registry // for values without a codec; nil is that of the codecs, or knows the basic types
	SelfContained bool      // use no shared stream: the receiver may not know the types
	Limit         int       // bytes of the body; 0 is DefaultLimit
}

// Body is the payload of a message, complete or with places for values that go to the shared gob stream.
type Body struct {
	buf     []byte
	pending []pendingValue
	guess   int // bytes that the pending values will take
	first   [96]byte
}

// Prepare is [Packing.Prepare] of the zero Packing.
func Prepare(codecs []*Codec, vals []any) (*Body, error) { return Packing{}.Prepare(codecs, vals) }

// Prepare encodes vals, each by the codec in its place; where codecs is shorter or has nil, the value is dynamic. It
// runs on the goroutine that owns the values, may run their codec methods, and does everything that does not depend on
// the connection. A body that is then not [Body.Complete] still refers to values: they must not change until
// [Encoder.Finish]. The error is [ErrEncode] or [ErrTooLarge].
func (k Packing) Prepare(codecs []*Codec, vals []any) (*Body, error) {
	b := new(Body)
	p := packer{buf: b.first[:0], reg: k.Registry, limit: bounded(k.Limit), own: k.SelfContained}
	if size := len(k.Prefix) + sizeHint(vals); size > len(b.first) {
		p.buf = make([]byte, 0, size)
	}
	p.buf = append(p.buf, k.Prefix...)
	for i, v := range vals {
		var c *Codec
		if i < len(codecs) {
			c = codecs[i]
		}
		if p.reg == nil && c != nil {
			p.reg = c.reg
		}
		if err := p.value(c, v); err != nil {
			return nil, err
		}
	}
	b.buf, b.pending = p.buf, p.pending
	for i := range b.pending {
		b.guess += guess(b.pending[i].codec, b.pending[i].value)
	}
	return b, nil
}

// sizeHint returns the bytes that large values among vals will take, so that the buffer grows once.
func sizeHint(vals []any) int {
	n := 0
	for _, v := range vals {
		const head = 11 // tag and longest length
		switch v := v.(type) {
		case nil:
		case bool, int, int64, uint64, float64:
			n += head
		case string:
			n += head + len(v)
		case []byte:
			n += head + len(v)
		default:
			n += head
			if rv := reflect.ValueOf(v); rv.Kind() == reflect.Slice && scalar(rv.Type().Elem().Kind()) {
				n += rv.Len() * scalars[rv.Type().Elem().Kind()].size
			}
		}
	}
	return n
}

// Complete reports whether the body needs no [Encoder].
func (b *Body) Complete() bool { return len(b.pending) == 0 }

// Size returns the size of the body in bytes. Before [Encoder.Finish] it is an estimate, on the high side, for
// values that go to the shared gob stream.
func (b *Body) Size() int { return len(b.buf) + b.guess }

// Bytes returns the payload of a complete body; it stays the body's. For others it panics.
func (b *Body) Bytes() []byte {
	if !b.Complete() {
		panic("wire: body is not complete")
	}
	return b.buf
}
