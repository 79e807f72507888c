package wire

import (
	"encoding/gob"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Registry knows types by name, for values inside interfaces, and keeps what was found out about types. It is safe
// for concurrent use. The zero value is ready, but [NewRegistry] makes gob know the common types as well.
type Registry struct {
	shapes shapes
	codecs sync.Map // reflect.Type -> *Codec

	mu    sync.RWMutex
	types map[string]reflect.Type // full name -> named type
	gobs  map[string]reflect.Type // names that the program gave types when it registered them with gob itself
}

// NewRegistry returns a Registry that knows the basic types, time.Time, time.Duration, and the other types of the
// standard library that PROTOCOL.md names, with slices, arrays, maps and pointers of them.
func NewRegistry() *Registry {
	// These names are gob's own, so that a program that registers the same types itself finds nothing changed.
	r := &Registry{}
	for _, v := range []any{
		[]any(nil), map[string]any(nil), map[string]string(nil), time.Time{}, time.Duration(0),
	} {
		_ = r.registerGob(reflect.TypeOf(v), func() { gob.Register(v) }) // no other type has these names
	}
	return r
}

// Register makes t known by its full name, with pointers to it. Of an unnamed type (a slice, say) it registers what
// it is made of, and the type itself with gob, for use in fields of interface type. The error is [ErrEncode]: another
// type has the name, or t can never cross. To register a type again is no error.
func (r *Registry) Register(t reflect.Type) error {
	if t == nil {
		return fmt.Errorf("%w: nil is no type to register", ErrEncode)
	}
	for t.Name() == "" && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if sh := r.shapes.of(t); sh.err != nil {
		return sh.err
	}
	if t.Name() == "" {
		if err := r.registerParts(t); err != nil {
			return err
		}
		return r.inGob(t)
	}
	name := typeName(t)
	old, known := r.named(name)
	if !known {
		r.mu.Lock()
		if old, known = r.types[name]; !known {
			if r.types == nil {
				r.types = make(map[string]reflect.Type)
			}
			r.types[name] = t
		}
		r.mu.Unlock()
	}
	if known && old != t {
		return fmt.Errorf("%w: two types have the name %q: %v and %v", ErrEncode, name, describe(old), describe(t))
	}
	return r.inGob(t)
}

// describe tells a type from another of the same name.
func describe(t reflect.Type) string {
	return fmt.Sprintf("%v (%v, %d bytes)", t, t.Kind(), t.Size())
}

func (r *Registry) registerParts(t reflect.Type) error {
	switch t.Kind() {
	case reflect.Map:
		if err := r.Register(t.Key()); err != nil {
			return err
		}
		return r.Register(t.Elem())
	case reflect.Slice, reflect.Array:
		return r.Register(t.Elem())
	case reflect.Interface:
		return nil
	}
	return fmt.Errorf("%w: type %v has no name", ErrEncode, t)
}

// inGob makes gob know t, so that it can stand in an interface inside a gob body. Gob takes one form of a type, T
// or *T, and gives that form back for both. It is *T where only *T has all of the methods.
func (r *Registry) inGob(t reflect.Type) error {
	if t.Kind() == reflect.Interface {
		return nil
	}
	name, value := TypeText(t), reflect.Zero(t)
	if p := reflect.PointerTo(t); p.NumMethod() > t.NumMethod() {
		name, value = "*"+name, reflect.Zero(p)
	}
	return r.registerGob(t, func() { gob.RegisterName(name, value.Interface()) })
}

// registerGob runs a registration of t with gob. Gob panics if the program gave t a name already: that name is then
// taken over. It is known from the panic's text only.
func (r *Registry) registerGob(t reflect.Type, register func()) error {
	err := guard(func() error { register(); return nil })
	if err == nil {
		return nil
	}
	text := err.Error()
	_, names, ok := strings.Cut(text, "registering duplicate names for ")
	if !ok {
		return fmt.Errorf("%w: %w", ErrEncode, err)
	}
	if i := strings.IndexByte(names, '"'); i >= 0 {
		quoted, _ := strconv.QuotedPrefix(names[i:])
		name, _ := strconv.Unquote(quoted)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.gobs == nil {
			r.gobs = make(map[string]reflect.Type)
		}
		r.gobs[name] = t
	}
	return nil
}

// gobType returns the type that has the name in gob.
func (r *Registry) gobType(name string) (reflect.Type, bool) {
	if t, ok := r.TypeOf(name); ok {
		return t, true
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	t, ok := r.gobs[name]
	return t, ok
}

// named looks up a basic or registered name.
func (r *Registry) named(name string) (reflect.Type, bool) {
	if t, ok := basics[name]; ok {
		return t, true
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	t, ok := r.types[name]
	return t, ok
}

// Name returns the name under which values of type t stand in interfaces, and whether all parts of t are known. It
// is [TypeText] of t.
func (r *Registry) Name(t reflect.Type) (string, bool) {
	return TypeText(t), r.knows(t, typeTextNest)
}

func (r *Registry) knows(t reflect.Type, nest int) bool {
	if t == anyType {
		return true
	}
	if t.Name() != "" {
		known, ok := r.named(typeName(t))
		return ok && known == t
	}
	if nest == 0 {
		return false
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return r.knows(t.Elem(), nest-1)
	case reflect.Array:
		return t.Size() <= arrayMax && r.knows(t.Elem(), nest-1)
	case reflect.Map:
		return r.knows(t.Key(), nest-1) && r.knows(t.Elem(), nest-1)
	}
	return false
}
