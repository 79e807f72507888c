package wire

import (
	"errors"
	"fmt"
	"math"
	"reflect"
)

const stringSize = 16 // memory of a string without its bytes, which are counted on the wire

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
