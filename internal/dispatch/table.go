package dispatch

import (
	"fmt"
	"reflect"
	"strings"
)

// A Table is what a type can do. [TableFor] makes it; after that it never changes and may be used concurrently.
//
// The number of a method is its index in [Table.All]: methods by name, then fields by name. Numbers are the same in
// every process that runs the same program, and mean nothing between different ones.
type Table struct {
	held    reflect.Type // of the bound object: an interface or a pointer
	methods []*Method
	calls   []caller          // by number; nil for the methods of an interface
	numbers map[string]int    // by name; no field has the name of a method
	hidden  map[string]string // methods that exist and cannot be called: why
}

// Type returns the type of a bound object: T itself if it is an interface or a pointer, else *T.
func (t *Table) Type() reflect.Type { return t.held }

// All returns the methods and fields by number. The slice belongs to the table.
func (t *Table) All() []*Method { return t.methods }

// At returns the method or field that has the number, and false if there is none.
func (t *Table) At(num int) (*Method, bool) {
	if num < 0 || num >= len(t.methods) {
		return nil, false
	}
	return t.methods[num], true
}

// Lookup finds a callable method by name. The error is a [*LookupError].
func (t *Table) Lookup(name string) (num int, m *Method, err error) {
	num, ok := t.numbers[name]
	if ok && !t.methods[num].Field {
		return num, t.methods[num], nil
	}
	why := t.hidden[name]
	if ok {
		why = "is a field, which can be read but not called"
	}
	return 0, nil, t.lookupError(name, why, func(m *Method) bool { return !m.Field })
}

// Attr finds a readable attribute by name: a field, or a method without arguments that has a result. The error is a
// [*LookupError].
func (t *Table) Attr(name string) (num int, m *Method, err error) {
	num, ok := t.numbers[name]
	if ok && t.methods[num].readable() {
		return num, t.methods[num], nil
	}
	why := t.hidden[name]
	switch {
	case ok && t.methods[num].Out == nil:
		why = "has no result to read"
	case ok:
		why = "takes arguments, so it can be called but not read"
	}
	return 0, nil, t.lookupError(name, why, (*Method).readable)
}

func (t *Table) lookupError(name, why string, among func(*Method) bool) error {
	e := &LookupError{Type: t.held.String(), Name: name, Why: why}
	if why == "" {
		var names []string
		for _, m := range t.methods {
			if among(m) {
				names = append(names, m.Name)
			}
		}
		e.Near = near(name, names)
	}
	return e
}

// A LookupError says what was asked of a type and why that is not possible. It is [ErrNoMethod].
type LookupError struct {
	Type string   // as the table holds it
	Name string   // what was asked for
	Why  string   // why it cannot be used although it exists; empty if it does not exist
	Near []string // names that may have been meant, the likeliest first
}

func (e *LookupError) Error() string {
	if e.Why != "" {
		return fmt.Sprintf("%v: %s of %s %s", ErrNoMethod, e.Name, e.Type, e.Why)
	}
	text := fmt.Sprintf("%v: %q of %s", ErrNoMethod, e.Name, e.Type)
	if len(e.Near) > 0 {
		text += "; did you mean " + strings.Join(e.Near, " or ") + "?"
	}
	return text
}

// Unwrap returns [ErrNoMethod].
func (e *LookupError) Unwrap() error { return ErrNoMethod }
