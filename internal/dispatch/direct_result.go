package dispatch

import (
	"context"
	"unsafe"
)

// returns adapts methods whose result is an R.
func returns[R any](fn any) caller {
	switch f := fn.(type) {
	case func(unsafe.Pointer) R:
		return func(b *Bound, _ context.Context, _ []any) (any, error) { return f(b.pointer), nil }
	case func(unsafe.Pointer) (R, error):
		return func(b *Bound, _ context.Context, _ []any) (any, error) { return f(b.pointer) }
	case func(unsafe.Pointer, context.Context) R:
		return func(b *Bound, ctx context.Context, _ []any) (any, error) { return f(b.pointer, ctx), nil }
	case func(unsafe.Pointer, context.Context) (R, error):
		return func(b *Bound, ctx context.Context, _ []any) (any, error) { return f(b.pointer, ctx) }
	}
	return firstOf(fn, returns1[R, int], returns1[R, int64], returns1[R, float64], returns1[R, string],
		returns1[R, []byte], returns1[R, bool], returns1[R, any],
		returns2[R, int, int], returns2[R, float64, float64], returns2[R, string, string], returns2[R, string, int],
		returns2[R, string, []byte], returns2[R, string, any])
}

func returns1[R, A any](fn any) caller {
	switch f := fn.(type) {
	case func(unsafe.Pointer, A) R:
		return func(b *Bound, _ context.Context, args []any) (any, error) { return f(b.pointer, arg[A](args, 0)), nil }
	case func(unsafe.Pointer, A) (R, error):
		return func(b *Bound, _ context.Context, args []any) (any, error) { return f(b.pointer, arg[A](args, 0)) }
	case func(unsafe.Pointer, context.Context, A) R:
		return func(b *Bound, ctx context.Context, args []any) (any, error) {
			return f(b.pointer, ctx, arg[A](args, 0)), nil
		}
	case func(unsafe.Pointer, context.Context, A) (R, error):
		return func(b *Bound, ctx context.Context, args []any) (any, error) {
			return f(b.pointer, ctx, arg[A](args, 0))
		}
	}
	return nil
}

func returns2[R, A, B any](fn any) caller {
	switch f := fn.(type) {
	case func(unsafe.Pointer, A, B) R:
		return func(b *Bound, _ context.Context, args []any) (any, error) {
			return f(b.pointer, arg[A](args, 0), arg[B](args, 1)), nil
		}
	case func(unsafe.Pointer, A, B) (R, error):
		return func(b *Bound, _ context.Context, args []any) (any, error) {
			return f(b.pointer, arg[A](args, 0), arg[B](args, 1))
		}
	case func(unsafe.Pointer, context.Context, A, B) R:
		return func(b *Bound, ctx context.Context, args []any) (any, error) {
			return f(b.pointer, ctx, arg[A](args, 0), arg[B](args, 1)), nil
		}
	case func(unsafe.Pointer, context.Context, A, B) (R, error):
		return func(b *Bound, ctx context.Context, args []any) (any, error) {
			return f(b.pointer, ctx, arg[A](args, 0), arg[B](args, 1))
		}
	}
	return nil
}
