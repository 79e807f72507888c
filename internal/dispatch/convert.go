package dispatch

import (
	"fmt"
	"math"
	"reflect"
)

// Convert returns v as a value of the type want: as it is if it has that type or implements that interface, converted
// if it is assignable, or a number (named or not) that is the same number in want. A nil becomes the zero value of
// pointers, interfaces, slices and maps. The error says what was wanted and what was there; its identity is up to the
// caller.
func Convert(v any, want reflect.Type) (any, error) {
	if v == nil {
		switch want.Kind() {
		case reflect.Interface:
			return nil, nil
		case reflect.Pointer, reflect.Slice, reflect.Map:
			return reflect.Zero(want).Interface(), nil
		}
		return nil, fmt.Errorf("want %v, got nil", want)
	}
	got := reflect.TypeOf(v)
	if got == want {
		return v, nil
	}
	if got.AssignableTo(want) {
		if want.Kind() == reflect.Interface {
			return v, nil
		}
		return reflect.ValueOf(v).Convert(want).Interface(), nil
	}
	from := reflect.ValueOf(v)
	to := reflect.New(want).Elem()
	switch {
	case !numeric(from) || !numeric(to):
		return nil, fmt.Errorf("want %v, got %v", want, got)
	case !setNumber(to, from):
		return nil, fmt.Errorf("want %v, got %v %v, which does not fit without loss", want, got, bareNumber(from))
	}
	return to.Interface(), nil
}

func numeric(v reflect.Value) bool {
	return v.CanInt() || v.CanUint() || v.CanFloat() || v.CanComplex()
}

// setNumber sets to to the number that from is. It reports whether the two are the same number then.
func setNumber(to, from reflect.Value) bool {
	switch {
	case from.CanInt():
		return setInt(to, from.Int())
	case from.CanUint():
		return setUint(to, from.Uint())
	case from.CanFloat():
		return setFloat(to, from.Float())
	}
	return setComplex(to, from.Complex())
}

func setInt(to reflect.Value, n int64) bool {
	switch {
	case to.CanInt():
		to.SetInt(n)
		return to.Int() == n
	case to.CanUint():
		return n >= 0 && setUint(to, uint64(n))
	}
	f := float64(n)
	// The largest integers round up to 2⁶³, which is no int64: converting it back would be undefined.
	return f < 1<<63 && int64(f) == n && setFloat(to, f)
}

func setUint(to reflect.Value, n uint64) bool {
	switch {
	case to.CanUint():
		to.SetUint(n)
		return to.Uint() == n
	case to.CanInt():
		return n <= math.MaxInt64 && setInt(to, int64(n))
	}
	f := float64(n)
	return f < 1<<64 && uint64(f) == n && setFloat(to, f)
}

func setFloat(to reflect.Value, f float64) bool {
	switch {
	case to.CanFloat():
		to.SetFloat(f)
		return to.Float() == f || math.IsNaN(f)
	case to.CanComplex():
		return setComplex(to, complex(f, 0))
	case f != math.Trunc(f): // not a whole number; neither is NaN
		return false
	case to.CanInt():
		return f >= -1<<63 && f < 1<<63 && setInt(to, int64(f))
	}
	return f >= 0 && f < 1<<64 && setUint(to, uint64(f))
}

func setComplex(to reflect.Value, c complex128) bool {
	if !to.CanComplex() {
		return imag(c) == 0 && setFloat(to, real(c))
	}
	to.SetComplex(c)
	// A NaN is not equal to itself, but no part of it is lost.
	same := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
	return same(real(to.Complex()), real(c)) && same(imag(to.Complex()), imag(c))
}

// bareNumber is a number without the methods of its type, which are user code.
func bareNumber(v reflect.Value) any {
	switch {
	case v.CanInt():
		return v.Int()
	case v.CanUint():
		return v.Uint()
	case v.CanFloat():
		return v.Float()
	default:
		return v.Complex()
	}
}
