package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/task"
)

// outsideGuard runs f on a goroutine of its own and returns its error. A panic, or the end of that goroutine, is one, too.
func outsideGuard(f func() error) (err error) {
	task.Go(func(context.Context) {
		finished := false
		defer func() {
			if finished {
				return
			}
			value := recover()
			e := &supervisor.PanicError{Value: fmt.Sprint(value), Stack: string(debug.Stack())}
			if value == nil {
				e.Value = "runtime.Goexit was called"
			}
			cause, _ := value.(error)
			err = errors.Join(e, cause)
		}()
		err = f()
		finished = true
	}).Wait()
	return err
}

// outsideHidden are methods of a worker that are not for requests.
var outsideHidden = []string{"Promoted", "Close", "String", "Snapshot"}

// outsideBind finds a request's method and checks its arguments, which must fit as they are.
func outsideBind(worker *childtest.Worker, r *supervisor.Request) (invoke func() (any, error), err error) {
	m := reflect.ValueOf(worker).MethodByName(r.Method)
	if !m.IsValid() || slices.Contains(outsideHidden, r.Method) {
		return nil, fmt.Errorf("%w: %q", supervisor.ErrNoSuchMethod, r.Method)
	}
	t := m.Type()
	var in []reflect.Value
	if t.NumIn() > 0 && t.In(0) == reflect.TypeFor[context.Context]() {
		in = append(in, reflect.ValueOf(r.Context()))
	}
	wanted := t.NumIn() - len(in)
	if n := len(r.Args); t.IsVariadic() && n < wanted-1 || !t.IsVariadic() && n != wanted {
		return nil, fmt.Errorf("%w: %s takes %d arguments, got %d", supervisor.ErrBadArgs, r.Method, wanted, n)
	}
	for i, arg := range r.Args {
		param := t.In(min(len(in), t.NumIn()-1))
		if t.IsVariadic() && len(in) >= t.NumIn()-1 {
			param = param.Elem()
		}
		v := reflect.ValueOf(arg)
		switch {
		case !v.IsValid() && slices.Contains([]reflect.Kind{reflect.Interface, reflect.Pointer, reflect.Slice, reflect.Map}, param.Kind()):
			v = reflect.Zero(param)
		case !v.IsValid() || !v.Type().AssignableTo(param):
			return nil, fmt.Errorf("%w: argument %d of %s is a %T, not a %v", supervisor.ErrBadArgs, i+1, r.Method, arg, param)
		}
		in = append(in, v)
	}
	return func() (any, error) { return outsideResults(m.Call(in)) }, nil
}

// outsideResults are those of a method as a verdict.
func outsideResults(out []reflect.Value) (value any, err error) {
	if n := len(out); n > 0 && out[n-1].Type() == reflect.TypeFor[error]() {
		err, _ = out[n-1].Interface().(error)
		out = out[:n-1]
	}
	if len(out) > 0 && err == nil {
		value = out[0].Interface()
	}
	return value, err
}
