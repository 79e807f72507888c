package executor

import (
	"context"
	"fmt"
	"time"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/future"
)

// A Func is a function that executors can run, known by its name in this program and in its workers. [Define] and
// [Method] make it.
type Func[In, Out any] struct{ function *function }

// Define names a function; call it from a package variable, so that a worker has it too. In and Out cross to a worker
// process as arguments and results do in package supervisor. It is called with one value at a time in each worker; its
// ctx ends when it returns. A name that is defined twice, or after the first executor has started a worker, panics.
func Define[In, Out any](name string, fn func(ctx context.Context, in In) (Out, error), opts ...FuncOption) *Func[In, Out] {
	return &Func[In, Out]{define[In, Out](name, nil, func(ctx context.Context, _, in any) (any, error) {
		v, _ := in.(In) // nil is the zero value of an interface type
		return fn(ctx, v)
	}, opts)}
}

// Method is [Define] for a function that needs an object which takes time to make: a model, a connection. Each worker
// makes the object of spec before its first task that needs it, and keeps it; functions with equal specs share it. T is
// what spec's factory returns. If the object has a method Close() error, that runs when the worker ends in order. If it
// cannot be made, within the workers' start timeout, the task that needed it gets a [*LoadError], and the next one tries
// again until the [Breaker] says that it is enough.
func Method[T, In, Out any](name string, spec supervisor.Spec, method func(object T, ctx context.Context, in In) (Out, error), opts ...FuncOption) *Func[In, Out] {
	return &Func[In, Out]{define[In, Out](name, &spec, func(ctx context.Context, object, in any) (any, error) {
		t, ok := object.(T)
		if p, held := object.(*T); held {
			t, ok = *p, true
		}
		if !ok {
			return nil, fmt.Errorf("%w: the factory %q returns a %T, not the object of %q", supervisor.ErrBadArgs, spec.Name(), object, name)
		}
		v, _ := in.(In)
		return method(t, ctx, v)
	}, opts)}
}

// Name returns the function's name.
func (f *Func[In, Out]) Name() string { return f.function.name }

// Submit runs the function with in on a worker of x. It waits for room in the queue until ctx ends; then ctx is the
// task's own, as the future's Cancel is. An error says that the task was not accepted and never runs: ErrClosed, [ErrBroken],
// ErrCanceled or ErrTimeout. Whether in can reach a worker shows in the future. in belongs to the task until that has
// its verdict.
func (f *Func[In, Out]) Submit(ctx context.Context, x *Executor, in In) (*future.Future[Out], error) {
	return f.submit(ctx, x, in, true)
}

// TrySubmit is Submit that never waits: without room it returns ErrBusy.
func (f *Func[In, Out]) TrySubmit(ctx context.Context, x *Executor, in In) (*future.Future[Out], error) {
	return f.submit(ctx, x, in, false)
}

// FuncOption is an argument of [Define] and [Method].
type FuncOption interface{ applyFunc(*function) }

// Retries declares a function idempotent: a task whose worker died while it was running is executed again, also if it hung
// and was killed because of [KillAfter].
type Retries struct {
	Max    int  // executions after the first one
	Errors bool // also after an error or a panic of the function
	// Backoff is the delay before the first, the second, … retry; defaults as of supervisor.Restart.
	Backoff supervisor.Backoff
}

func (r Retries) applyFunc(f *function) { f.retries = r }

// KillAfter limits how long one execution of a function may take, whether its task has been cancelled or not: past it
// the worker counts as hung and is replaced. The task's error is then an ErrTimeout that wraps a
// [*supervisor.ExitError] with the stacks of what the worker was doing. It may come a few milliseconds late, and up to
// as much again for a task inside a [Chunk].
type KillAfter time.Duration

func (k KillAfter) applyFunc(f *function) { f.killAfter = time.Duration(k) }
