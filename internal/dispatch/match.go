package dispatch

import (
	"fmt"
	"reflect"
)

// Match makes args fit m: what is assignable to the parameter, and numbers that become one of its type without loss.
// The arguments that it returns have exactly the types of the parameters; those of a variadic method stand one by one.
// Keyword arguments fill the last parameter, which must be a struct or a pointer to one, by the names of its exported
// fields: on top of the argument in its place, which is copied, or of the zero value if that argument is missing.
//
// Args that fit as they are come back themselves, and cost nothing. Errors are [ErrArgs].
func Match(m *Method, args []any, kwargs map[string]any) ([]any, error) {
	if len(kwargs) == 0 && fits(m, args) {
		return args, nil
	}
	if len(kwargs) > 0 {
		filled, err := fill(m, args, kwargs)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrArgs, m.Name, err)
		}
		args = filled
	}
	if !arity(m, len(args)) {
		return nil, fmt.Errorf("%w: %s: want %s, got %d", ErrArgs, m.Name, wantArgs(m), len(args))
	}
	matched := make([]any, len(args))
	for i, arg := range args {
		v, err := Convert(arg, m.param(i))
		if err != nil {
			return nil, fmt.Errorf("%w: %s: argument %d: %w", ErrArgs, m.Name, i+1, err)
		}
		matched[i] = v
	}
	return matched, nil
}

// arity reports whether the method can be called with n arguments.
func arity(m *Method, n int) bool {
	if m.Variadic {
		return n >= len(m.In)-1
	}
	return n == len(m.In)
}

// fits reports whether nothing has to be done.
func fits(m *Method, args []any) bool {
	if !arity(m, len(args)) {
		return false
	}
	for i, arg := range args {
		switch want, got := m.param(i), reflect.TypeOf(arg); {
		case got == want:
		case want.Kind() != reflect.Interface:
			return false
		case got == nil || want.NumMethod() == 0 || got.Implements(want):
		default:
			return false
		}
	}
	return true
}

func wantArgs(m *Method) string {
	n := len(m.In)
	switch {
	case m.Variadic:
		return fmt.Sprintf("at least %d arguments for %v", n-1, m)
	case n == 0:
		return "no arguments"
	case n == 1:
		return fmt.Sprintf("1 argument for %v", m)
	}
	return fmt.Sprintf("%d arguments for %v", n, m)
}
