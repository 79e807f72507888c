package supervisor

import (
	"context"
	"io"
	"sync"
	"time"

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
	object  any
	runner  *runner
	checkup *checkup // nil if the object has no Health
	once    sync.Once

	mu      sync.Mutex
	serves  *serveRun // nil if the object has no Serve
	closed  bool      // Serve does not begin any more
	closing bool      // its Close runs
	closer  string    // the goroutine on which it does
}

// serveRun is the run of an object's Serve.
type serveRun struct {
	task      *task.Task
	stop      context.CancelFunc
	goroutine string        // as stack dumps show it
	quiet     chan struct{} // closed when the requests and then Serve have ended, after close
}

// newActor returns the actor of an object; ctx is that of its hooks, and
// healthLimit how long its Health may take.
func newActor(ctx context.Context, object any, r *runner, healthLimit time.Duration) *actor {
	a := &actor{object: object, runner: r}
	if h, ok := object.(healthy); ok {
		a.checkup = newCheckup(ctx, h, healthLimit)
	}
	return a
}

// ask calls answer with the object's word on how it is, at once with nil if it
// has none.
func (a *actor) ask(answer func(error)) {
	if a.checkup == nil {
		answer(nil)
		return
	}
	a.checkup.ask(answer)
}

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

// closeObject runs the object's Close hook, if it has one, after its Health.
func (a *actor) closeObject() error {
	if a.checkup != nil {
		a.checkup.close()
	}
	c, ok := a.object.(io.Closer)
	if !ok {
		return nil
	}
	a.mu.Lock()
	a.closing = true
	a.mu.Unlock()
	err := contained(func() error {
		id := goroutineID()
		a.mu.Lock()
		a.closer = id
		a.mu.Unlock()
		return c.Close()
	})
	if err != nil {
		return &whereError{"Close", err}
	}
	return nil
}

// busy returns what the object is doing, and the goroutine that does it: the
// method of a request, Health, Close, Serve, or nothing.
func (a *actor) busy() (method, goroutine string) {
	if method, goroutine = a.runner.busy(); method != "" {
		return method, goroutine
	}
	if a.checkup != nil {
		if goroutine, running := a.checkup.busy(); running {
			return "Health", goroutine
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closing:
		return "Close", a.closer
	case a.serves != nil:
		select {
		case <-a.serves.task.Done():
		default:
			return "Serve", a.serves.goroutine
		}
	}
	return "", ""
}

// goroutines are those of all that the object is doing.
func (a *actor) goroutines() []string {
	goroutines := a.runner.working()
	if a.checkup != nil {
		if goroutine, running := a.checkup.busy(); running {
			goroutines = append(goroutines, goroutine)
		}
	}
	if len(goroutines) == 0 {
		_, goroutine := a.busy()
		goroutines = append(goroutines, goroutine)
	}
	return goroutines
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
