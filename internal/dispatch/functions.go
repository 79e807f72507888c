package dispatch

import (
	"context"
	"reflect"
)

// A Function is a callable of an object that is not declared as a method of its type.
type Function struct {
	Method
	// Call gets the object as the table holds it and the arguments as [Match] returned them.
	Call func(ctx context.Context, object any, args []any) (any, error)
}

// TableOf makes a table of functions over objects of T, which is an interface or a pointer. Their numbers are their
// places in the list, so it must be the same in every process. Names are unique.
func TableOf[T any](functions []Function) *Table {
	table := &Table{held: reflect.TypeFor[T](), numbers: make(map[string]int), hidden: make(map[string]string)}
	for i := range functions {
		f := &functions[i]
		table.add(&f.Method, func(b *Bound, ctx context.Context, args []any) (any, error) {
			return f.Call(ctx, b.object, args)
		})
	}
	return table
}
