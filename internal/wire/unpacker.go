package wire

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"math"
	"reflect"
)

// Outcomes of decoding that are no faults of the bytes.
var (
	errUserCode = errors.New("would run user code")
	errUnknown  = errors.New("type is not known here")
)

// unpacker reads values from a body.
type unpacker struct {
	cursor
	reg    *Registry
	owned  bool // []byte values may alias the body
	reader bool // on a reader: user code must not run
	shared *sharedGob
	budget budget
	limit  int
	depth  int
}

// basic returns the value at hand if it is of one of the most frequent types; the tag is already read.
func (u *unpacker) basic(t tag) (any, bool) {
	switch t {
	case tagNil:
		return nil, true
	case tagFalse:
		return false, true
	case tagTrue:
		return true, true
	case tagInt:
		i := u.varint()
		if int64(int(i)) != i {
			u.fail(fmt.Errorf("%d overflows int", i))
		}
		return int(i), true
	case tagInt64:
		return u.varint(), true
	case tagUint64:
		return u.uvarint(), true
	case tagFloat64:
		return math.Float64frombits(u.uint64()), true
	case tagString:
		return u.string(), true
	case tagBytes:
		return u.blob(), true
	}
	return nil, false
}

// blob reads bytes that may alias the body if that is owned.
func (u *unpacker) blob() []byte {
	b := u.bytes()
	if !u.owned && u.err == nil {
		return append(make([]byte, 0, len(b)), b...)
	}
	return b
}

// value reads a value of the type of c.
func (u *unpacker) value(c *Codec) (any, error) {
	if c.exact && u.left() > 0 {
		t := u.b[u.pos]
		if t == c.tag || t == tagFalse && c.tag == tagTrue {
			u.pos++
			if v, ok := u.basic(t); ok {
				return v, u.err
			}
			u.pos--
		}
	}
	v := reflect.New(c.typ).Elem()
	u.budget.take(int64(c.typ.Size()))
	if err := u.into(c, v); err != nil {
		return nil, err
	}
	return v.Interface(), nil
}

// into reads a value into v, which is the zero value of the type of c and can be set.
func (u *unpacker) into(c *Codec, v reflect.Value) error {
	if c.form == formDynamic {
		return u.iface(v)
	}
	if c.userCode() && u.reader && !u.presence() {
		return errUserCode
	}
	t := u.byte()
	switch {
	case u.err != nil:
		return u.err
	case t == tagNil && nilable(v.Kind()):
		return nil
	case t == tagZero && c.form == formGob && !nilable(v.Kind()):
		return u.budget.err()
	case t == tagEmpty && c.form == formGob && v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(c.typ, 0, 0))
		return nil
	case t == tagEmpty && c.form == formGob && v.Kind() == reflect.Map:
		v.Set(reflect.MakeMap(c.typ))
		return nil
	case c.form == formGob && t == tagGobOwn:
		return u.ownGob(c, v)
	case c.form == formGob && t == tagGobShared && u.shared != nil:
		return u.sharedGob(c, v)
	case t == tagFalse && c.tag == tagTrue:
		return nil
	case t != c.tag || c.tag == 0:
		return fmt.Errorf("tag %#02x", t)
	}
	if err := u.tagged(c, v); err != nil {
		return err
	}
	return u.budget.err()
}

// presence reports whether the next value is one of the tags that say all.
func (u *unpacker) presence() bool {
	return u.left() > 0 && u.b[u.pos] >= tagNil && u.b[u.pos] <= tagEmpty
}

// tagged reads what stands behind the tag of the form.
func (u *unpacker) tagged(c *Codec, v reflect.Value) error {
	switch c.form {
	case formScalar:
		return u.scalar(v)
	case formString:
		v.SetString(u.string())
	case formBytes:
		v.SetBytes(u.blob())
	case formNumbers, formArray:
		return u.numbers(c, v)
	case formStrings:
		return u.strings(v)
	case formList:
		return u.nested(func() error { return u.list(v) })
	case formDict:
		return u.nested(func() error { return u.dict(v) })
	case formPointer:
		u.budget.take(int64(c.elem.typ.Size()))
		if err := u.budget.err(); err != nil {
			return err
		}
		v.Set(reflect.New(c.elem.typ))
		return u.nested(func() error { return u.into(c.elem, v.Elem()) })
	case formMethods:
		b := u.bytes()
		if u.err != nil {
			return u.err
		}
		if err := c.pair.decode(v.Addr(), b); err != nil {
			return fmt.Errorf("%s: %w", pairs[c.pair].decode, err)
		}
	}
	return u.err
}

func (u *unpacker) nested(f func() error) error {
	if u.depth++; u.depth > MaxDepth {
		return fmt.Errorf("nested more than %d deep", MaxDepth)
	}
	err := f()
	u.depth--
	return err
}

// ownGob reads a gob stream that holds one value.
func (u *unpacker) ownGob(c *Codec, v reflect.Value) error {
	section := u.bytes()
	if u.err != nil {
		return u.err
	}
	if c.shape.loops && len(section) > loopMax {
		return fmt.Errorf("%w: %d bytes of gob, limit %d", errLoop, len(section), loopMax)
	}
	s := gobScan{types: newGobTypes(), reg: c.reg, budget: &u.budget}
	if err := s.scan(section, c.typ); err != nil {
		return err
	}
	dec := gob.NewDecoder(bytes.NewReader(section))
	return guard(func() error { return dec.DecodeValue(v.Addr()) })
}

func (u *unpacker) sharedGob(c *Codec, v reflect.Value) error {
	at := u.pos
	section := u.bytes()
	if u.err != nil {
		return u.err
	}
	return u.shared.decode(c, v, section, at, &u.budget)
}
