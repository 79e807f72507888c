package dispatch

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
)

// TableFor makes the table of T. It fails for the types that can have neither methods nor fields: pointers to pointers
// and to interfaces, and named pointer types.
func TableFor[T any]() (*Table, error) { return tableOf(reflect.TypeFor[T]()) }

func tableOf(t reflect.Type) (*Table, error) {
	table := &Table{held: t, numbers: make(map[string]int), hidden: make(map[string]string)}
	switch {
	case t.Kind() == reflect.Interface:
		table.addInterface()
		return table, nil
	case t.Kind() != reflect.Pointer:
		table.held = reflect.PointerTo(t)
	case t.Name() != "" || t.Elem().Kind() == reflect.Pointer || t.Elem().Kind() == reflect.Interface:
		return nil, fmt.Errorf("supervisor: type %v can have no methods", t)
	}
	table.addMethods()
	if table.held.Elem().Kind() == reflect.Struct {
		table.addFields()
	}
	return table, nil
}

func (t *Table) add(m *Method, c caller) {
	t.numbers[m.Name] = len(t.methods)
	t.methods = append(t.methods, m)
	t.calls = append(t.calls, c)
}

// addInterface adds the methods of an interface. They have no code yet: Bind finds that.
func (t *Table) addInterface() {
	for rm := range t.held.Methods() {
		if !rm.IsExported() {
			continue
		}
		if m, why := methodOf(rm.Name, rm.Type, 0); why != "" {
			t.hidden[rm.Name] = why
		} else {
			t.add(m, nil)
		}
	}
}

// addMethods adds the declared methods of a pointer type, which are those of the type that it points to as well.
func (t *Table) addMethods() {
	base := t.held.Elem()
	for rm := range t.held.Methods() {
		if why := special(rm.Name); why != "" {
			t.hidden[rm.Name] = why
			continue
		}
		// The pointer's entry for a method with a value receiver is generated as well: ask for the value's own.
		value, ok := base.MethodByName(rm.Name)
		if own := declared(rm) || ok && declared(value); !own {
			t.hidden[rm.Name] = "is promoted from an embedded field: only methods of the type itself can be called"
			continue
		}
		m, why := methodOf(rm.Name, rm.Type, 1)
		if why != "" {
			t.hidden[rm.Name] = why
			continue
		}
		c := direct(m, rm.Func)
		if c == nil {
			c = reflected(m, rm.Func)
		}
		t.add(m, c)
	}
}

// addFields adds the exported fields of the struct that the held type points to, as a selector would find them.
func (t *Table) addFields() {
	fields := slices.DeleteFunc(reflect.VisibleFields(t.held.Elem()), func(f reflect.StructField) bool {
		_, method := t.held.MethodByName(f.Name) // a method that lies less deep; none can lie as deep
		return !f.IsExported() || method
	})
	slices.SortFunc(fields, func(a, b reflect.StructField) int { return strings.Compare(a.Name, b.Name) })
	for _, f := range fields {
		t.add(&Method{Name: f.Name, Out: f.Type, Field: true}, field(f))
	}
}

// methodOf describes a function type whose first skip parameters are the receiver, or says why it is not callable.
func methodOf(name string, ft reflect.Type, skip int) (m *Method, why string) {
	m = &Method{Name: name, Variadic: ft.IsVariadic()}
	for i := skip; i < ft.NumIn(); i++ {
		if in := ft.In(i); i == skip && in == contextType {
			m.Context = true
		} else {
			m.In = append(m.In, in)
		}
	}
	results := ft.NumOut()
	if results > 0 && ft.Out(results-1) == errorType {
		m.Err = true
		results--
	}
	switch {
	case results == 1 && ft.Out(0) == errorType:
		return nil, "returns two errors"
	case results == 1:
		m.Out = ft.Out(0)
	case results > 1 && ft.NumOut() == 2:
		return nil, "returns two results, of which the second is not an error"
	case results > 1:
		return nil, fmt.Sprintf("returns %d results: one and an error is the most", ft.NumOut())
	}
	return m, ""
}

// special says why a name that has a meaning of its own is not callable; it returns "" for all others.
func special(name string) string {
	switch name {
	case "Handle", "Serve", "Close", "Health", "Snapshot", "EncodeShared":
		return "is a hook, which is called for you"
	case "String", "GoString", "Error", "Format":
		return "describes the object, and cannot be called"
	}
	for _, prefix := range []string{"Marshal", "Unmarshal", "Gob"} {
		// MarshalJSON is meant, Marshalling is not.
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			if r, _ := utf8.DecodeRuneInString(rest); !unicode.IsLower(r) {
				return "encodes the object, and cannot be called"
			}
		}
	}
	return ""
}
