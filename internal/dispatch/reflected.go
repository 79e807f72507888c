package dispatch

import (
	"context"
	"fmt"
	"reflect"
)

// reflected calls a method whose signature has no direct adapter; fn takes the receiver first.
func reflected(m *Method, fn reflect.Value) caller {
	return func(b *Bound, ctx context.Context, args []any) (any, error) {
		in := append(make([]reflect.Value, 0, len(args)+2), b.value)
		return m.results(fn.Call(m.values(in, ctx, args)))
	}
}

// attached calls a method value of one object.
func attached(m *Method, fn reflect.Value) caller {
	return func(_ *Bound, ctx context.Context, args []any) (any, error) {
		in := make([]reflect.Value, 0, len(args)+1)
		return m.results(fn.Call(m.values(in, ctx, args)))
	}
}

// values appends the context, if the method takes it, and the arguments.
func (m *Method) values(in []reflect.Value, ctx context.Context, args []any) []reflect.Value { //nolint:revive // in is what is appended to
	if m.Context {
		in = append(in, reflect.ValueOf(ctx))
	}
	for i, arg := range args {
		if arg == nil { // of an interface type, which reflect cannot see
			in = append(in, reflect.Zero(m.param(i)))
		} else {
			in = append(in, reflect.ValueOf(arg))
		}
	}
	return in
}

// results takes what the method returned apart.
func (m *Method) results(out []reflect.Value) (result any, err error) {
	if m.Out != nil {
		result = out[0].Interface()
	}
	if m.Err {
		err, _ = out[len(out)-1].Interface().(error)
	}
	return result, err
}

// field reads a field. A nil pointer on the way to it is an error.
func field(f reflect.StructField) caller {
	return func(b *Bound, _ context.Context, _ []any) (any, error) {
		if b.pointer == nil {
			return nil, fmt.Errorf("supervisor: field %s of a nil %v", f.Name, b.table.held)
		}
		v, err := b.value.Elem().FieldByIndexErr(f.Index)
		if err != nil {
			return nil, fmt.Errorf("supervisor: field %s of %v: an embedded pointer is nil", f.Name, b.table.held)
		}
		return v.Interface(), nil
	}
}
