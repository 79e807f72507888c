package supervisor

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/workerlink/supervisor/internal/dispatch"
	"github.com/workerlink/supervisor/internal/task"
)

// runner executes the requests of one object: in the order of submit, at most
// limit at once, each on one of its goroutines, which are started on demand.
// Goroutine children and worker processes have the same one.
type runner struct {
	object     *dispatch.Bound
	methods    *methods
	handler    handler // nil if the object does not dispatch by itself
	sink       replier
	limit      int
	endOnPanic bool

	mu      sync.Mutex
	queue   requestQueue
	lanes   []*lane       // running goroutines
	idle    sync.Cond     // a lane waits for a request
	closed  bool          // no further requests are taken
	drained chan struct{} // closed when closed and nothing is queued or running
}

// requestQueue is a first-in-first-out queue that keeps its memory.
type requestQueue struct {
	requests []*Request
	taken    int // requests[:taken] are gone
}

func (q *requestQueue) len() int { return len(q.requests) - q.taken }

func (q *requestQueue) push(r *Request) { q.requests = append(q.requests, r) }

func (q *requestQueue) pop() *Request {
	r := q.requests[q.taken]
	q.requests[q.taken] = nil
	q.taken++
	switch {
	case q.taken == len(q.requests):
		q.requests, q.taken = q.requests[:0], 0
	case q.taken >= 1024 && q.taken*2 >= len(q.requests):
		q.requests, q.taken = slices.Delete(q.requests, 0, q.taken), 0
	}
	return r
}

// lane is one goroutine of a runner.
type lane struct {
	id      string   // the goroutine's number in stack dumps
	current *Request // guarded by the runner's mutex
}

func newRunner(m *methods, object any, sink replier, limit int, endOnPanic bool) *runner {
	r := &runner{
		object: m.table.Bind(object), methods: m, sink: sink, limit: limit, endOnPanic: endOnPanic,
		drained: make(chan struct{}),
	}
	r.handler, _ = object.(handler)
	r.idle.L = &r.mu
	return r
}

// submit queues a request; false if the runner takes no more.
func (r *runner) submit(req *Request) bool {
	if req.timed {
		req.accepted = time.Now()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.queue.push(req)
	r.wakeLocked()
	return true
}

// wakeLocked sees to it that somebody takes what is queued.
func (r *runner) wakeLocked() {
	idle := 0
	for _, l := range r.lanes {
		if l.current == nil {
			idle++
		}
	}
	switch {
	case idle >= r.queue.len():
		r.idle.Signal()
	case len(r.lanes) < r.limit:
		l := &lane{}
		r.lanes = append(r.lanes, l)
		task.Go(func(context.Context) { r.run(l) })
	}
}

// run is the loop of one lane.
func (r *runner) run(l *lane) {
	id := goroutineID()
	r.mu.Lock()
	l.id = id
	r.mu.Unlock()
	defer r.leave(l)
	for {
		req, more := r.next(l)
		if req == nil {
			return
		}
		r.execute(req, more)
	}
}

// next waits for a request; nil ends the lane. It reports whether others wait.
func (r *runner) next(l *lane) (req *Request, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.current = nil
	for r.queue.len() == 0 {
		if r.closed {
			return nil, false
		}
		r.idle.Wait()
	}
	l.current = r.queue.pop()
	return l.current, r.queue.len() > 0
}

// leave ends a lane, also one whose handler called runtime.Goexit.
func (r *runner) leave(l *lane) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.current = nil
	r.lanes = slices.DeleteFunc(r.lanes, func(other *lane) bool { return other == l })
	if r.queue.len() > 0 {
		r.wakeLocked()
	} else if r.closed && len(r.lanes) == 0 {
		close(r.drained)
	}
}

