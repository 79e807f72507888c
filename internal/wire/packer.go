package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"errors"
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

func (p *packer) scalar(c *Codec, v reflect.Value) {
	switch k := v.Kind(); {
	case k == reflect.Bool:
		p.basic(v.Bool(), false)
	case v.CanInt():
		p.buf = binary.AppendVarint(append(p.buf, c.tag), v.Int())
	case v.CanUint():
		p.buf = binary.AppendUvarint(append(p.buf, c.tag), v.Uint())
	case k == reflect.Float32:
		p.buf = binary.LittleEndian.AppendUint32(append(p.buf, c.tag), math.Float32bits(float32(v.Float())))
	case k == reflect.Float64:
		p.buf = binary.LittleEndian.AppendUint64(append(p.buf, c.tag), math.Float64bits(v.Float()))
	case k == reflect.Complex64:
		p.buf = appendComplex64(append(p.buf, c.tag), complex64(v.Complex()))
	default:
		p.buf = appendComplex128(append(p.buf, c.tag), v.Complex())
	}
}

// elements appends a slice or map of an inline form that is not nil.
func (p *packer) elements(c *Codec, v reflect.Value) error {
	n := v.Len()
	p.buf = binary.AppendUvarint(append(p.buf, c.tag), uint64(n))
	switch c.form {
	case formBytes:
		if err := p.room(n); err != nil {
			return err
		}
		p.buf = append(p.buf, v.Bytes()...)
		return nil
	case formNumbers:
		if err := p.room(n * scalars[v.Type().Elem().Kind()].size); err != nil {
			return err
		}
		p.buf = appendNumbers(p.buf, v)
		return nil
	case formStrings:
		for i := range n {
			p.buf = appendString(p.buf, v.Index(i).String())
		}
		return p.room(0)
	}
	return p.nested(func() error {
		if c.form == formDict {
			return p.dict(v)
		}
		for i := range n {
			if err := p.dynamic(v.Index(i).Interface()); err != nil {
				return err
			}
		}
		return nil
	})
}

func (p *packer) dict(v reflect.Value) error {
	for it := v.MapRange(); it.Next(); {
		p.buf = appendString(p.buf, it.Key().String())
		if err := p.dynamic(it.Value().Interface()); err != nil {
			return err
		}
	}
	return nil
}

// nested runs f one level deeper.
func (p *packer) nested(f func() error) error {
	if p.depth++; p.depth > MaxDepth {
		return fmt.Errorf("%w: value is nested more than %d deep or contains itself", ErrEncode, MaxDepth)
	}
	defer func() { p.depth-- }()
	return f()
}

func (p *packer) array(c *Codec, v reflect.Value) error {
	if !v.CanAddr() {
		v = addressable(v).Elem()
	}
	p.buf = binary.AppendUvarint(append(p.buf, c.tag), uint64(v.Len()))
	p.buf = appendNumbers(p.buf, v.Slice(0, v.Len()))
	return p.room(0)
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
		return fmt.Errorf("%w: type %v in an interface is not registered", ErrEncode, t)
	}
	p.buf = appendString(append(p.buf, tagTyped), text)
	outer := p.own
	p.own = true // a receiver may have to keep it, undecoded
	defer func() { p.own = outer }()
	return p.nested(func() error { return p.put(c, rv) })
}

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

var errLoop = errors.New("value of a type that can contain itself is too large")

// checkLoop holds the gob bodies of types that can contain themselves to their limit.
func checkLoop(c *Codec, size int) error {
	if c.shape.loops && size > loopMax {
		return fmt.Errorf("%w: %v: %w: %d bytes of gob, limit %d: %w", ErrEncode, c.typ, errLoop, size, loopMax, ErrTooLarge)
	}
	return nil
}
