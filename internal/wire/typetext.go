package wire

import (
	"reflect"
	"strconv"
	"strings"
	"time"
)

const (
	typeTextMax  = 4096    // bytes of a type text from the wire
	typeTextNest = 64      // composites around a name
	arrayMax     = 1 << 30 // bytes of an array type made from a text
)

var (
	anyType   = reflect.TypeFor[any]()
	errorType = reflect.TypeFor[error]()

	// basics are the types that every registry knows by name.
	basics = basicTypes()
)

func basicTypes() map[string]reflect.Type {
	m := map[string]reflect.Type{
		"any": anyType, "interface {}": anyType, "error": errorType,
		"byte": reflect.TypeFor[uint8](), "rune": reflect.TypeFor[int32](),
		"time.Duration": reflect.TypeFor[time.Duration](),
	}
	for _, t := range []reflect.Type{
		reflect.TypeFor[bool](), reflect.TypeFor[string](),
		reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[int16](), reflect.TypeFor[int32](), reflect.TypeFor[int64](),
		reflect.TypeFor[uint](), reflect.TypeFor[uint8](), reflect.TypeFor[uint16](), reflect.TypeFor[uint32](), reflect.TypeFor[uint64](),
		reflect.TypeFor[uintptr](), reflect.TypeFor[float32](), reflect.TypeFor[float64](),
		reflect.TypeFor[complex64](), reflect.TypeFor[complex128](),
	} {
		m[t.Name()] = t
	}
	for t := range trusted {
		m[typeName(t)] = t
	}
	return m
}

// TypeText returns the text that stands for t in method tables and before dynamic values: names with their whole
// import path, and Go's notation for pointers, slices, arrays and maps around them. Equal texts mean equal types in
// one program, except for types declared inside functions and for what PROTOCOL.md calls unknown to everybody.
func TypeText(t reflect.Type) string {
	if t == nil {
		return "nil"
	}
	switch {
	case t.Name() != "":
		return typeName(t)
	case t == anyType:
		return "any"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + TypeText(t.Elem())
	case reflect.Slice:
		return "[]" + TypeText(t.Elem())
	case reflect.Array:
		return "[" + strconv.Itoa(t.Len()) + "]" + TypeText(t.Elem())
	case reflect.Map:
		return "map[" + TypeText(t.Key()) + "]" + TypeText(t.Elem())
	}
	return t.String()
}

// typeName returns the name of a named type.
func typeName(t reflect.Type) string {
	if t.PkgPath() == "" {
		return t.Name()
	}
	return t.PkgPath() + "." + t.Name()
}

// TypeOf returns the type that a text made by [TypeText] stands for. All names in it must be registered or basic.
func (r *Registry) TypeOf(text string) (reflect.Type, bool) {
	if len(text) > typeTextMax {
		return nil, false
	}
	return r.parseType(text, typeTextNest)
}

func (r *Registry) parseType(text string, nest int) (reflect.Type, bool) {
	if t, ok := r.named(text); ok {
		return t, true
	}
	if nest == 0 {
		return nil, false
	}
	if rest, ok := strings.CutPrefix(text, "*"); ok {
		if t, ok := r.parseType(rest, nest-1); ok {
			return reflect.PointerTo(t), true
		}
		return nil, false
	}
	if rest, ok := strings.CutPrefix(text, "[]"); ok {
		if t, ok := r.parseType(rest, nest-1); ok {
			return reflect.SliceOf(t), true
		}
		return nil, false
	}
	if rest, ok := strings.CutPrefix(text, "map["); ok {
		return r.parseMap(rest, nest-1)
	}
	if rest, ok := strings.CutPrefix(text, "["); ok {
		return r.parseArray(rest, nest-1)
	}
	return nil, false
}

func (r *Registry) parseArray(text string, nest int) (reflect.Type, bool) {
	size, rest, ok := strings.Cut(text, "]")
	if !ok {
		return nil, false
	}
	n, err := strconv.Atoi(size)
	if err != nil || n < 0 || strconv.Itoa(n) != size {
		return nil, false
	}
	t, ok := r.parseType(rest, nest)
	if !ok || t.Size() > 0 && uintptr(n) > arrayMax/t.Size() {
		return nil, false
	}
	return reflect.ArrayOf(n, t), true
}

// parseMap parses what follows "map[". Names of generic types have brackets, too, so they are counted.
func (r *Registry) parseMap(text string, nest int) (reflect.Type, bool) {
	open := 1
	for i := range len(text) {
		switch text[i] {
		case '[':
			open++
		case ']':
			open--
		}
		if open > 0 {
			continue
		}
		key, ok := r.parseType(text[:i], nest)
		if !ok || !key.Comparable() {
			return nil, false
		}
		elem, ok := r.parseType(text[i+1:], nest)
		if !ok {
			return nil, false
		}
		return reflect.MapOf(key, elem), true
	}
	return nil, false
}
