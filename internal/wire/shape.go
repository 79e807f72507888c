package wire

import (
	"fmt"
	"reflect"
	"sync"
)

// shape is what can be said of all values of a type.
type shape struct {
	err     error // values can never cross
	dynamic bool  // an interface is reachable
	methods bool  // a user's codec methods are reachable
	pointer bool  // codec methods with a pointer receiver are reachable: gob needs addressable values
	hidden  bool  // fields that gob drops are reachable
	loops   bool  // the type can contain itself
	flat    bool  // values lie in one piece: no strings, slices, maps, pointers
}

// clean reports whether a value needs no look before gob may encode it.
func (s *shape) clean() bool { return !s.dynamic && !s.hidden && !s.loops }

// shapes keeps the shapes of types. The zero value is ready; it is safe for concurrent use.
type shapes struct{ m sync.Map }

func (s *shapes) of(t reflect.Type) *shape {
	if sh, ok := s.m.Load(t); ok {
		return sh.(*shape)
	}
	w := shaper{open: map[reflect.Type]bool{}, seen: map[reflect.Type]bool{}}
	w.flat = true
	w.visit(t, t.String(), true)
	sh, _ := s.m.LoadOrStore(t, &w.shape)
	return sh.(*shape)
}

// shaper walks through the types that are reachable from one.
type shaper struct {
	shape
	open, seen map[reflect.Type]bool
}

func (w *shaper) refuse(path, why string) {
	if w.err == nil {
		w.err = fmt.Errorf("%w: %s %s", ErrEncode, path, why)
	}
}

func (w *shaper) visit(t reflect.Type, path string, top bool) {
	if w.open[t] {
		w.loops = true
		return
	}
	if w.seen[t] || w.err != nil {
		return
	}
	w.open[t], w.seen[t] = true, true
	defer delete(w.open, t)
	if t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface {
		p, err := pairOf(t)
		if err != nil {
			w.err = err
			return
		}
		if p != pairNone {
			w.flat = false
			w.methods = w.methods || !trusted[t]
			w.pointer = w.pointer || !t.Implements(pairs[p].encoder)
			return
		}
	}
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.UnsafePointer:
		w.refuse(path, fmt.Sprintf("has type %v, which cannot leave its process", t))
	case reflect.Interface:
		w.flat, w.dynamic = false, true
		if has(t, pairs[pairGob].encoder) || has(t, pairs[pairBinary].encoder) {
			w.refuse(path, fmt.Sprintf("has interface type %v with a codec method", t))
		}
	case reflect.String:
		w.flat = false
	case reflect.Pointer:
		w.flat = false
		if pointerLoop(t) {
			w.refuse(path, fmt.Sprintf("has type %v, which points only to itself", t))
			return
		}
		w.visit(t.Elem(), path, top)
	case reflect.Slice:
		w.flat = false
		w.visit(t.Elem(), path+"[]", false)
	case reflect.Array:
		w.visit(t.Elem(), path+"[]", false)
	case reflect.Map:
		w.flat = false
		w.visit(t.Key(), path+"[key]", false)
		w.visit(t.Elem(), path+"[]", false)
	case reflect.Struct:
		w.fields(t, path, top)
	}
}

func (w *shaper) fields(t reflect.Type, path string, top bool) {
	some := false
	for i := range t.NumField() {
		f := t.Field(i)
		if !sent(&f) {
			w.hidden = w.hidden || f.Type.Size() > 0
			continue
		}
		some = true
		w.visit(f.Type, path+"."+f.Name, false)
	}
	// At the top such a value is the zero value or is refused for what it hides; further inside gob has no form for it.
	if !some && !top && t.NumField() > 0 {
		w.refuse(path, fmt.Sprintf("has type %v without exported fields", t))
	}
}

// sent reports whether gob sends a field: it is exported, and no channel or function or pointer to one.
func sent(f *reflect.StructField) bool {
	t := f.Type
	for range typeTextNest {
		if t.Kind() != reflect.Pointer {
			break
		}
		t = t.Elem()
	}
	return f.IsExported() && t.Kind() != reflect.Chan && t.Kind() != reflect.Func
}

// pointerLoop reports whether t is a pointer that leads to nothing but pointers.
func pointerLoop(t reflect.Type) bool {
	for range typeTextNest {
		if t.Kind() != reflect.Pointer {
			return false
		}
		t = t.Elem()
	}
	return true
}
