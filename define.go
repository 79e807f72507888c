package supervisor

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"sync"

	"github.com/workerlink/supervisor/internal/dispatch"
	"github.com/workerlink/supervisor/internal/wire"
)

// A Spec says how to make a child's object: the name of a factory and its
// argument. It is plain data; MarshalBinary and UnmarshalBinary carry it to
// another program that has a factory of this name. Make one with [Define],
// [Factory.With] or [Object].
type Spec struct {
	name    string
	arg     any    // as given; nil if encoded is set or the factory takes none
	encoded []byte // as UnmarshalBinary found it
}

var (
	_ encoding.BinaryMarshaler   = Spec{}
	_ encoding.BinaryUnmarshaler = (*Spec)(nil)
)

// Name returns the factory's name.
func (s Spec) Name() string { return s.name }

// A Factory makes specs of one factory that takes an argument.
type Factory[A any] struct{ name string }

// With returns the spec that passes arg to the factory in each life. A
// goroutine child's factory gets arg itself, a process child's a copy of it as
// it was at Register.
func (f Factory[A]) With(arg A) Spec { return Spec{name: f.name, arg: arg} }

// Name returns the factory's name.
func (f Factory[A]) Name() string { return f.name }

// Define names a factory, so that a worker process, which is this binary run
// again, finds it; call it from a package variable. T's declared exported
// methods are what the child can be asked for. The factory's ctx bounds the
// start only. A name defined twice panics and names both places.
func Define[T any](name string, factory func(ctx context.Context) (T, error)) Spec {
	define[T](name, nil, func(ctx context.Context, _ any) (any, error) { return held(factory(ctx)) })
	return Spec{name: name}
}

// DefineWith is [Define] for a factory with an argument.
func DefineWith[A, T any](name string, factory func(ctx context.Context, arg A) (T, error)) Factory[A] {
	define[T](name, reflect.TypeFor[A](), func(ctx context.Context, arg any) (any, error) {
		a, _ := arg.(A) // nil is the zero value of an interface type
		return held(factory(ctx, a))
	})
	return Factory[A]{name: name}
}

// Declare names a factory that another binary defines, for process children
// with [Proc.Path]. What its object can do is learned from the worker.
func Declare[A any](name string) Factory[A] {
	definitions.add(&definition{name: name, place: caller(2), arg: reflect.TypeFor[A](), declared: true})
	return Factory[A]{name: name}
}

// Object returns the spec of a ready value. A goroutine child shares it by
// reference; a process child gets a copy in each life, for which its type must
// have been named by [RegisterType]. A value that would lose something on the
// way, such as a non-zero unexported field without a codec, is refused at Register.
func Object[T any](v T) Spec {
	defineObject[T]()
	return Spec{name: objectName(reflect.TypeFor[T]()), arg: v}
}

var (
	serviceType = reflect.TypeFor[service]()
	healthyType = reflect.TypeFor[healthy]()
)

// forSpec gives the child the name that its object has for itself, and refuses
// what its object cannot do; of that, defaults are left out.
func (c *childConfig) forSpec(s Spec, opts []ChildOption) error {
	d, err := definitions.find(s.name)
	if err != nil {
		return nil // which is said later
	}
	if c.name == "" && d.object {
		c.name = nameOf(s.arg)
	}
	if c.kind != Goroutine || c.watch.liveness.Every == 0 || d.mayTellHealth(s) {
		return nil
	}
	if given(opts).watch.liveness.Every > 0 {
		return unfit("Liveness without a method Health(ctx) error", "goroutine")
	}
	c.watch.liveness = Liveness{}
	return nil
}

// mayTellHealth is false if the object surely has no Health hook. What a factory
// that returns an interface makes is not known before.
func (d *definition) mayTellHealth(s Spec) bool {
	if d.object && s.encoded == nil && s.arg != nil {
		held := reflect.TypeOf(s.arg)
		if d.arg.Kind() != reflect.Interface && held.Kind() != reflect.Pointer {
			held = reflect.PointerTo(held) // as its table holds it
		}
		return held.Implements(healthyType)
	}
	if d.methods == nil { // Declare
		return true
	}
	m, err := d.methods()
	if err != nil {
		return true // which is said later
	}
	t := m.table.Type()
	return t.Kind() == reflect.Interface || t.Implements(healthyType)
}

