// Package dispatch knows what the objects of a type can do and calls them by number.
//
// [TableFor] lists the callable methods and readable fields of a type. [Match] makes the arguments of a request fit one
// of them. [Table.Bind] joins the table with an object, and [Bound.Call] calls it. The work is done when the table is
// built: a method with a frequent signature is then one indirect call away, others go through reflection.
//
// # What is callable
//
// Of an interface type: exactly its methods. Of any other type T: the exported methods declared for T or *T, not those
// promoted from embedded fields, and neither the well-known ones that others call ([fmt.Stringer], error, fmt.Formatter,
// Marshal, Unmarshal and Gob methods) nor the hooks of the library. A method may take a leading [context.Context], then
// any arguments, and returns nothing, a result, an error, or a result and an error.
//
// # What is readable
//
// The exported fields of the struct that T is or points to, with those that embedding gives it, and the callable methods
// without arguments that have a result.
package dispatch

import (
	"errors"
	"reflect"
	"strings"
)

var (
	// ErrNoMethod is what every [LookupError] is.
	ErrNoMethod = errors.New("supervisor: no such method")
	// ErrArgs says that arguments do not fit a method.
	ErrArgs = errors.New("supervisor: bad arguments")
)

// A Method is one callable method, or one readable field. It is only read once it is made. Methods that a table has not
// made, because their type lives in another program, serve for [Match].
type Method struct {
	Name     string
	In       []reflect.Type // parameters without the context; the last one is a slice if Variadic
	Out      reflect.Type   // the result; nil if there is none
	Variadic bool           // the last parameter stands for any number of arguments
	Context  bool           // the method takes a leading context
	Err      bool           // the last result is an error, which Out does not show
	Field    bool           // a field of type Out: no parameters, read only
}

// String returns the method as it is declared, or the name and type of a field.
func (m *Method) String() string {
	if m.Field {
		return m.Name + " " + m.Out.String()
	}
	var in, out []string
	if m.Context {
		in = append(in, contextType.String())
	}
	for i, t := range m.In {
		if m.Variadic && i == len(m.In)-1 {
			in = append(in, "..."+t.Elem().String())
		} else {
			in = append(in, t.String())
		}
	}
	if m.Out != nil {
		out = append(out, m.Out.String())
	}
	if m.Err {
		out = append(out, "error")
	}
	text := m.Name + "(" + strings.Join(in, ", ") + ")"
	switch len(out) {
	case 0:
		return text
	case 1:
		return text + " " + out[0]
	}
	return text + " (" + strings.Join(out, ", ") + ")"
}

// param is the type that argument i must have.
func (m *Method) param(i int) reflect.Type {
	if last := len(m.In) - 1; m.Variadic && i >= last {
		return m.In[last].Elem()
	}
	return m.In[i]
}

// readable reports whether the method can be read as an attribute.
func (m *Method) readable() bool { return m.Field || len(m.In) == 0 && m.Out != nil }
