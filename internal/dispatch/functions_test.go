package dispatch_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/dispatch"
)

func TestTableOfFunctions(t *testing.T) {
	type box struct{ n int }
	table := dispatch.TableOf[*box]([]dispatch.Function{
		{
			Method: dispatch.Method{Name: "b", In: []reflect.Type{reflect.TypeFor[[]int]()}, Variadic: true, Out: reflect.TypeFor[int](), Err: true},
			Call: func(_ context.Context, object any, args []any) (any, error) {
				sum := object.(*box).n
				for _, a := range args {
					sum += a.(int)
				}
				return sum, nil
			},
		},
		{Method: dispatch.Method{Name: "a"}, Call: func(context.Context, any, []any) (any, error) { return nil, nil }},
	})
	num, m, err := table.Lookup("b")
	require.NoError(t, err, "Lookup")
	require.Zero(t, num, "number of the first function, whatever its name")
	args, err := dispatch.Match(m, []any{1, int8(2)}, nil)
	require.NoError(t, err, "Match")
	got, err := table.Bind(&box{n: 4}).Call(num, t.Context(), args)
	require.NoError(t, err, "Call")
	require.Equal(t, 7, got, "result")
	_, _, err = table.Lookup("c")
	require.ErrorIs(t, err, dispatch.ErrNoMethod, "Lookup of a function that is not there")
}
