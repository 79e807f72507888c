package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/workerlink/supervisor/future"
	"github.com/workerlink/supervisor/internal/inbox"
	"github.com/workerlink/supervisor/internal/task"
)

// The way of a request: Send, TrySend or Do makes a call (newCall: child,
// method, arguments), pass finds room in the child's queue, hand gives it to
// the life that is up, the Link executes it, and settle brings its one verdict
// to its sink: the inbox, a waiting Do, or a future.

// newCall checks everything about a request that can be checked in the host.
// It may run user code: the codecs of arguments.
// The handler sees deadline, if there is one, or that of p.Timeout if it is
// earlier.
func (s *Supervisor) newCall(p *SendPayload, attr bool, deadline time.Time) (*call, error) {
	g, err := s.current()
	sl, none := s.child(p.ProcID)
	if err == nil || none != nil && errors.Is(err, ErrNotStarted) { // starting it would not help
		err = none
	}
	if err != nil {
		return nil, p.refused(err)
	}
	c := &call{slot: sl, gen: g, id: p.ReqID}
	c.Method, c.Attr, c.Args, c.kwargs, c.into = p.Method, attr, p.Args, p.Kwargs, p.Into
	c.Request.call = c
	c.deadline = deadline
	switch {
	case p.Timeout < 0 || p.KillAfter < 0:
		return nil, p.refused(fmt.Errorf("%w: negative Timeout or KillAfter", ErrBadArgs))
	case p.KillAfter > 0 && sl.cfg.outside:
		return nil, p.refused(errNoKillAfter)
	}
	c.killAfter, c.watched = p.KillAfter, p.KillAfter > 0
	c.timed = sl.cfg.handlers.timings || !attr && !sl.cfg.outside && sl.past.sampled()
	if p.Timeout > 0 {
		c.expiry.at = time.Now().Add(p.Timeout)
		if deadline.IsZero() || c.expiry.at.Before(deadline) {
			c.deadline = c.expiry.at
		}
	}
	if r, ok := sl.child.(resolver); ok {
		if err := r.resolve(&c.Request); err != nil {
			return nil, p.refused(err)
		}
	} else if len(p.Kwargs) > 0 {
		return nil, p.refused(fmt.Errorf("%w: this kind of child takes no keyword arguments", ErrBadArgs))
	}
	if r, ok := sl.child.(preparer); ok {
		if c.room.size, err = r.prepare(&c.Request); err != nil {
			return nil, p.refused(err)
		}
	}
	return c, nil
}

// refused is the error of a request that was not accepted.
func (p *SendPayload) refused(err error) *CallError {
	return &CallError{ProcID: p.ProcID, ReqID: p.ReqID, Method: p.Method, Unexecuted: true, Err: err}
}

// start admits the call and hands it over. After nil exactly one verdict
// reaches the sink; after an error none does.
func (c *call) start(ctx context.Context, wait bool) error {
	return c.refuse(c.enter(ctx, wait))
}

// refuse takes back a call that err kept from its life. It returns nil if the
// call was withdrawn on the way, because that verdict is delivered.
func (c *call) refuse(err error) error {
	if err == nil {
		return nil
	}
	c.leave()
	if !c.done.CompareAndSwap(false, true) {
		return nil
	}
	return err
}

// enter is start up to its error.
func (c *call) enter(ctx context.Context, wait bool) error {
	if !c.expiry.at.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, c.expiry.at, ErrTimeout)
		defer cancel()
	}
	if err := future.Cause(ctx); err != nil {
		return err
	}
	err := c.pass(ctx, false)
	if wait && errors.Is(err, ErrBusy) && !c.slot.ownChild(ctx) {
		waiting, cancel := context.WithCancel(ctx)
		defer cancel()
		c.room.stopWaiting.Store(&cancel) // for finish
		if !c.done.Load() {
			err = c.pass(waiting, true)
		}
	}
	return err
}

// pass takes the call through its child's queue to a life.
func (c *call) pass(ctx context.Context, wait bool) error {
	if !c.room.taken.Load() {
		if err := c.slot.gate.admit(ctx, c.room.size, wait); err != nil {
			return err
		}
		c.room.taken.Store(true)
	}
	return c.slot.hand(ctx, c, wait)
}

// errWithdrawn ends the way of a call that has its verdict already.
var errWithdrawn = errors.New("supervisor: request was withdrawn")

