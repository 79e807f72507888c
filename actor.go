package supervisor

import (
	"context"
	"io"
	"strings"
	"sync"

	"github.com/workerlink/supervisor/internal/task"
)

// service is the hook of objects that have work of their own: a loop that
// begins when the child is ready and whose return ends the life.
type service interface {
	Serve(ctx context.Context) error
}

// ServeFunc is a loop that is a child by itself: Object(ServeFunc(f)) registers
// f as http.HandlerFunc makes a handler of a function. It runs from when the
// child is ready until it returns; the child's restart policy decides what
// follows. ctx ends when the child is told to stop.
type ServeFunc func(ctx context.Context) error

// Serve calls f.
func (f ServeFunc) Serve(ctx context.Context) error { return f(ctx) }

// actor is one object at work: its requests, its Serve loop if it has one, and
// its end. Goroutine children and worker processes have the same one.
type actor struct {
	object any
	runner *runner
	once   sync.Once

	mu      sync.Mutex
	serves  *serveRun // nil if the object has no Serve
	closed  bool      // Serve does not begin any more
	closing bool      // its Close runs
}

// serveRun is the run of an object's Serve.
type serveRun struct {
	task      *task.Task
	stop      context.CancelFunc
	goroutine string        // as stack dumps show it
	quiet     chan struct{} // closed when the requests and then Serve have ended, after close
}

func newActor(object any, r *runner) *actor { return &actor{object: object, runner: r} }

// begin starts the object's Serve, if it has one; ended gets what it returned.
func (a *actor) begin(ctx context.Context, ended func(err error)) {
	object, ok := a.object.(service)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &serveRun{stop: cancel, quiet: make(chan struct{})}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		cancel()
		return
	}
	a.serves = s
	s.task = task.Go(func(context.Context) {
		defer cancel()
		ended(contained(func() error {
			a.mu.Lock()
			s.goroutine = goroutineID()
			a.mu.Unlock()
			return object.Serve(ctx)
		}))
	})
}

// close takes no further requests. What is accepted is executed, then Serve is
// told to end. The channel is closed when nothing runs any more.
func (a *actor) close() (quiet <-chan struct{}) {
	a.mu.Lock()
	a.closed = true
	s := a.serves
	a.mu.Unlock()
	a.runner.close()
	if s == nil {
		return a.runner.drained
	}
	a.once.Do(func() {
		task.Go(func(context.Context) {
			<-a.runner.drained
			s.stop()
			s.task.Wait()
			close(s.quiet)
		})
	})
	return s.quiet
}

// abort takes back what is queued and ends the contexts of all that runs.
func (a *actor) abort(cause error) (unstarted []*Request) {
	unstarted = a.runner.abort(cause)
	a.mu.Lock()
	s := a.serves
	a.mu.Unlock()
	if s != nil {
		s.stop()
	}
	return unstarted
}

// closeObject runs the object's Close hook, if it has one.
func (a *actor) closeObject() error {
	c, ok := a.object.(io.Closer)
	if !ok {
		return nil
	}
	a.mu.Lock()
	a.closing = true
	a.mu.Unlock()
	if err := contained(c.Close); err != nil {
		return &whereError{"Close", err}
	}
	return nil
}

// busy returns what the object is doing, and the goroutine that does it: the
// method of a request, Close, Serve, or nothing.
func (a *actor) busy() (method, goroutine string) {
	if method, goroutine = a.runner.busy(); method != "" {
		return method, goroutine
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closing:
		return "Close", ""
	case a.serves != nil:
		select {
		case <-a.serves.task.Done():
		default:
			return "Serve", a.serves.goroutine
		}
	}
	return "", ""
}

// stacks are those of all that the object is doing.
func (a *actor) stacks() string {
	goroutines := a.runner.working()
	if len(goroutines) == 0 {
		_, goroutine := a.busy()
		goroutines = append(goroutines, goroutine)
	}
	var all []string
	for _, id := range goroutines {
		if stack := goroutineStack(id); stack != "" {
			all = append(all, stack)
		}
	}
	return strings.Join(all, "\n\n")
}

// fatalError ends the life of the object that returned it.
type fatalError struct{ error }

func (e *fatalError) Unwrap() error { return e.error }

// Fatal makes err, which a method returns, the last thing that its object says:
// the request gets err, then the life ends and the restart policy decides. It
// is for objects that know that they are broken, such as a client whose
// connection is gone for good. Fatal(nil) is nil. From a factory, or from
// Serve, it is just err: their failure ends a life anyway.
func Fatal(err error) error {
	if err == nil {
		return nil
	}
	return &fatalError{err}
}
