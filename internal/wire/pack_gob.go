package wire

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"reflect"
)

var errLoop = errors.New("value of a type that can contain itself is too large")

// gob appends a value that only gob can carry, or leaves its place to the shared stream.
func (p *packer) gob(c *Codec, v reflect.Value) error {
	switch {
	case nilable(v.Kind()) && v.IsNil():
		p.buf = append(p.buf, tagNil)
		return nil
	case nilable(v.Kind()) && v.Len() == 0:
		p.buf = append(p.buf, tagEmpty)
		return nil
	case !nilable(v.Kind()) && v.IsZero():
		p.buf = append(p.buf, tagZero)
		return nil
	}
	if !c.shape.clean() {
		if err := c.reg.shapes.check(v, c.reg); err != nil {
			return err
		}
	}
	if c.shape.pointer && !v.CanAddr() {
		v = addressable(v).Elem()
	}
	if c.class == Stream && !p.own {
		p.pending = append(p.pending, pendingValue{len(p.buf), v, c})
		return nil
	}
	var b bytes.Buffer
	if err := gobEncode(gob.NewEncoder(&b), c, v); err != nil {
		return err
	}
	if err := checkLoop(c, b.Len()); err != nil {
		return err
	}
	if err := p.room(b.Len()); err != nil {
		return err
	}
	p.buf = appendString(append(p.buf, tagGobOwn), b.Bytes())
	return nil
}

// gobEncode encodes v by enc. Where v is addressable, gob gets its address: it needs that for methods with pointer
// receivers.
func gobEncode(enc *gob.Encoder, c *Codec, v reflect.Value) error {
	if c.shape.pointer {
		v = v.Addr()
	}
	if err := guard(func() error { return enc.EncodeValue(v) }); err != nil {
		return fmt.Errorf("%w: %v: %w", ErrEncode, c.typ, err)
	}
	return nil
}

// checkLoop holds the gob bodies of types that can contain themselves to their limit.
func checkLoop(c *Codec, size int) error {
	if c.shape.loops && size > loopMax {
		return fmt.Errorf("%w: %v: %w: %d bytes of gob, limit %d: %w", ErrEncode, c.typ, errLoop, size, loopMax, ErrTooLarge)
	}
	return nil
}
