package wire

import (
	"fmt"
	"reflect"
)

// Deferred is a received value whose decoding runs user code.
type Deferred struct {
	codec *Codec
	reg   *Registry
	b     []byte
	limit int
}

// Type returns the type of the value.
func (d *Deferred) Type() reflect.Type { return d.codec.typ }

// Decode decodes the value. It may block as long as the codec methods of the value do; their panics come back as
// errors. The error is [ErrDecode]. Each call gives a fresh value, but []byte values may share memory.
func (d *Deferred) Decode() (any, error) { return decodeAlone(d.codec, d.reg, d.b, d.limit) }

// Raw is a received value whose type is not known here, in self-contained form.
type Raw struct {
	reg   *Registry
	b     []byte
	limit int
}

// Decode decodes the value as type t. It may run the codec methods of t. The error is [ErrDecode], or [ErrEncode] if
// t is no type that can cross.
func (r *Raw) Decode(t reflect.Type) (any, error) {
	c, err := CodecOf(t, r.reg)
	if err != nil {
		return nil, err
	}
	b := r.b
	if c.form != formDynamic && len(b) > 0 && b[0] == tagTyped {
		in := cursor{b: b, pos: 1}
		if text := in.string(); in.err != nil || text != TypeText(t) {
			return nil, fmt.Errorf("%w: value has type %.200q, not %v", ErrDecode, text, t)
		}
		b = b[in.pos:]
	}
	return decodeAlone(c, r.reg, b, r.limit)
}

// decodeAlone decodes b, which holds one value in self-contained form.
func decodeAlone(c *Codec, reg *Registry, b []byte, limit int) (any, error) {
	u := unpacker{cursor: cursor{b: b}, reg: reg, owned: true, budget: newBudget(limit), limit: limit}
	v, err := u.value(c)
	if err == nil && u.left() > 0 {
		err = fmt.Errorf("%d bytes after the value", u.left())
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %v: %w", ErrDecode, c.typ, err)
	}
	return v, nil
}
