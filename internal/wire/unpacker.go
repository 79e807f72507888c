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

func (u *unpacker) scalar(v reflect.Value) error {
	switch k := v.Kind(); {
	case k == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		i := u.varint()
		return errors.Join(u.err, setInt(v, i))
	case v.CanUint():
		i := u.uvarint()
		return errors.Join(u.err, setUint(v, i))
	case k == reflect.Float32:
		v.SetFloat(float64(math.Float32frombits(u.uint32())))
	case k == reflect.Float64:
		v.SetFloat(math.Float64frombits(u.uint64()))
	case k == reflect.Complex64:
		v.SetComplex(complex128(u.complex64()))
	default:
		v.SetComplex(u.complex128())
	}
	return u.err
}

func (u *unpacker) numbers(c *Codec, v reflect.Value) error {
	size := scalars[c.typ.Elem().Kind()].size
	n := u.count(size)
	b := u.next(n * size)
	if u.err != nil {
		return u.err
	}
	if c.form == formNumbers {
		v.Set(reflect.MakeSlice(c.typ, n, n))
		return setNumbers(v, b)
	}
	if n != c.typ.Len() {
		return fmt.Errorf("array of %d elements", n)
	}
	return setNumbers(v.Slice(0, n), b)
}

const stringSize = 16 // memory of a string without its bytes, which are counted on the wire

func (u *unpacker) strings(v reflect.Value) error {
	n := u.count(1)
	u.budget.take(int64(n) * stringSize)
	if err := errors.Join(u.err, u.budget.err()); err != nil {
		return err
	}
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	for i := range n {
		v.Index(i).SetString(u.string())
	}
	return u.err
}

func (u *unpacker) list(v reflect.Value) error {
	n := u.count(1)
	u.budget.take(int64(n) * anyOverhead)
	if err := errors.Join(u.err, u.budget.err()); err != nil {
		return err
	}
	list := make([]any, n)
	for i := range list {
		e, err := u.dynamic()
		if err != nil {
			return err
		}
		list[i] = e
	}
	v.Set(reflect.ValueOf(list).Convert(v.Type()))
	return nil
}

func (u *unpacker) dict(v reflect.Value) error {
	n := u.count(2)
	u.budget.take(int64(n) * (stringSize + anyOverhead + mapOverhead))
	if err := errors.Join(u.err, u.budget.err()); err != nil {
		return err
	}
	dict := make(map[string]any, n)
	for range n {
		key := u.string()
		e, err := u.dynamic()
		if err != nil {
			return err
		}
		dict[key] = e
	}
	if len(dict) != n {
		return errors.New("key stands twice")
	}
	v.Set(reflect.ValueOf(dict).Convert(v.Type()))
	return nil
}

// iface reads a dynamic value into an interface.
func (u *unpacker) iface(v reflect.Value) error {
	e, err := u.dynamic()
	if err != nil || e == nil {
		return err
	}
	if rv := reflect.ValueOf(e); rv.Type().AssignableTo(v.Type()) {
		v.Set(rv)
		return nil
	}
	return fmt.Errorf("%T is no %v", e, v.Type())
}

// dynamic reads a value that says its type itself.
func (u *unpacker) dynamic() (any, error) {
	t := u.byte()
	if u.err != nil {
		return nil, u.err
	}
	if v, ok := u.basic(t); ok {
		return v, u.err
	}
	if t == tagTyped {
		return u.typed()
	}
	typ := naturalType(t)
	if typ == nil {
		return nil, fmt.Errorf("%w: tag %#02x", errUnknown, t)
	}
	c, err := u.reg.codec(typ)
	if err != nil {
		return nil, err
	}
	u.budget.take(int64(typ.Size()))
	v := reflect.New(typ).Elem()
	if err := u.tagged(c, v); err != nil {
		return nil, err
	}
	return v.Interface(), u.budget.err()
}

// naturalType returns the type of values that need no type text before their tag.
func naturalType(t tag) reflect.Type {
	switch t {
	case tagStrings:
		return reflect.TypeFor[[]string]()
	case tagList:
		return reflect.TypeFor[[]any]()
	case tagDict:
		return reflect.TypeFor[map[string]any]()
	}
	if k := kindOfTag[t]; k != reflect.Invalid {
		return scalars[k].typ
	}
	if k := kindOfTag[t&^tagNumbers]; t&tagNumbers != 0 && k != reflect.Invalid && numbersTag(k) == t {
		return reflect.SliceOf(scalars[k].typ)
	}
	return nil
}

// typed reads a type text and a value of that type.
func (u *unpacker) typed() (any, error) {
	text := u.bytes()
	if u.err != nil {
		return nil, u.err
	}
	t, ok := u.reg.TypeOf(string(text))
	if !ok {
		return nil, fmt.Errorf("%w: %.200q", errUnknown, text)
	}
	c, err := u.reg.codec(t)
	if err != nil {
		return nil, err
	}
	u.budget.take(int64(t.Size()) + anyOverhead)
	if err := u.budget.err(); err != nil {
		return nil, err
	}
	v := reflect.New(t).Elem()
	shared := u.shared
	u.shared = nil // what stands in an interface never is on the shared stream
	err = u.nested(func() error { return u.into(c, v) })
	u.shared = shared
	if err != nil {
		return nil, err
	}
	return v.Interface(), nil
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
