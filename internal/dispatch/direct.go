package dispatch

import (
	"context"
	"fmt"
	"reflect"
	"unsafe"
)

// The adapters below call methods with frequent signatures as the compiler would, some thirty times faster than
// reflect.Value.Call. Each adapter is a type switch over the four forms of a signature: with and without a context, with
// and without an error.
//
// They see every receiver as an unsafe.Pointer. Written with the receiver's type as a type parameter they would be safe,
// but put about five hundred function types into the program for each type that has a table.

// direct returns the adapter for the method, or nil if there is none; fn takes the receiver, a pointer, first.
func direct(m *Method, fn reflect.Value) caller {
	if m.Variadic || len(m.In) > 2 {
		return nil
	}
	erased := eraseReceiver(fn)
	if c := nothing(erased); c != nil {
		return c
	}
	for _, results := range []func(any) caller{
		returns[int], returns[int64], returns[float64], returns[string], returns[[]byte], returns[bool], returns[any],
	} {
		if c := results(erased); c != nil {
			return c
		}
	}
	return nil
}

// eraseReceiver returns a method function as one that takes an unsafe.Pointer instead of its receiver. The two have the
// same calling convention, since the receiver is a pointer, and a func value does not depend on its static type. Who
// calls it must pass a pointer to an object of the receiver's type.
func eraseReceiver(fn reflect.Value) any {
	ft := fn.Type()
	in := []reflect.Type{reflect.TypeFor[unsafe.Pointer]()}
	for i := 1; i < ft.NumIn(); i++ {
		in = append(in, ft.In(i))
	}
	var out []reflect.Type
	for o := range ft.Outs() {
		out = append(out, o)
	}
	variable := reflect.New(ft)
	variable.Elem().Set(fn)
	return reflect.NewAt(reflect.FuncOf(in, out, false), variable.UnsafePointer()).Elem().Interface()
}

func firstOf(fn any, adapters ...func(any) caller) caller {
	for _, adapt := range adapters {
		if c := adapt(fn); c != nil {
			return c
		}
	}
	return nil
}

// arg returns argument i. A nil is the zero value, as Match leaves it for interfaces.
func arg[A any](args []any, i int) A {
	a, ok := args[i].(A)
	if !ok && args[i] != nil {
		panic(fmt.Sprintf("dispatch: argument %d is a %T, which Match did not return", i+1, args[i]))
	}
	return a
}

// nothing adapts methods without a result.
func nothing(fn any) caller {
	switch f := fn.(type) {
	case func(unsafe.Pointer):
		return func(b *Bound, _ context.Context, _ []any) (any, error) { f(b.pointer); return nil, nil }
	case func(unsafe.Pointer) error:
		return func(b *Bound, _ context.Context, _ []any) (any, error) { return nil, f(b.pointer) }
	case func(unsafe.Pointer, context.Context):
		return func(b *Bound, ctx context.Context, _ []any) (any, error) { f(b.pointer, ctx); return nil, nil }
	case func(unsafe.Pointer, context.Context) error:
		return func(b *Bound, ctx context.Context, _ []any) (any, error) { return nil, f(b.pointer, ctx) }
	}
	return firstOf(fn, nothing1[int], nothing1[int64], nothing1[float64], nothing1[string], nothing1[[]byte],
		nothing1[bool], nothing1[any],
		nothing2[int, int], nothing2[float64, float64], nothing2[string, string], nothing2[string, int],
		nothing2[string, []byte], nothing2[string, any])
}

func nothing1[A any](fn any) caller {
	switch f := fn.(type) {
	case func(unsafe.Pointer, A):
		return func(b *Bound, _ context.Context, args []any) (any, error) {
			f(b.pointer, arg[A](args, 0))
			return nil, nil
		}
	case func(unsafe.Pointer, A) error:
		return func(b *Bound, _ context.Context, args []any) (any, error) { return nil, f(b.pointer, arg[A](args, 0)) }
	case func(unsafe.Pointer, context.Context, A):
		return func(b *Bound, ctx context.Context, args []any) (any, error) {
			f(b.pointer, ctx, arg[A](args, 0))
			return nil, nil
		}
	case func(unsafe.Pointer, context.Context, A) error:
		return func(b *Bound, ctx context.Context, args []any) (any, error) {
			return nil, f(b.pointer, ctx, arg[A](args, 0))
		}
	}
	return nil
}

func nothing2[A, B any](fn any) caller {
	switch f := fn.(type) {
	case func(unsafe.Pointer, A, B):
		return func(b *Bound, _ context.Context, args []any) (any, error) {
			f(b.pointer, arg[A](args, 0), arg[B](args, 1))
			return nil, nil
		}
	case func(unsafe.Pointer, A, B) error:
		return func(b *Bound, _ context.Context, args []any) (any, error) {
			return nil, f(b.pointer, arg[A](args, 0), arg[B](args, 1))
		}
	case func(unsafe.Pointer, context.Context, A, B):
		return func(b *Bound, ctx context.Context, args []any) (any, error) {
			f(b.pointer, ctx, arg[A](args, 0), arg[B](args, 1))
			return nil, nil
		}
	case func(unsafe.Pointer, context.Context, A, B) error:
		return func(b *Bound, ctx context.Context, args []any) (any, error) {
			return nil, f(b.pointer, ctx, arg[A](args, 0), arg[B](args, 1))
		}
	}
	return nil
}
