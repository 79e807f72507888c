package supervisor

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/workerlink/supervisor/internal/wire"
)

// Request is one accepted request, as the [Link] that executes it sees it.
type Request struct {
	Num    uint64 // unique within the life, never 0
	Method string
	Attr   bool  // read the attribute Method instead of calling it
	Args   []any // matched to the method's parameters

	method   int            // number in the method table; -1 if the object dispatches by name
	kwargs   map[string]any // not yet filled in; only for objects that live in another binary
	deadline time.Time      // of the whole request; zero: none
	notice
	into  []byte // lent for a raw reply
	scope scope
	coded coded // process children only
	call  *call // the host's side of it; nil in a worker
}

// notice is what is noticed of a request on the way.
type notice struct {
	timed    bool      // the reply shall have its times
	watched  bool      // its host wants to know when the handler begins
	accepted time.Time // by the runner; only if timed
}

// coded is what a request is to a process child's two sides.
type coded struct {
	table    *methods   // that the request was checked against, in the host
	body     *wire.Body // the arguments, in the host
	flags    wire.Flags // that say how to read body
	deferred bool       // some Args are still *wire.Deferred, in the worker
}

// decode finishes the arguments whose decoding is user code.
func (r *Request) decode() error {
	if !r.coded.deferred {
		return nil
	}
	for i, v := range r.Args {
		if d, ok := v.(*wire.Deferred); ok {
			v, err := d.Decode()
			if err != nil {
				return fmt.Errorf("argument %d of %s: %w", i+1, r.Method, err)
			}
			r.Args[i] = v
		}
	}
	return nil
}

// verdict is how a request ended.
type verdict struct {
	value       any
	err         error // nil for a value
	unexecuted  bool  // surely not executed
	more        bool  // the runner goes on to the next request at once
	failed      bool  // err is the handler's, not one of taking its reply
	fatal       bool  // err ends the life
	queued, ran time.Duration
}

// replier takes the verdicts of the requests that a runner executes: a [Life]
// in the host, the connection in a worker. It never blocks on user code.
type replier interface {
	reply(r *Request, v verdict) bool
	// begun says that the handler of a watched request begins.
	begun(r *Request)
	// fail ends the life because err says so; unstarted is what it owes.
	fail(err error, unstarted []*Request)
}

// Context returns the request's own context: it carries [Self] and the
// deadline, and ends with the verdict, whoever gave it; at the deadline it is
// left to its own timer, so that it says context.DeadlineExceeded.
func (r *Request) Context() context.Context { return r.scope.context(r.Num, r.deadline) }

// overdue reports whether the request has a deadline that has passed.
func (r *Request) overdue() bool { return !r.deadline.IsZero() && !time.Now().Before(r.deadline) }

// scope is a request's context, made only if somebody wants it.
type scope struct {
	self *self // set once

	mu     sync.Mutex
	ended  bool
	cause  error // why it ended; nil for a reply
	ctx    context.Context
	cancel context.CancelCauseFunc
	free   context.CancelFunc // releases the deadline's timer; nil without one
}

// atDeadline is how near its deadline a request that timed out is left to the
// context's own timer, so that the handler sees context.DeadlineExceeded.
const atDeadline = 20 * time.Millisecond

func (s *scope) context(num uint64, deadline time.Time) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx == nil {
		in := *s.self
		in.Request = num
		base := context.WithValue(context.Background(), selfKey{}, &in)
		if !deadline.IsZero() {
			base, s.free = context.WithDeadlineCause(base, deadline, ErrTimeout)
		}
		s.ctx, s.cancel = context.WithCancelCause(base)
		if s.ended {
			s.releaseLocked()
		}
	}
	return s.ctx
}

// end ends the context; the first cause wins.
func (s *scope) end(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.ended, s.cause = true, cause
	if s.ctx != nil {
		s.releaseLocked()
	}
}

func (s *scope) releaseLocked() {
	// Only our own verdict is that very value; the chain of a handler's error is not ours to walk here.
	if d, ok := s.ctx.Deadline(); ok && s.cause == ErrTimeout && time.Until(d) < atDeadline { //nolint:errorlint // see above
		return
	}
	s.cancel(s.cause)
	if s.free != nil {
		s.free()
	}
}

// over reports whether the request has its verdict, and why it got one.
func (s *scope) over() (cause error, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause, s.ended
}

// Info says on whose behalf code runs.
type Info struct {
	ProcID      int
	Name        string
	Incarnation uint64
	Request     uint64 // number within the life; 0 in a factory
}

// Self returns what ctx, the context of a handler or factory, runs as part of.
func Self(ctx context.Context) (Info, bool) {
	s, ok := ctx.Value(selfKey{}).(*self)
	if !ok {
		return Info{}, false
	}
	return s.Info, true
}

type selfKey struct{}

// self is what the contexts of a life carry.
type self struct {
	Info
	slot *slot // nil in a worker
}

// ownChild reports whether ctx is that of a handler of s: it must not wait for
// room in the queue that it is itself holding up.
func (s *slot) ownChild(ctx context.Context) bool {
	in, ok := ctx.Value(selfKey{}).(*self)
	return ok && in.slot == s
}