// hand submits the call to the life that is up, if need be the next one. After
// nil the child has it, or had it and its verdict is under way.
func (s *slot) hand(ctx context.Context, c *call, wait bool) error {
	for {
		if c.done.Load() {
			return errWithdrawn
		}
		if c.gen != s.sup.gen.Load() { // a new one has begun on the way
			return ErrClosed
		}
		s.mu.Lock()
		state, life, why, changed := s.state, s.life, s.err, s.changed
		s.mu.Unlock()
		switch state {
		case StateUp:
			err := c.submit(life)
			if !errors.Is(err, ErrClosed) {
				return err
			}
		case StateEnded:
			return forGood(why)
		case StateIdle, StateStopping:
			return ErrClosed
		}
		if !wait {
			return fmt.Errorf("%w: the child is between two lives", ErrBusy)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return future.Cause(ctx)
		}
	}
}

// submit gives the call to one life. An [ErrClosed] says that the life takes no
// more.
func (c *call) submit(life *Life) error {
	c.scope.self = life.self
	if !life.add(c) {
		return ErrClosed
	}
	if !c.expiry.at.IsZero() {
		c.expiry.timer.Store(time.AfterFunc(time.Until(c.expiry.at), func() { c.withdraw(ErrTimeout) }))
	}
	err := errWithdrawn
	if !c.done.Load() {
		err = life.link.Submit(&c.Request)
	}
	if err == nil {
		if c.done.Load() { // withdrawn on the way, perhaps before the link knew of it
			c.tellWithdrawn()
		}
		return nil
	}
	if t := c.expiry.timer.Load(); t != nil {
		t.Stop() // if it is too late, the call is withdrawn
	}
	if !life.detach(c) {
		return nil // the life's end took it out, to give it its verdict
	}
	return err
}

// Send hands a request to its child and returns; the reply comes through
// [Supervisor.Recv] or [Supervisor.RecvAll]. It waits for room in the child's
// queue, or for the child's next life, until ctx ends: ctx bounds the hand-over
// only. An error, a [*CallError], says that nothing was sent and no reply comes.
// The arguments are the caller's again when Send returns, but a goroutine child
// without [WithCopy] works on the same memory. From a handler to its own child
// it does not wait.
func (s *Supervisor) Send(ctx context.Context, p SendPayload) error {
	return s.send(ctx, p, true, nil)
}

// TrySend is Send that never waits: without room, or between two lives of the
// child, it returns [ErrBusy].
func (s *Supervisor) TrySend(p SendPayload) error {
	return s.send(context.Background(), p, false, nil)
}

// send is Send; the reply goes to gather, if there is one.
func (s *Supervisor) send(ctx context.Context, p SendPayload, wait bool, gather *inbox.Gather[RecvPayload]) error {
	if p.ReqID == "" {
		return p.refused(fmt.Errorf("%w: empty ReqID", ErrBadArgs))
	}
	c, err := s.newCall(&p, false, time.Time{})
	if err != nil {
		return err
	}
	entry := c.gen.inbox.Prepare(p.ReqID, c)
	c.sink = inboxSink{entry} // before Open: from then on it can be withdrawn
	if err := entry.Open(); err != nil {
		return p.refused(inboxError(err))
	}
	if gather != nil {
		err = gather.Add(p.ReqID) // before anything is sent, so that nobody else gets the reply
	}
	if err == nil {
		err = c.enter(ctx, wait)
	}
	if err = c.refuse(err); err == nil {
		return nil
	}
	entry.Drop()
	if gather != nil {
		gather.Forget(p.ReqID)
	}
	return p.refused(inboxError(err))
}

// inboxError maps those of the inbox's refusals that are not ours already.
func inboxError(err error) error {
	switch {
	case errors.Is(err, inbox.ErrFull):
		return fmt.Errorf("%w: the inbox", ErrBusy)
	case errors.Is(err, inbox.ErrClosed):
		return ErrClosed
	case errors.Is(err, inbox.ErrAwaited):
		return fmt.Errorf("%w: %s", ErrNoSuchRequest, bare(err))
	default:
		return err
	}
}

// inboxSink is where replies to Send go. The call is kept with its reply, so
// that a gather can withdraw it.
type inboxSink struct{ entry *inbox.Entry[RecvPayload] }

func (k inboxSink) deliver(c *call) { k.entry.Deliver(c.reply) }

// doSink wakes a waiting Do. It has room for the one verdict, and Do takes it,
// so it can be used again.
type doSink chan struct{}

func (k doSink) deliver(*call) { k <- struct{}{} }

// Do sends a request and waits for its reply. ctx is the request's own: it
// bounds waiting for room and for the reply, its deadline and its cancel reach
// the handler. The error is the payload's, a [*CallError]; the payload always
// names the request. ReqID may be empty. Do takes no place in the inbox.
func (s *Supervisor) Do(ctx context.Context, p SendPayload) (RecvPayload, error) {
	return s.do(ctx, &p, false)
}

