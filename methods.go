package supervisor

import (
	"context"
	"fmt"
	"reflect"

	"github.com/workerlink/supervisor/internal/dispatch"
	"github.com/workerlink/supervisor/internal/wire"
)

// handler is the hook of objects that dispatch by themselves: any method name
// is handed over with its arguments as they came.
type handler interface {
	Handle(ctx context.Context, method string, args []any) (any, error)
}

// methods is what the host knows that an object can do, and how the values of
// each method cross the pipe.
type methods struct {
	table     *dispatch.Table // nil if the object lives in another binary
	handles   bool            // the object is a handler: the rest does not apply
	shows     bool            // the object is a snapshotter
	all       []method
	byName    map[string]int // of a remote object; nil otherwise
	announced wire.Ready     // what a remote object's table was made of
}

// method is one of them.
type method struct {
	*dispatch.Method
	in   []*wire.Codec // of a variadic method without the tail
	tail *wire.Codec   // of each argument of a variadic method's tail
	out  *wire.Codec   // nil: no result, or one of unknown type
	err  error         // why its values cannot cross the pipe
}

// codecs are those of n arguments, of which the variadic ones stand one by one.
func (m *method) codecs(n int) []*wire.Codec {
	if m.tail == nil || n <= len(m.in) {
		return m.in
	}
	all := make([]*wire.Codec, n)
	for i := copy(all, m.in); i < n; i++ {
		all[i] = m.tail
	}
	return all
}

func newMethods(table *dispatch.Table) *methods {
	m := &methods{
		table:   table,
		handles: table.Type().Implements(reflect.TypeFor[handler]()),
		shows:   table.Type().Implements(snapshotterType),
	}
	for _, dm := range table.All() {
		m.all = append(m.all, newMethod(dm))
	}
	return m
}

func newMethod(dm *dispatch.Method) method {
	m := method{Method: dm}
	for i, in := range dm.In {
		tail := dm.Variadic && i == len(dm.In)-1
		if tail {
			in = in.Elem()
		}
		codec, err := wire.CodecOf(in, types)
		if err != nil {
			m.err = fmt.Errorf("parameter %d of %s: %w", i+1, dm.Name, err)
			return m
		}
		if tail {
			m.tail = codec
		} else {
			m.in = append(m.in, codec)
		}
	}
	if dm.Out != nil {
		codec, err := wire.CodecOf(dm.Out, types)
		if err != nil {
			m.err = fmt.Errorf("result of %s: %w", dm.Name, err)
			return m
		}
		m.out = codec
	}
	return m
}

// remoteMethods is the table that a worker of another binary announced. Types
// that this binary does not know stay dynamic; the worker checks them.
func remoteMethods(ready wire.Ready) (*methods, error) {
	m := &methods{handles: ready.Handles, byName: make(map[string]int), announced: ready}
	for i, d := range ready.Methods {
		if d.Variadic && len(d.In) == 0 {
			return nil, fmt.Errorf("%w: the worker's method %q is variadic without parameters", ErrProtocol, d.Name)
		}
		dm := &dispatch.Method{Name: d.Name, Variadic: d.Variadic, Context: d.Context, Field: d.Field}
		for _, text := range d.In {
			t, ok := types.TypeOf(text)
			tail := d.Variadic && len(dm.In) == len(d.In)-1
			switch {
			case ok && tail && t.Kind() != reflect.Slice:
				return nil, fmt.Errorf("%w: the tail of the worker's method %q is a %v", ErrProtocol, d.Name, t)
			case ok:
			case tail:
				t = reflect.TypeFor[[]any]()
			default:
				t = reflect.TypeFor[any]()
			}
			dm.In = append(dm.In, t)
		}
		if t, ok := types.TypeOf(d.Out); ok && d.Out != "" {
			dm.Out = t
		}
		m.all = append(m.all, newMethod(dm))
		m.byName[d.Name] = i
	}
	return m, nil
}

// describe is the table for the handshake.
func (m *methods) describe(version int) wire.Ready {
	ready := wire.Ready{Version: version, Handles: m.handles}
	for _, dm := range m.all {
		d := wire.MethodDesc{Name: dm.Name, Field: dm.Field, Context: dm.Context, Variadic: dm.Variadic}
		for _, in := range dm.In {
			d.In = append(d.In, wire.TypeText(in))
		}
		if dm.Out != nil {
			d.Out = wire.TypeText(dm.Out)
		}
		ready.Methods = append(ready.Methods, d)
	}
	return ready
}

// Numbers of what is in no table.
const (
	methodByName   = -1 // the object's Handle dispatches
	methodSnapshot = -2 // the Snapshot hook
)

// resolve finds the method of r and matches r's arguments to it, so that what
// can be wrong with a request is found before anything is sent.
func (m *methods) resolve(r *Request) error {
	if r.Attr && r.Method == hookSnapshot && (m.shows || m.table == nil) {
		r.method = methodSnapshot
		return nil
	}
	if m.handles && !r.Attr {
		r.method = methodByName
		if len(r.kwargs) > 0 {
			return fmt.Errorf("%w: %s: an object that dispatches by itself takes no keyword arguments", ErrBadArgs, r.Method)
		}
		return nil
	}
	num, err := m.find(r.Method, r.Attr)
	if err != nil {
		return err
	}
	r.method = num
	if r.Attr {
		if len(r.Args) > 0 {
			return fmt.Errorf("%w: attribute %s takes no arguments", ErrBadArgs, r.Method)
		}
		return nil
	}
	if m.table == nil && len(r.kwargs) > 0 {
		return nil // the worker matches them: only it knows the struct
	}
	args, err := dispatch.Match(m.all[num].Method, r.Args, r.kwargs)
	if err != nil {
		return err
	}
	r.Args, r.kwargs = args, nil
	return nil
}

func (m *methods) find(name string, attr bool) (int, error) {
	if m.table == nil {
		num, ok := m.byName[name]
		if ok && m.all[num].Field && !attr {
			ok = false
		}
		if !ok {
			return 0, fmt.Errorf("%w: %q is not in the table that the worker sent", ErrNoSuchMethod, name)
		}
		return num, nil
	}
	if attr {
		num, _, err := m.table.Attr(name)
		return num, err
	}
	num, _, err := m.table.Lookup(name)
	return num, err
}
