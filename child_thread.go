package supervisor

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/wire"
)

// threadChild is the goroutine kind: the object lives in the host.
type threadChild struct {
	def     *definition
	spec    Spec
	methods *methods
	cfg     *childConfig
}

func newThreadChild(spec Spec, cfg *childConfig) (*threadChild, error) {
	def, err := definitions.find(spec.name)
	if err != nil {
		return nil, err
	}
	if def.declared {
		return nil, fmt.Errorf("%w: factory %q lives in another binary, so its child must be a process", ErrBadArgs, spec.name)
	}
	m, err := def.methods()
	if err != nil {
		return nil, err
	}
	c := &threadChild{def: def, spec: spec, methods: m, cfg: cfg}
	if cfg.handlers.copy {
		if c.spec.encoded, err = def.encodeArg(spec); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *threadChild) resolve(r *Request) error { return c.methods.resolve(r) }

func (c *threadChild) snapshots() bool { return c.methods.shows }

// prepare copies the arguments if the child is to have its own.
func (c *threadChild) prepare(r *Request) (size int64, err error) {
	if !c.cfg.handlers.copy || r.Attr {
		return 0, nil
	}
	in := make([]*wire.Codec, len(r.Args))
	if r.method >= 0 {
		m := &c.methods.all[r.method]
		if m.err != nil {
			return 0, m.err
		}
		in = m.codecs(len(r.Args))
	}
	b, err := packSelfContained(in, r.Args)
	if err != nil {
		return 0, err
	}
	r.Args, err = unpackSelfContained(b, in)
	return int64(len(b)), err
}

// Start makes the object.
func (c *threadChild) Start(ctx context.Context, life *Life) (Link, error) {
	object, err := buildObject(context.WithValue(ctx, selfKey{}, life.self), c.def, c.spec, &life.maker)
	if err != nil {
		return nil, crossed(err)
	}
	l := &threadLink{life: life, child: c, done: make(chan struct{}), over: make(chan struct{})}
	own := context.WithValue(context.Background(), selfKey{}, life.self)
	l.actor = newActor(own, object, newRunner(c.methods, object, l, c.cfg.handlers.concurrency, c.cfg.restart.OnPanic == EndLife), c.cfg.watch.healthLimit())
	l.actor.begin(own, l.served)
	return l, nil
}

// buildObject runs a factory; a panic in it, or runtime.Goexit, is its error.
// maker, if there is one, gets the goroutine on which it runs.
func buildObject(ctx context.Context, def *definition, spec Spec, maker *atomic.Pointer[string]) (object any, err error) {
	arg, err := def.argument(spec)
	if err != nil {
		return nil, library(err)
	}
	err = contained(func() (err error) {
		if maker != nil {
			maker.Store(new(goroutineID()))
		}
		object, err = def.build(ctx, arg)
		return err
	})
	return object, err
}

// contained runs user code on a goroutine of its own and waits for it, so that
// a panic or a runtime.Goexit is no more than its error.
func contained(f func() error) (err error) {
	t := task.Go(func(context.Context) {
		finished := false
		defer func() {
			if !finished {
				p := recover()
				err = panicked(p, p == nil)
			}
		}()
		err = f()
		finished = true
	})
	t.Wait()
	return err
}

// threadLink is one life of a goroutine child. It ends by Stop, or because the
// object says so.
type threadLink struct {
	life  *Life
	child *threadChild
	actor *actor

	begin sync.Once
	mu    sync.Mutex
	cut   string // the method that Stop cut off when its time was over
	why   error  // why the life has to end, other than by Stop
	err   error
	done  chan struct{} // closed once err is the life's end
	over  chan struct{} // closed when nothing of it runs any more, however late
}

// Submit queues the request for the object.
func (l *threadLink) Submit(r *Request) error {
	if !l.actor.runner.submit(r) {
		return ErrClosed
	}
	return nil
}

// reply is called by the runner, on the handler's goroutine.
func (l *threadLink) reply(r *Request, v verdict) bool {
	switch {
	case v.err != nil:
		v.err = crossed(v.err)
	case l.child.cfg.handlers.copy:
		v.value, v.err = l.copyResult(r, v.value)
	}
	return l.life.reply(r, v)
}

func (l *threadLink) begun(r *Request) { l.life.begun(r) }

func (l *threadLink) copyResult(r *Request, value any) (any, error) {
	codecs := []*wire.Codec{nil}
	if r.method >= 0 {
		codecs[0] = l.child.methods.all[r.method].out
	}
	b, err := packSelfContained(codecs, []any{value})
	if err != nil {
		return nil, library(err)
	}
	vals, err := unpackSelfContained(b, codecs)
	if err != nil {
		return nil, library(err)
	}
	return vals[0], nil
}

// lastGrace is how long a goroutine child may take to notice that its contexts
// have ended once the time to stop is over.
const lastGrace = 100 * time.Millisecond

// Stop ends the life in order, or abandons what runs when ctx ends.
func (l *threadLink) Stop(ctx context.Context) error {
	l.begin.Do(func() { task.Go(func(context.Context) { l.end() }) })
	select {
	case <-l.done:
		return l.outcome()
	case <-ctx.Done():
	}
	if method, _ := l.actor.runner.busy(); method != "" {
		l.mu.Lock()
		l.cut = method
		l.mu.Unlock()
	}
	l.abort()
	if !awaitFor(l.done, lastGrace) {
		l.abandon()
	}
	return l.outcome()
}

// end is the orderly end: what was submitted is executed within the grace,
// then contexts are cancelled, then Close runs.
func (l *threadLink) end() {
	quiet := l.actor.close()
	if !awaitFor(quiet, l.child.cfg.stop.grace()) {
		l.abort()
		<-quiet // an abandoned life waits here until its handler returns
	}
	err := l.actor.closeObject()
	close(l.over)
	l.finish(err)
}

// served is the return of the object's Serve. If nobody asked for it the life
// ends: in order after nil.
func (l *threadLink) served(err error) {
	if err == nil {
		task.Go(func(context.Context) {
			limit, cancel := context.WithTimeout(context.Background(), l.child.cfg.stop.total())
			defer cancel()
			_ = l.Stop(limit) // the slot gets the same from Wait
		})
		return
	}
	l.fail(&whereError{"Serve", crossed(err)}, nil)
}

// fail ends the life because of err: no further request begins, contexts are
// cancelled, and what does not return is abandoned after TermGrace.
func (l *threadLink) fail(err error, unstarted []*Request) {
	l.failed(&ExitError{Code: -1, Err: crossed(err)}, unstarted)
}

func (l *threadLink) failed(exit *ExitError, unstarted []*Request) {
	for _, r := range unstarted {
		l.life.reply(r, verdict{err: exit, unexecuted: true})
	}
	l.begin.Do(func() {
		task.Go(func(context.Context) { l.fall(exit) })
		task.Go(func(context.Context) {
			if !awaitFor(l.done, l.child.cfg.stop.termGrace()) {
				l.abandon()
			}
		})
	})
}

func (l *threadLink) fall(exit *ExitError) {
	l.mu.Lock()
	l.why = exit
	l.mu.Unlock()
	quiet := l.actor.close()
	for _, r := range l.actor.abort(exit) {
		l.life.reply(r, verdict{err: exit, unexecuted: true})
	}
	<-quiet
	end := *exit // which others have by now
	if err := l.actor.closeObject(); err != nil {
		end.Tail = errorText(err)
	}
	close(l.over)
	l.finish(&end)
}

// remains reports whether something of an abandoned life still runs.
func (l *threadLink) remains() bool { return !isClosed(l.over) }

func (l *threadLink) abort() {
	for _, r := range l.actor.abort(ErrClosed) {
		l.life.reply(r, verdict{err: ErrClosed, unexecuted: true})
	}
}

func (l *threadLink) abandon() {
	method, goroutine := l.actor.busy()
	l.mu.Lock()
	why := l.why
	l.mu.Unlock()
	in := l.life.self
	l.finish(&StuckError{
		ProcID: in.ProcID, Name: in.Name, Incarnation: in.Incarnation,
		Method: method, Stack: stacksOf(goroutine), Err: why,
	})
}

// finish ends the life; the first end counts.
func (l *threadLink) finish(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.done:
	default:
		l.err = err
		close(l.done)
	}
}

func (l *threadLink) outcome() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// cutOff reports whether Stop had to cut off a request, and its method.
func (l *threadLink) cutOff() (method string, cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cut, l.cut != ""
}

// Wait returns when the life has ended.
func (l *threadLink) Wait() error {
	<-l.done
	return l.outcome()
}

func (l *threadLink) occupied() bool { return false }

// ping asks the object whether it is well, if it can say so.
func (l *threadLink) ping(num uint64) {
	l.actor.ask(func(err error) {
		if err != nil {
			err = crossed(err)
		}
		l.life.answered(num, err)
	})
}

// condemn ends a life that hangs.
func (l *threadLink) condemn(why error) {
	method, _ := l.actor.busy()
	exit := &ExitError{Code: -1, Err: why, Trace: stacksOf(l.actor.goroutines()...)}
	in := l.life.self
	l.life.slot.emit(Event{Kind: EventHung, Incarnation: in.Incarnation, Err: why, Text: cmp.Or(exit.Trace, method)})
	l.failed(exit, nil)
}
