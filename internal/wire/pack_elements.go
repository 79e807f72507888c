package wire

import (
	"encoding/binary"
	"math"
	"reflect"
)

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

func (p *packer) array(c *Codec, v reflect.Value) error {
	if !v.CanAddr() {
		v = addressable(v).Elem()
	}
	p.buf = binary.AppendUvarint(append(p.buf, c.tag), uint64(v.Len()))
	p.buf = appendNumbers(p.buf, v.Slice(0, v.Len()))
	return p.room(0)
}
