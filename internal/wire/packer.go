package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
)

// packer appends values to a body.
type packer struct {
	buf     []byte
	pending []pendingValue
	reg     *Registry
	limit   int
	own     bool // nothing may go to the shared gob stream
	depth   int
}

// pendingValue is a value for the shared gob stream.
type pendingValue struct {
	at    int // its place in the body
	value reflect.Value
	codec *Codec
}

// value appends v, which c codes if it is not nil. The basic types take no reflection.
func (p *packer) value(c *Codec, v any) error {
	dynamic := c == nil || c.form == formDynamic
	if c != nil && dynamic && v != nil && !reflect.TypeOf(v).AssignableTo(c.typ) {
		return fmt.Errorf("%w: %T is no %v", ErrEncode, v, c.typ)
	}
	if dynamic || reflect.TypeOf(v) == c.typ {
		if p.basic(v, dynamic) {
			return p.room(0)
		}
	}
	if dynamic {
		return p.dynamic(v)
	}
	rv := reflect.ValueOf(v)
	switch {
	case !rv.IsValid():
		rv = reflect.Zero(c.typ)
		if !nilable(rv.Kind()) {
			return fmt.Errorf("%w: nil is no %v", ErrEncode, c.typ)
		}
	case rv.Type() == c.typ:
	case rv.Type().AssignableTo(c.typ):
		rv = rv.Convert(c.typ)
	default:
		return fmt.Errorf("%w: %v is no %v", ErrEncode, rv.Type(), c.typ)
	}
	return p.put(c, rv)
}

func nilable(k reflect.Kind) bool {
	return k == reflect.Pointer || k == reflect.Map || k == reflect.Slice
}

// basic appends v if it has one of the most frequent types.
func (p *packer) basic(v any, dynamic bool) bool {
	switch v := v.(type) {
	case nil:
		if !dynamic {
			return false
		}
		p.buf = append(p.buf, tagNil)
	case bool:
		if v {
			p.buf = append(p.buf, tagTrue)
		} else {
			p.buf = append(p.buf, tagFalse)
		}
	case int:
		p.buf = binary.AppendVarint(append(p.buf, tagInt), int64(v))
	case int64:
		p.buf = binary.AppendVarint(append(p.buf, tagInt64), v)
	case uint64:
		p.buf = binary.AppendUvarint(append(p.buf, tagUint64), v)
	case float64:
		p.buf = binary.LittleEndian.AppendUint64(append(p.buf, tagFloat64), math.Float64bits(v))
	case string:
		p.buf = appendString(append(p.buf, tagString), v)
	case []byte:
		if v == nil {
			return false
		}
		p.buf = appendString(append(p.buf, tagBytes), v)
	default:
		return false
	}
	return true
}

// room returns an error if the body has outgrown the limit, or would with n more bytes.
func (p *packer) room(n int) error {
	if size := uint64(len(p.buf)) + uint64(n); size > uint64(p.limit) {
		return fmt.Errorf("%w: %d bytes, limit %d", ErrTooLarge, size, p.limit)
	}
	return nil
}

// put appends v, which has the type of c.
func (p *packer) put(c *Codec, v reflect.Value) error {
	if err := p.room(0); err != nil {
		return err
	}
	switch c.form {
	case formScalar:
		p.scalar(c, v)
		return nil
	case formString:
		p.buf = appendString(append(p.buf, c.tag), v.String())
		return p.room(0)
	case formPointer:
		return p.pointer(c, v)
	case formDynamic:
		if v.IsNil() {
			p.buf = append(p.buf, tagNil)
			return nil
		}
		return p.dynamic(v.Interface())
	case formMethods:
		return p.methods(c, v)
	case formGob:
		return p.gob(c, v)
	case formArray:
		return p.array(c, v)
	}
	if v.IsNil() {
		p.buf = append(p.buf, tagNil)
		return nil
	}
	return p.elements(c, v)
}

// nested runs f one level deeper.
func (p *packer) nested(f func() error) error {
	if p.depth++; p.depth > MaxDepth {
		return fmt.Errorf("%w: value is nested more than %d deep or contains itself", ErrEncode, MaxDepth)
	}
	defer func() { p.depth-- }()
	return f()
}

func (p *packer) pointer(c *Codec, v reflect.Value) error {
	if v.IsNil() {
		p.buf = append(p.buf, tagNil)
		return nil
	}
	p.buf = append(p.buf, tagPointer)
	return p.nested(func() error { return p.put(c.elem, v.Elem()) })
}

func (p *packer) methods(c *Codec, v reflect.Value) error {
	b, err := c.pair.encode(v)
	if err != nil {
		return fmt.Errorf("%w: %s of %v: %w", ErrEncode, pairs[c.pair].encode, c.typ, err)
	}
	if err := p.room(len(b)); err != nil {
		return err
	}
	p.buf = appendString(append(p.buf, tagMethods), b)
	return nil
}

// dynamic appends a value in an interface.
func (p *packer) dynamic(v any) error {
	if p.basic(v, true) {
		return p.room(0)
	}
	if p.reg == nil {
		p.reg = &Registry{}
	}
	rv := reflect.ValueOf(v)
	t := rv.Type()
	c, err := p.reg.codec(t)
	if err != nil {
		return err
	}
	if c.exact && !(nilable(rv.Kind()) && rv.IsNil()) {
		return p.put(c, rv)
	}
	text, known := p.reg.Name(t)
	if !known {
		return fmt.Errorf("%w: type %v in an interface is not registered; see RegisterType", ErrEncode, t)
	}
	p.buf = appendString(append(p.buf, tagTyped), text)
	outer := p.own
	p.own = true // a receiver may have to keep it, undecoded
	defer func() { p.own = outer }()
	return p.nested(func() error { return p.put(c, rv) })
}