func (s *Supervisor) do(ctx context.Context, p *SendPayload, attr bool) (RecvPayload, error) {
	failed := func(err error) (RecvPayload, error) {
		return RecvPayload{ProcID: p.ProcID, ReqID: p.ReqID, Method: p.Method, Err: err}, err
	}
	deadline, _ := ctx.Deadline()
	c, err := s.newCall(p, attr, deadline)
	if err != nil {
		return failed(err)
	}
	done, ok := s.waits.Get().(doSink)
	if !ok {
		done = make(doSink, 1)
	}
	defer s.waits.Put(done)
	c.sink = done
	if err := c.start(ctx, true); err != nil {
		return failed(p.refused(err))
	}
	select {
	case <-done:
	case <-ctx.Done():
		c.withdraw(future.Cause(ctx))
		<-done // filled by whoever gave the verdict: at once
	}
	return c.reply, c.reply.Err
}

// Call is [Supervisor.Do] with a typed result, as [Value] converts it. Each
// argument must have its parameter's type, or be a number that fits it without
// loss.
func Call[R any](ctx context.Context, s *Supervisor, id int, method string, args ...any) (R, error) {
	p, err := s.do(ctx, &SendPayload{ProcID: id, Method: method, Args: args}, false)
	if err != nil {
		var zero R
		return zero, err
	}
	return Value[R](p)
}

// Go is Call that does not wait for the reply. It waits for room in the
// child's queue until ctx ends; ctx is the request's own, and so is the
// future's Cancel.
func Go[R any](ctx context.Context, s *Supervisor, id int, method string, args ...any) *future.Future[R] {
	f, resolver := future.New[R]()
	p := &SendPayload{ProcID: id, Method: method, Args: args}
	deadline, _ := ctx.Deadline()
	c, err := s.newCall(p, false, deadline)
	if err != nil {
		resolver.Reject(err)
		return f
	}
	// While the call is on its way to a life, start watches ctx itself.
	unwatch := context.AfterFunc(ctx, func() {
		if c.life.Load() != nil {
			c.withdraw(future.Cause(ctx))
		}
	})
	c.sink = futureSink[R]{resolver, unwatch}
	if err := c.start(ctx, true); err != nil {
		unwatch()
		resolver.Reject(p.refused(err))
		return f
	}
	if err := future.Cause(ctx); err != nil { // it may have ended between the two
		c.withdraw(err)
	}
	resolver.OnCancel(func() { c.withdraw(ErrCanceled) })
	return f
}

// futureSink resolves the future of Go.
type futureSink[R any] struct {
	resolver future.Resolver[R]
	unwatch  func() bool
}

func (k futureSink[R]) deliver(c *call) {
	k.unwatch()
	if _, raw := c.reply.Data.(*rawValue); raw {
		task.Go(func(context.Context) { k.resolve(c.reply) }) // decoding may run user code
		return
	}
	k.resolve(c.reply)
}

func (k futureSink[R]) resolve(p RecvPayload) {
	v, err := Value[R](p)
	if err != nil {
		k.resolver.Reject(err)
		return
	}
	k.resolver.Resolve(v)
}

// Result is one child's part of [Broadcast] or [GetAttr].
type Result[R any] struct {
	ProcID int
	Value  R
	Err    error
}

// Broadcast calls a method of every child at once and returns one Result per
// child in the order of their ids. The error joins those of the results.
func Broadcast[R any](ctx context.Context, s *Supervisor, method string, args ...any) ([]Result[R], error) {
	return fanOut(s, func(id int) (R, error) { return Call[R](ctx, s, id, method, args...) })
}

func fanOut[R any](s *Supervisor, call func(id int) (R, error)) ([]Result[R], error) {
	if _, err := s.current(); err != nil {
		return nil, err
	}
	children := s.children()
	results := make([]Result[R], len(children))
	tasks := make([]*task.Task, len(children))
	for i, sl := range children {
		results[i].ProcID = sl.id
		tasks[i] = task.Go(func(context.Context) { results[i].Value, results[i].Err = call(sl.id) })
	}
	var errs []error
	for i, t := range tasks {
		t.Wait()
		errs = append(errs, results[i].Err)
	}
	return results, errors.Join(errs...)
}

// GetChildAttr reads an attribute of a child's object: an exported field, or a
// method without arguments and with one result. It is read between requests,
// in the order of the sends.
func GetChildAttr[V any](ctx context.Context, s *Supervisor, id int, name string) (V, error) {
	p, err := s.do(ctx, &SendPayload{ProcID: id, Method: name}, true)
	if err != nil {
		var zero V
		return zero, err
	}
	return Value[V](p)
}

// GetAttr reads an attribute of every child at once, as [Broadcast] calls.
func GetAttr[V any](ctx context.Context, s *Supervisor, name string) ([]Result[V], error) {
	return fanOut(s, func(id int) (V, error) { return GetChildAttr[V](ctx, s, id, name) })
}
