package wire

import (
	"fmt"
	"reflect"
)

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