// execute gives req its verdict.
func (r *runner) execute(req *Request, more bool) {
	if cause, over := req.scope.over(); over {
		// Its caller is gone; only a worker's host still keeps a record.
		if cause == nil {
			cause = ErrCanceled
		}
		r.sink.reply(req, verdict{err: library(cause), unexecuted: true, more: more})
		return
	}
	replied := false
	defer func() {
		if replied {
			return
		}
		// runtime.Goexit, which recover does not see, or user code around the
		// handler: a codec or an Error method. None of it is asked again.
		p := recover()
		e := panicked(p, p == nil)
		e.causes = nil
		r.finish(req, verdict{err: e, more: more, fatal: r.endOnPanic})
	}()
	v := r.attempt(req)
	v.more = more
	r.finish(req, v)
	replied = true
}

// finish delivers a verdict; after a fatal one no further request begins. The
// end is announced first, so that nobody takes a life for well whose last reply
// has come; it waits for the reply.
func (r *runner) finish(req *Request, v verdict) {
	if v.fatal {
		r.sink.fail(v.err, r.withdraw())
		v.more = false
	}
	r.sink.reply(req, v)
}

// attempt runs the handler; a panic is its error.
func (r *runner) attempt(req *Request) (v verdict) {
	if err := req.decode(); err != nil {
		return verdict{err: library(err), unexecuted: true}
	}
	if req.watched {
		r.sink.begun(req)
	}
	var start time.Time
	if req.timed {
		start = time.Now()
		v.queued = start.Sub(req.accepted)
	}
	defer func() {
		if p := recover(); p != nil {
			v.err, v.fatal = panicked(p, false), r.endOnPanic
		}
		if v.err != nil {
			v.value = nil
		}
		if req.timed {
			v.ran = time.Since(start)
		}
	}()
	v.value, v.err = r.invoke(req)
	if v.err != nil {
		_, v.fatal = errors.AsType[*fatalError](v.err)
	}
	return v
}

func (r *runner) invoke(req *Request) (any, error) {
	switch req.method {
	case methodSnapshot:
		return r.object.Object().(snapshotter).Snapshot(), nil
	case methodByName:
		return r.handler.Handle(req.Context(), req.Method, req.Args)
	}
	ctx := context.Background()
	if r.methods.all[req.method].Context {
		ctx = req.Context()
	}
	return r.object.Call(req.method, ctx, req.Args)
}

func panicked(value any, exit bool) *PanicError {
	if exit {
		return &PanicError{Value: "runtime.Goexit was called", Stack: string(debug.Stack())}
	}
	e := &PanicError{Value: fmt.Sprint(value), Stack: string(debug.Stack())}
	if err, ok := value.(error); ok {
		e.causes = []error{err}
	}
	return e
}

// close takes no further requests. What is queued is still executed.
func (r *runner) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	r.closed = true
	if len(r.lanes) == 0 && r.queue.len() == 0 {
		close(r.drained)
	}
	r.idle.Broadcast()
}

// withdraw takes no further requests and takes back what is queued.
func (r *runner) withdraw() (unstarted []*Request) {
	r.close()
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.queue.len() > 0 {
		unstarted = append(unstarted, r.queue.pop())
	}
	return unstarted
}

// abort takes back what is queued and ends the contexts of what runs.
func (r *runner) abort(cause error) (unstarted []*Request) {
	unstarted = r.withdraw()
	r.mu.Lock()
	var running []*Request
	for _, l := range r.lanes {
		if l.current != nil {
			running = append(running, l.current)
		}
	}
	r.mu.Unlock()
	for _, req := range running {
		req.scope.end(cause)
	}
	return unstarted
}

// busy returns the method of a request that is running, and its goroutine.
func (r *runner) busy() (method, goroutine string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.lanes {
		if l.current != nil {
			return l.current.Method, l.id
		}
	}
	return "", ""
}

// working returns the goroutines of all requests that are running.
func (r *runner) working() (goroutines []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.lanes {
		if l.current != nil {
			goroutines = append(goroutines, l.id)
		}
	}
	return goroutines
}
