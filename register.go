package supervisor

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"reflect"
	"sync"

	"github.com/workerlink/supervisor/internal/wire"
)

// types are the names of types inside interfaces.
var types = wire.NewRegistry()

// RegisterType names T, and *T, for values inside interfaces: an any argument,
// an interface field, a ready [Object]. Types that only stand in a method's
// signature need no name. The name is T's package path and name, the same in
// every binary; a conflict panics.
func RegisterType[T any]() {
	t := reflect.TypeFor[T]()
	if err := types.Register(t); err != nil {
		panic(fmt.Sprintf("supervisor: RegisterType[%v]: %v", t, err))
	}
	defineObject[T]()
	defineObject[*T]()
}

// registeredErrors are the errors that keep their identity across the pipe.
type registeredErrors struct {
	mu        sync.RWMutex
	names     map[error]string        // sentinels
	sentinels map[string]error        // the reverse
	types     map[reflect.Type]string // error types
	byName    map[string]*errorType
}

// errorType is a registered type of errors and how its values cross.
type errorType struct {
	t     reflect.Type
	codec func() (*wire.Codec, error)
}

var knownErrors = func() *registeredErrors {
	r := &registeredErrors{
		names:     make(map[error]string),
		sentinels: make(map[string]error),
		types:     make(map[reflect.Type]string),
		byName:    make(map[string]*errorType),
	}
	for name, err := range builtinErrors {
		r.names[err], r.sentinels[name] = name, err
	}
	return r
}()

var builtinErrors = map[string]error{
	"io.EOF":                         io.EOF,
	"io.ErrUnexpectedEOF":            io.ErrUnexpectedEOF,
	"io.ErrClosedPipe":               io.ErrClosedPipe,
	"io.ErrNoProgress":               io.ErrNoProgress,
	"io.ErrShortBuffer":              io.ErrShortBuffer,
	"io.ErrShortWrite":               io.ErrShortWrite,
	"fs.ErrClosed":                   fs.ErrClosed,
	"fs.ErrExist":                    fs.ErrExist,
	"fs.ErrInvalid":                  fs.ErrInvalid,
	"fs.ErrNotExist":                 fs.ErrNotExist,
	"fs.ErrPermission":               fs.ErrPermission,
	"context.Canceled":               errContextCanceled,
	"context.DeadlineExceeded":       errContextDeadline,
	"net.ErrClosed":                  net.ErrClosed,
	"supervisor.ErrTimeout":          ErrTimeout,
	"supervisor.ErrCanceled":         ErrCanceled,
	"supervisor.ErrRestarted":        ErrRestarted,
	"supervisor.ErrRestartLimit":     ErrRestartLimit,
	"supervisor.ErrClosed":           ErrClosed,
	"supervisor.ErrNotStarted":       ErrNotStarted,
	"supervisor.ErrNoSuchChild":      ErrNoSuchChild,
	"supervisor.ErrNoSuchMethod":     ErrNoSuchMethod,
	"supervisor.ErrNoSuchRequest":    ErrNoSuchRequest,
	"supervisor.ErrBadArgs":          ErrBadArgs,
	"supervisor.ErrDuplicateRequest": ErrDuplicateRequest,
	"supervisor.ErrBusy":             ErrBusy,
	"supervisor.ErrPending":          ErrPending,
	"supervisor.ErrEncode":           ErrEncode,
	"supervisor.ErrDecode":           ErrDecode,
	"supervisor.ErrTooLarge":         ErrTooLarge,
	"supervisor.ErrProtocol":         ErrProtocol,
	"supervisor.ErrVersion":          ErrVersion,
	"supervisor.ErrUnsupported":      ErrUnsupported,
}

// RegisterError names a sentinel, so that errors.Is finds it in the errors of
// children of both kinds. Call it from a package variable or init; the errors
// of io, io/fs and context, net.ErrClosed and this package's own are known. A
// name or a sentinel registered twice panics.
func RegisterError(name string, sentinel error) {
	if sentinel == nil || name == "" || !reflect.TypeOf(sentinel).Comparable() {
		panic(fmt.Sprintf("supervisor: RegisterError(%q, %v): needs a name and a comparable error", name, sentinel))
	}
	r := knownErrors
	r.mu.Lock()
	defer r.mu.Unlock()
	if other, ok := r.sentinels[name]; ok {
		panic(fmt.Sprintf("supervisor: error name %q is registered twice: for %q and for %q", name, other, sentinel))
	}
	if other, ok := r.names[sentinel]; ok {
		panic(fmt.Sprintf("supervisor: error %q is registered twice: as %q and as %q", sentinel, other, name))
	}
	r.names[sentinel], r.sentinels[name] = name, sentinel
}

// RegisterErrorType names a type of errors, so that errors.As finds its values,
// with their exported fields, in the errors of children of both kinds.
func RegisterErrorType[E error](name string) {
	t := reflect.TypeFor[E]()
	r := knownErrors
	r.mu.Lock()
	defer r.mu.Unlock()
	if name == "" || t.Kind() == reflect.Interface {
		panic(fmt.Sprintf("supervisor: RegisterErrorType[%v](%q): needs a name and a concrete type", t, name))
	}
	if other, ok := r.byName[name]; ok {
		panic(fmt.Sprintf("supervisor: error type name %q is registered twice: for %v and for %v", name, other.t, t))
	}
	if other, ok := r.types[t]; ok {
		panic(fmt.Sprintf("supervisor: error type %v is registered twice: as %q and as %q", t, other, name))
	}
	r.types[t] = name
	r.byName[name] = &errorType{t: t, codec: sync.OnceValues(func() (*wire.Codec, error) { return wire.CodecOf(t, types) })}
}

// all returns the sentinels by name, in a map that is the caller's.
func (r *registeredErrors) all() map[string]error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return maps.Clone(r.sentinels)
}

// sentinel returns the name of err if it is registered itself.
func (r *registeredErrors) sentinel(err error) (string, bool) {
	if !reflect.ValueOf(err).Comparable() { // of a type that can be compared, it may still hold what cannot
		return "", false
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	name, ok := r.names[err]
	return name, ok
}

func (r *registeredErrors) typeOf(err error) (string, *errorType, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	name, ok := r.types[reflect.TypeOf(err)]
	return name, r.byName[name], ok
}

func (r *registeredErrors) byWireName(name string) (et *errorType, sentinel error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byName[name], r.sentinels[name]
}
