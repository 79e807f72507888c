package executor

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"time"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/dispatch"
	"github.com/workerlink/supervisor/internal/wire"
)

// function is a Func without its types.
type function struct {
	name      string
	method    string // under which a worker has it
	place     string // where it was defined, for messages
	in, out   reflect.Type
	call      func(ctx context.Context, object, in any) (any, error)
	spec      *supervisor.Spec // of the object that it needs; nil if none
	object    int              // the place of that spec among all; -1 if none
	retries   Retries
	killAfter time.Duration
	outCodec  func() (*wire.Codec, error) // how results cross in a journal
}

// functions are the functions of this program. A worker finds its tasks' functions in them, so they have to be global.
var functions = &functionMap{byName: make(map[string]*function)}

type functionMap struct {
	mu     sync.Mutex
	byName map[string]*function
	inOrder
	frozen bool // the table is made
}

// inOrder are the functions and the specs that they need, in the order of their definition, which is the same in every
// process of a program.
type inOrder struct {
	list  []*function
	specs []supervisor.Spec
}

// define names a function; its caller is Define or Method.
func define[In, Out any](name string, spec *supervisor.Spec, call func(context.Context, any, any) (any, error), opts []FuncOption) *function {
	f := &function{
		name: name, method: "run " + name, in: reflect.TypeFor[In](), out: reflect.TypeFor[Out](), call: call, spec: spec, object: -1,
	}
	f.outCodec = sync.OnceValues(func() (*wire.Codec, error) { return codecOf(f.out) })
	if _, file, line, ok := runtime.Caller(2); ok {
		f.place = fmt.Sprintf("%s:%d", file, line)
	}
	for _, opt := range opts {
		if opt == nil {
			panic(fmt.Sprintf("executor: nil option of function %q at %s", name, f.place))
		}
		opt.applyFunc(f)
	}
	if b := f.retries.Backoff; f.retries.Max < 0 || f.killAfter < 0 || b.First < 0 || b.Min < 0 || b.Max < 0 {
		panic(fmt.Sprintf("executor: negative option of function %q at %s", name, f.place))
	}
	functions.add(f)
	return f
}

func (m *functionMap) add(f *function) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f.name == "" {
		panic("executor: empty function name at " + f.place)
	}
	if other, ok := m.byName[f.name]; ok {
		panic(fmt.Sprintf("executor: function %q is defined twice: at %s and at %s", f.name, other.place, f.place))
	}
	if m.frozen {
		panic(fmt.Sprintf("executor: function %q at %s is defined after a worker was started: Define it in a package variable or an init function, so that every worker has it", f.name, f.place))
	}
	m.byName[f.name] = f
	m.list = append(m.list, f)
	if f.spec == nil {
		return
	}
	for i := range m.specs {
		if reflect.DeepEqual(m.specs[i], *f.spec) {
			f.object = i
			return
		}
	}
	f.object = len(m.specs)
	m.specs = append(m.specs, *f.spec)
}

// freeze returns all functions; no further ones are taken.
func (m *functionMap) freeze() inOrder {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.frozen = true
	return m.inOrder
}

// Names of what a worker does beside its functions, whose names begin otherwise.
const (
	methodIdle = "idle" // returns at once, and so says that nothing runs any more
	methodLoad = "load" // makes an object
)

// workerTable is what workers can be asked for.
func workerTable() (*dispatch.Table, error) {
	all := []dispatch.Function{
		{
			Method: dispatch.Method{Name: methodIdle},
			Call:   func(context.Context, any, []any) (any, error) { return nil, nil },
		},
		{
			Method: dispatch.Method{Name: methodLoad, In: []reflect.Type{reflect.TypeFor[int]()}, Context: true, Err: true},
			Call: func(ctx context.Context, object any, args []any) (any, error) {
				return nil, object.(*worker).load(ctx, args[0].(int))
			},
		},
	}
	for _, f := range functions.freeze().list {
		all = append(all, dispatch.Function{
			Method: dispatch.Method{
				Name: f.method, In: []reflect.Type{reflect.SliceOf(f.in)}, Variadic: true,
				Context: true, Out: f.out, Err: true,
			},
			Call: func(ctx context.Context, object any, args []any) (any, error) {
				return object.(*worker).run(ctx, f, args)
			},
		})
	}
	return dispatch.TableOf[*worker](all), nil
}
