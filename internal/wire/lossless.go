package wire

import (
	"fmt"
	"reflect"
)

const (
	// MaxDepth is how deep values may be nested where their type does not bound it.
	MaxDepth = 10_000

	// loopMax is the largest gob body of a type that can contain itself, in bytes.
	loopMax = 1 << 20

	// walkMax is the largest number of parts of a value that contains interfaces.
	walkMax = 1 << 24

	pathMax = 256 // bytes of a field's path in an error
)

// CheckLossless returns an error, [ErrEncode], if a copy of v in another process would lack something: a type of v
// can never cross, a field that gob drops (unexported, channel, function) is set, or v is nested more than [MaxDepth]
// deep, as a value that contains itself is. Types with their own codec methods are taken at their word.
func CheckLossless(v any) error {
	if v == nil {
		return nil
	}
	var s shapes
	return s.check(reflect.ValueOf(v), nil)
}

// check looks through v for what makes it impossible to encode it faithfully. If reg is not nil, types in interfaces
// must be known there.
func (s *shapes) check(v reflect.Value, reg *Registry) error {
	sh := s.of(v.Type())
	if sh.err != nil {
		return sh.err
	}
	if sh.clean() {
		return nil
	}
	w := walker{shapes: s, reg: reg, left: walkMax}
	if sh.loops {
		w.left = loopMax // each part takes a byte at least
	}
	w.walk(v, 0)
	if w.bad != "" {
		return fmt.Errorf("%w: %v%s %s", ErrEncode, v.Type(), w.path, w.bad)
	}
	return w.err
}

// walker goes through one value. The first fault ends the walk; path is then built on the way back.
type walker struct {
	shapes *shapes
	reg    *Registry
	left   int // parts that may still be visited
	bad    string
	path   string
	err    error
}

func (w *walker) failed() bool { return w.bad != "" || w.err != nil }

// walk visits v and what it contains.
func (w *walker) walk(v reflect.Value, depth int) {
	sh := w.shapes.of(v.Type())
	if sh.clean() || w.failed() {
		return
	}
	if depth > MaxDepth {
		w.err = fmt.Errorf("%w: value is nested more than %d deep or contains itself", ErrEncode, MaxDepth)
		return
	}
	if w.left--; w.left < 0 {
		w.err = fmt.Errorf("%w: value has too many parts: %w", ErrEncode, ErrTooLarge)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			w.walk(v.Elem(), depth)
		}
	case reflect.Interface:
		w.inside(v, depth)
	case reflect.Struct:
		w.fields(v, depth)
	case reflect.Slice, reflect.Array:
		for i := 0; i < v.Len() && !w.failed(); i++ {
			w.walk(v.Index(i), depth+1)
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next() && !w.failed(); {
			w.walk(it.Key(), depth+1)
			w.walk(it.Value(), depth+1)
		}
	}
}

// inside visits the value in an interface. A pointer there counts as a level: it may lead back here.
func (w *walker) inside(v reflect.Value, depth int) {
	if v.IsNil() {
		return
	}
	v = v.Elem()
	if sh := w.shapes.of(v.Type()); sh.err != nil {
		w.err = sh.err
		return
	}
	if w.reg != nil {
		if _, known := w.reg.Name(v.Type()); !known {
			w.err = fmt.Errorf("%w: type %v in an interface is not registered; see RegisterType", ErrEncode, v.Type())
			return
		}
	}
	if v.Kind() == reflect.Pointer {
		depth++
	}
	w.walk(v, depth)
}

func (w *walker) fields(v reflect.Value, depth int) {
	t := v.Type()
	for i := 0; i < t.NumField() && !w.failed(); i++ {
		f := t.Field(i)
		if sent(&f) {
			w.walk(v.Field(i), depth+1)
		} else if !v.Field(i).IsZero() {
			w.bad = "is set but would be lost"
		}
		if w.bad != "" && len(w.path) < pathMax {
			w.path = "." + f.Name + w.path
		}
	}
}
