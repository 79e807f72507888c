package dispatch

import (
	"context"
	"fmt"
	"reflect"
	"unsafe"
)

// A Bound is an object together with the table of its type. Whether its methods may be called concurrently is up to the
// object.
type Bound struct {
	object  any            // as the table holds it
	value   reflect.Value  // the same
	pointer unsafe.Pointer // the same, of an object that is held by pointer
	calls   []caller
	table   *Table
}

// A caller calls one method of an object, or reads a field. The arguments are those that Match returned.
type caller func(b *Bound, ctx context.Context, args []any) (any, error)

// Bind joins the table with an object of its type. An object of a type that is held by pointer may also be given as a
// value, which is copied then. Bind panics if obj is of another type, or nil.
func (t *Table) Bind(obj any) *Bound {
	value := reflect.ValueOf(obj)
	switch {
	case !value.IsValid():
		panic(fmt.Sprintf("dispatch: Bind of nil to the table of %v", t.held))
	case t.held.Kind() == reflect.Interface && value.Type().Implements(t.held):
		b := &Bound{table: t, object: obj, value: value, calls: make([]caller, len(t.methods))}
		for i, m := range t.methods {
			b.calls[i] = attached(m, value.MethodByName(m.Name))
		}
		return b
	case value.Type() == t.held:
	case t.held.Kind() == reflect.Pointer && value.Type() == t.held.Elem():
		held := reflect.New(value.Type())
		held.Elem().Set(value)
		obj, value = held.Interface(), held
	default:
		panic(fmt.Sprintf("dispatch: Bind of %T to the table of %v", obj, t.held))
	}
	return &Bound{table: t, object: obj, value: value, pointer: value.UnsafePointer(), calls: t.calls}
}

// Object returns the object as it is held: a pointer, unless the table is that of an interface.
func (b *Bound) Object() any { return b.object }

// Call calls the method or reads the field that has the number. The arguments are those that [Match] returned for it;
// ctx is passed to methods that take one. A method without a result returns nil. Call blocks as long as the method does
// and does not recover its panics. An unknown number is [ErrNoMethod].
func (b *Bound) Call(num int, ctx context.Context, args []any) (any, error) { //nolint:revive // num is the name of what is called, ctx and args are what it gets
	if num < 0 || num >= len(b.calls) {
		return nil, fmt.Errorf("%w: number %d of %v", ErrNoMethod, num, b.table.held)
	}
	return b.calls[num](b, ctx, args)
}
