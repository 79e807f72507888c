package dispatch

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// fill returns args with the last parameter, a struct or a pointer to one, filled from kwargs.
func fill(m *Method, args []any, kwargs map[string]any) ([]any, error) {
	last := len(m.In) - 1
	if m.Variadic || last < 0 {
		return nil, errNoStruct
	}
	want := m.In[last]
	record := want
	if want.Kind() == reflect.Pointer {
		record = want.Elem()
	}
	if record.Kind() != reflect.Struct {
		return nil, errNoStruct
	}
	if len(args) != last && len(args) != last+1 {
		return nil, fmt.Errorf("want %d or %d arguments before the keyword arguments, got %d", last, last+1, len(args))
	}
	target := reflect.New(record) // a copy: what the caller passed is not ours to change
	if len(args) == last+1 {
		given, err := Convert(args[last], want)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", last+1, err)
		}
		switch v := reflect.ValueOf(given); {
		case v.Kind() == reflect.Struct:
			target.Elem().Set(v)
		case !v.IsNil():
			target.Elem().Set(v.Elem())
		}
	}
	if err := setFields(target.Elem(), kwargs); err != nil {
		return nil, err
	}
	filled := append(slices.Clone(args[:last]), nil)
	if want.Kind() == reflect.Pointer {
		filled[last] = target.Convert(want).Interface()
	} else {
		filled[last] = target.Elem().Interface()
	}
	return filled, nil
}

var errNoStruct = errors.New("keyword arguments need a last parameter that is a struct")

// setFields sets the fields of a struct that kwargs name.
func setFields(record reflect.Value, kwargs map[string]any) error {
	fields := slices.DeleteFunc(reflect.VisibleFields(record.Type()), func(f reflect.StructField) bool {
		return !f.IsExported() || throughPointer(record.Type(), f)
	})
	keys := make(map[string]string) // by field
	for _, key := range slices.Sorted(maps.Keys(kwargs)) {
		f, err := fieldFor(key, fields)
		if err != nil {
			return fmt.Errorf("keyword argument %q: %w of %v", key, err, record.Type())
		}
		if other, ok := keys[f.Name]; ok {
			return fmt.Errorf("keyword arguments %q and %q are the same field %s", other, key, f.Name)
		}
		keys[f.Name] = key
		v, err := Convert(kwargs[key], f.Type)
		if err != nil {
			return fmt.Errorf("keyword argument %q: %w", key, err)
		}
		if v == nil {
			record.FieldByIndex(f.Index).SetZero()
		} else {
			record.FieldByIndex(f.Index).Set(reflect.ValueOf(v))
		}
	}
	return nil
}

// fieldFor finds the field of that name, or else the only one that differs just in case.
func fieldFor(key string, fields []reflect.StructField) (reflect.StructField, error) {
	var similar []reflect.StructField
	for _, f := range fields {
		if f.Name == key {
			return f, nil
		}
		if strings.EqualFold(f.Name, key) {
			similar = append(similar, f)
		}
	}
	switch len(similar) {
	case 0:
		return reflect.StructField{}, errors.New("no such field")
	case 1:
		return similar[0], nil
	}
	return reflect.StructField{}, errors.New("more than one such field")
}

// throughPointer reports whether a promoted field belongs to an embedded pointer, which may be nil, or shared with the
// caller.
func throughPointer(record reflect.Type, f reflect.StructField) bool {
	for _, i := range f.Index[:len(f.Index)-1] {
		record = record.Field(i).Type
		if record.Kind() == reflect.Pointer {
			return true
		}
	}
	return false
}
