package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/inside"
	"github.com/workerlink/supervisor/internal/wire"
)

// workerFactory makes the object of an executor's worker.
var workerFactory = supervisor.DefineWith("github.com/workerlink/supervisor/executor.worker", newWorker)

// What a worker answers instead of a result.
var (
	// errUnloaded says that the object which the tasks need is not there; nothing was begun.
	errUnloaded = errors.New("executor: the object is not loaded")
	// errStopped says that a chunk has ended although no task of it is at work: the rest is revoked or cancelled.
	errStopped = errors.New("executor: nothing left to do")
)

func init() {
	inside.SetTable(workerFactory.Name(), workerTable)
	supervisor.RegisterError("executor.errUnloaded", errUnloaded)
	supervisor.RegisterError("executor.errStopped", errStopped)
}

func codecOf(t reflect.Type) (*wire.Codec, error) { return wire.CodecOf(t, inside.Types) }

// setup is the argument of a worker's factory.
type setup struct {
	JournalFD int       // 0 for a goroutine
	local     *journal  // of a goroutine
	executor  *Executor // likewise
}

// taskKey is in the context of a task that is executed in the process of its executor.
type taskKey struct{ executor *Executor }

// worker is the object of a worker: it executes chunks of tasks.
type worker struct {
	journal  *journal
	executor *Executor   // nil in a process
	objects  map[int]any // by the place of their spec
	order    []int       // in which they were made
}

func newWorker(_ context.Context, s setup) (*worker, error) {
	w := &worker{journal: s.local, executor: s.executor, objects: make(map[int]any)}
	if s.JournalFD == 0 {
		return w, nil
	}
	var err error
	if w.journal, err = openJournal(s.JournalFD); err != nil {
		return nil, err
	}
	return w, nil
}

// load makes an object, unless it is there.
func (w *worker) load(ctx context.Context, at int) error {
	if _, ok := w.objects[at]; ok {
		return nil
	}
	specs := functions.freeze().specs
	if at < 0 || at >= len(specs) {
		return fmt.Errorf("%w: object %d of %d", supervisor.ErrBadArgs, at, len(specs))
	}
	object, err := inside.Build(ctx, specs[at])
	if err != nil {
		return err
	}
	w.objects[at] = object
	w.order = append(w.order, at)
	return nil
}

// Close closes the objects, the last one first, and ends what this process has of executors.
func (w *worker) Close() error {
	var errs []error
	for _, at := range slices.Backward(w.order) {
		if c, ok := w.objects[at].(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	if w.executor == nil {
		pools.killAll()
	}
	return errors.Join(errs...)
}

// run executes a chunk of tasks of one function, one after the other, as far as the host has not revoked them. The
// results go to the journal, except that of the last one that was begun, which is returned: it may be the only one, or
// one that the journal has no room for. So is its error, with which a chunk ends. What was not begun is the host's again.
func (w *worker) run(ctx context.Context, f *function, in []any) (any, error) {
	var object any
	if f.object >= 0 {
		var ok bool
		if object, ok = w.objects[f.object]; !ok {
			return nil, errUnloaded
		}
	}
	if w.executor != nil {
		ctx = context.WithValue(ctx, taskKey{w.executor}, true)
	}
	if len(in) == 1 {
		if !w.journal.begin(0) {
			return nil, errStopped
		}
		return f.call(ctx, object, in[0])
	}
	pen, err := w.journal.pen(f)
	if err != nil {
		return nil, err
	}
	for i, arg := range in {
		if ctx.Err() != nil || !w.journal.begin(i) {
			continue
		}
		out, err := callOne(ctx, f, object, arg)
		if err != nil || i == len(in)-1 || !pen.put(i, out) {
			return out, err
		}
	}
	return nil, errStopped
}

// callOne gives one of several tasks a context of its own.
func callOne(ctx context.Context, f *function, object, in any) (any, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return f.call(ctx, object, in)
}