// nameOf is what a service calls itself, as suture's do; "" if it does not.
// A supervisor is told by its type.
func nameOf(object any) (name string) {
	s, ok := object.(interface {
		service
		fmt.Stringer
	})
	if _, supervises := object.(*Supervisor); !ok || supervises {
		return ""
	}
	if err := contained(func() error { name = s.String(); return nil }); err != nil {
		return ""
	}
	return shortened(oneLine(name))
}

// held is the object as its table binds it: a plain value is held by address,
// so that it keeps its state and its pointer methods count.
func held[T any](v T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	t := reflect.TypeFor[T]()
	if k := t.Kind(); k == reflect.Interface || k == reflect.Pointer {
		if r := reflect.ValueOf(&v).Elem(); r.IsNil() {
			return nil, errors.New("supervisor: the factory returned nil without an error")
		}
		return v, nil
	}
	return &v, nil
}

// definition is what a name stands for in this binary.
type definition struct {
	name     string
	place    string       // where it was defined, for messages
	arg      reflect.Type // nil if the factory takes no argument
	declared bool         // defined in another binary
	object   bool         // made by Object: the argument is the object
	build    func(ctx context.Context, arg any) (any, error)
	methods  func() (*methods, error) // made on first use
	argCodec func() (*wire.Codec, error)
}

func define[T any](name string, arg reflect.Type, build func(context.Context, any) (any, error)) {
	d := newDefinition[T](name, arg, build)
	d.place = caller(3)
	definitions.add(d)
}

func newDefinition[T any](name string, arg reflect.Type, build func(context.Context, any) (any, error)) *definition {
	return &definition{
		name:     name,
		arg:      arg,
		build:    build,
		methods:  onceMethods(dispatch.TableFor[T]),
		argCodec: sync.OnceValues(func() (*wire.Codec, error) { return wire.CodecOf(arg, types) }),
	}
}

func onceMethods(table func() (*dispatch.Table, error)) func() (*methods, error) {
	return sync.OnceValues(func() (*methods, error) {
		t, err := table()
		if err != nil {
			return nil, err
		}
		return newMethods(t), nil
	})
}

func objectName(t reflect.Type) string { return "object of " + wire.TypeText(t) }

// factoryText is the factory's name for people: of a ready value, its Go type.
func factoryText(name string) string {
	if d, err := definitions.find(name); err == nil && d.object {
		return d.arg.String()
	}
	return name
}

// defineObject names the factory of ready values of type T; often is as good as once.
func defineObject[T any]() {
	t := reflect.TypeFor[T]()
	d := newDefinition[T](objectName(t), t, func(_ context.Context, arg any) (any, error) {
		v, _ := arg.(T)
		return held(v, nil)
	})
	d.object = true
	definitions.addOnce(d)
}

// encodeArg returns a spec's argument as bytes.
func (d *definition) encodeArg(s Spec) ([]byte, error) {
	switch {
	case s.encoded != nil || d.arg == nil:
		return s.encoded, nil
	case d.lacks(s):
		return nil, d.takes()
	case d.object:
		if d.arg.Kind() == reflect.Func {
			return nil, fmt.Errorf("%w: a function (%v) stays in the host: register it with WithType(Goroutine), and not WithCopy", ErrEncode, d.arg)
		}
		if _, ok := types.Name(d.arg); !ok {
			hint := ""
			if d.arg.Implements(serviceType) {
				hint = "; to keep its Serve loop in the host register it with WithType(Goroutine)"
			}
			return nil, fmt.Errorf("%w: %v was not named by RegisterType%s", ErrEncode, d.arg, hint)
		}
		if err := wire.CheckLossless(s.arg); err != nil {
			return nil, err
		}
	}
	codec, err := d.codec()
	if err != nil {
		return nil, err
	}
	body, err := packSelfContained([]*wire.Codec{codec}, []any{s.arg})
	if err != nil {
		return nil, err
	}
	return body, nil
}

func (d *definition) codec() (*wire.Codec, error) {
	if d.argCodec == nil { // Declare
		return wire.CodecOf(d.arg, types)
	}
	return d.argCodec()
}

// decodeArg is the reverse, for UnmarshalBinary and for workers.
func (d *definition) decodeArg(encoded []byte) (any, error) {
	if d.arg == nil {
		return nil, nil
	}
	codec, err := d.codec()
	if err != nil {
		return nil, err
	}
	vals, err := unpackSelfContained(encoded, []*wire.Codec{codec})
	if err != nil {
		return nil, err
	}
	return vals[0], nil
}

// lacks reports whether the spec has no argument and the factory takes one: it
// comes from a program where the factory takes none.
func (d *definition) lacks(s Spec) bool {
	return s.encoded == nil && s.arg == nil && d.arg != nil && d.arg.Kind() != reflect.Interface
}

func (d *definition) takes() error {
	return fmt.Errorf("%w: factory %q takes a %v", ErrBadArgs, d.name, d.arg)
}

// argument returns the spec's argument as the factory takes it.
func (d *definition) argument(s Spec) (any, error) {
	switch {
	case s.encoded != nil:
		return d.decodeArg(s.encoded)
	case d.lacks(s):
		return nil, d.takes()
	default:
		return s.arg, nil
	}
}

// MarshalBinary codes the name and the argument; its error is an [ErrEncode]
// or says that the name is not defined here.
func (s Spec) MarshalBinary() ([]byte, error) {
	d, err := definitions.find(s.name)
	if err != nil {
		return nil, err
	}
	arg, err := d.encodeArg(s)
	if err != nil {
		return nil, err
	}
	return packSelfContained(nil, []any{s.name, arg})
}

// UnmarshalBinary is the reverse of MarshalBinary. The name need not be
// defined here before the spec is registered.
func (s *Spec) UnmarshalBinary(b []byte) error {
	vals, err := unpackSelfContained(b, []*wire.Codec{nil, nil})
	if err != nil {
		return err
	}
	name, ok := vals[0].(string)
	if !ok {
		return fmt.Errorf("%w: not a Spec", ErrDecode)
	}
	arg, _ := vals[1].([]byte)
	*s = Spec{name: name, encoded: arg}
	return nil
}

// definitions are the names of this binary. A worker finds its factory in
// them, so they are the one registry that has to be global.
var definitions = &definitionMap{byName: make(map[string]*definition)}

type definitionMap struct {
	mu     sync.RWMutex
	byName map[string]*definition
}

func (m *definitionMap) add(d *definition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if d.name == "" {
		panic(fmt.Sprintf("supervisor: empty factory name at %s", d.place))
	}
	if other, ok := m.byName[d.name]; ok {
		panic(fmt.Sprintf("supervisor: factory %q is defined twice: at %s and at %s", d.name, other.place, d.place))
	}
	m.byName[d.name] = d
}

func (m *definitionMap) addOnce(d *definition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.byName[d.name]; !ok {
		m.byName[d.name] = d
	}
}

func (m *definitionMap) find(name string) (*definition, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if d, ok := m.byName[name]; ok {
		return d, nil
	}
	if name == "" {
		return nil, fmt.Errorf("%w: the zero Spec", ErrBadArgs)
	}
	return nil, fmt.Errorf("%w: no factory is defined under %q: Define it in a package variable or an init function, so that a worker has it too", ErrBadArgs, name)
}

// caller is the file and line of the skip-th caller.
func caller(skip int) string {
	_, file, line, ok := runtime.Caller(skip)
	if !ok {
		return "an unknown place"
	}
	return fmt.Sprintf("%s:%d", file, line)
}
