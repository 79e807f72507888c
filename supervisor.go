package supervisor

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/workerlink/supervisor/future"
	"github.com/workerlink/supervisor/internal/inbox"
	"github.com/workerlink/supervisor/internal/proc"
)

// A Supervisor owns children and answers every request to them exactly once.
// [New] is the only way to make one. Its methods may be called concurrently.
// One that is started and then forgotten is not collected as garbage: its
// children run on until the ctx of StartLink ends, or the program does.
type Supervisor struct {
	// Set once.
	kind    ChildType
	opts    options
	events  *eventQueue
	starter proc.Starter
	waits   sync.Pool // of doSink

	// Read without the mutex on the way of each request. The slice only grows;
	// an unregistered child leaves nil.
	slots atomic.Pointer[[]*atomic.Pointer[slot]]
	gen   atomic.Pointer[generation]

	mu sync.Mutex // guards changes of slots and gen
}

// New returns a supervisor whose children are of kind unless they say
// otherwise. In a worker process whose main did not call [Init] it ends the
// process with a message, which the host's StartLink reports.
func New(kind ChildType, opts ...Option) (*Supervisor, error) {
	refuseUninitialised()
	o := options{inboxLimit: defaultInboxLimit}
	for _, opt := range opts {
		if opt == nil {
			return nil, fmt.Errorf("%w: nil option", ErrBadArgs)
		}
		opt.apply(&o)
	}
	switch {
	case kind != Goroutine && kind != Process:
		return nil, fmt.Errorf("%w: unknown %v", ErrBadArgs, kind)
	case o.inboxLimit <= 0:
		return nil, fmt.Errorf("%w: inbox limit %d", ErrBadArgs, o.inboxLimit)
	case o.strategy < OneForOne || o.strategy > RestForOne:
		return nil, fmt.Errorf("%w: unknown strategy %d", ErrBadArgs, o.strategy)
	}
	for _, d := range o.defaults {
		if d == nil {
			return nil, fmt.Errorf("%w: nil child option", ErrBadArgs)
		}
	}
	s := &Supervisor{kind: kind, opts: o, events: newEventQueue(&o)}
	s.slots.Store(new([]*atomic.Pointer[slot]))
	s.gen.Store(s.newGeneration())
	return s, nil
}

func (s *Supervisor) newGeneration() *generation {
	g := &generation{
		sup:     s,
		inbox:   inbox.New[RecvPayload](s.opts.inboxLimit),
		started: make(chan struct{}),
		done:    make(chan struct{}),
	}
	g.force, g.kill = context.WithCancel(context.Background())
	g.together.gen, g.closing = g, make(chan struct{})
	return g
}

// Register adds a child and returns its id, which is its index and never used
// again. Bad specs and options are errors here. After StartLink it starts the
// child and waits until it is ready or ctx ends; if that fails the child is
// gone.
func (s *Supervisor) Register(ctx context.Context, spec Spec, opts ...ChildOption) (id int, err error) {
	cfg, err := newChildConfig(s.kind, false, s.opts.defaults, opts)
	if err == nil {
		err = cfg.forSpec(spec, opts)
	}
	if err != nil {
		return -1, &whereError{fmt.Sprintf("register %q", spec.name), err}
	}
	return s.add(ctx, cfg, func(sl *slot) (Child, error) {
		if sl.cfg.kind == Process {
			return newProcessChild(spec, sl)
		}
		return newThreadChild(spec, &sl.cfg)
	})
}

// RegisterChild is [Supervisor.Register] for a kind of child made elsewhere.
// Options of the built-in kinds do not fit it.
func (s *Supervisor) RegisterChild(ctx context.Context, c Child, opts ...ChildOption) (id int, err error) {
	if c == nil {
		return -1, fmt.Errorf("%w: nil Child", ErrBadArgs)
	}
	cfg, err := newChildConfig(s.kind, true, s.opts.defaults, opts)
	if err == nil {
		err = cfg.forBranch(c, opts)
	}
	if err != nil {
		return -1, &whereError{"register", err}
	}
	joined, err := s.join(c)
	if err != nil {
		return -1, &whereError{"register", err}
	}
	defer joined()
	return s.add(ctx, cfg, func(*slot) (Child, error) { return c, nil })
}

func (s *Supervisor) add(ctx context.Context, cfg childConfig, child func(*slot) (Child, error)) (int, error) {
	sl := newSlot(s, cfg)
	var err error
	if sl.child, err = child(sl); err != nil { // may run user code, so before any lock
		return -1, &whereError{"register child" + quoted(cfg.name), err}
	}
	for {
		g := s.gen.Load()
		now := g.phase()
		switch now {
		case closing:
			return -1, ErrClosed
		case starting: // StartLink has counted its children
			select {
			case <-g.started:
				continue
			case <-ctx.Done():
				return -1, future.Cause(ctx)
			}
		}
		if !s.place(g, now, sl) {
			continue // the phase has changed meanwhile
		}
		if now != running {
			return sl.id, nil
		}
		if err := sl.awaitUp(ctx, 0); err != nil {
			sl.leaving.Store(true)
			_, _ = sl.stop(alreadyEnded, ErrNoSuchChild) // err says why
			s.forget(sl)
			return -1, err
		}
		return sl.id, nil
	}
}

// place puts a new slot into the list and, while running, launches it; false
// if g is no longer in the phase now.
func (s *Supervisor) place(g *generation, now phase, sl *slot) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.phase() != now || s.gen.Load() != g {
		return false
	}
	list := *s.slots.Load()
	sl.id = len(list)
	at := new(atomic.Pointer[slot])
	at.Store(sl)
	list = append(list, at)
	s.slots.Store(&list)
	if now == running {
		sl.launch(g.force, nil)
	}
	return true
}

func (s *Supervisor) forget(sl *slot) {
	(*s.slots.Load())[sl.id].Store(nil)
}

// child returns the slot of an id.
func (s *Supervisor) child(id int) (*slot, error) {
	list := *s.slots.Load()
	if id >= 0 && id < len(list) {
		if sl := list[id].Load(); sl != nil && !sl.leaving.Load() {
			return sl, nil
		}
	}
	return nil, fmt.Errorf("%w: %d", ErrNoSuchChild, id)
}

// present returns the slots that there are, those of children on their way out
// included, in the order of their ids.
func (s *Supervisor) present() []*slot {
	var all []*slot
	for _, at := range *s.slots.Load() {
		if sl := at.Load(); sl != nil {
			all = append(all, sl)
		}
	}
	return all
}

// children returns those that take requests.
func (s *Supervisor) children() []*slot {
	return slices.DeleteFunc(s.present(), func(sl *slot) bool { return sl.leaving.Load() })
}

// StartLink starts every child, in parallel unless [WithStrategy] says otherwise,
// and returns when all are ready; if one fails none is left and the error is its
// [*StartError]. ctx is the children's life: when it ends everything stops in order
// and Err is its cause. While running it does nothing; after Shutdown it begins a
// new generation with fresh children and an empty inbox.
func (s *Supervisor) StartLink(ctx context.Context) error {
	if err := future.Cause(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	g := s.gen.Load()
	g.mu.Lock()
	switch g.phase() {
	case starting, running:
		g.mu.Unlock()
		s.mu.Unlock()
		select {
		case <-g.started:
		case <-ctx.Done():
			return future.Cause(ctx)
		}
		if g.phase() == running {
			return nil
		}
		return because(ErrClosed, g.reason())
	case closing:
		g.mu.Unlock()
		s.mu.Unlock()
		return fmt.Errorf("%w: still shutting down", ErrClosed)
	case closed:
		g.mu.Unlock()
		g = s.newGeneration()
		g.mu.Lock() // before a Shutdown can find it
		s.gen.Store(g)
	}
	g.enter(starting)
	children := s.children()
	g.unfollow = context.AfterFunc(ctx, func() { g.stop(context.Cause(ctx)) })
	g.mu.Unlock()
	s.mu.Unlock()
	return g.start(ctx, children)
}

// Shutdown stops every child: what was accepted is still executed and answered
// within the children's [Stop] times, no more is accepted. It may be called at
// any time, again, and by many at once. When ctx ends it kills what is left and
// returns an [ErrTimeout] that wraps a [*StuckError] for each child that was
// still at work; without that, an error means that goroutine children could not
// be ended. So its ctx should not be StartLink's: one that has ended kills at once.
func (s *Supervisor) Shutdown(ctx context.Context) error {
	g := s.gen.Load()
	g.stop(nil)
	select {
	case <-g.done: // even if ctx has ended
		s.events.settle(eventGrace)
		return g.unstopped(nil)
	default:
	}
	select {
	case <-g.done:
	case <-ctx.Done():
		g.kill()
		g.awaitKilled()
		s.events.settle(eventGrace)
		return g.unstopped(fmt.Errorf("%w: shutdown", ErrTimeout))
	}
	s.events.settle(eventGrace)
	return g.unstopped(nil)
}

// eventGrace is how long an end waits for the function of WithEvents.
const eventGrace = time.Second

// Close kills every child at once and returns when they are gone. Its error
// wraps a [*StuckError] for each that is not.
func (s *Supervisor) Close() error {
	g := s.gen.Load()
	g.kill()
	g.stop(nil)
	if !g.awaitKilled() {
		defer s.events.settle(eventGrace)
		return orErr(g.unstopped(nil), fmt.Errorf("%w: close", ErrTimeout))
	}
	s.events.settle(eventGrace)
	return g.unstopped(nil)
}

// Done returns a channel that is closed when the current generation has
// stopped, by whatever way.
func (s *Supervisor) Done() <-chan struct{} { return s.gen.Load().done }

// Err returns why the current generation stopped: nil while it runs and after
// an orderly Shutdown, the cause of StartLink's ctx if that ended it, be it an
// ordinary cancel.
func (s *Supervisor) Err() error { return s.gen.Load().reason() }

// Serve is StartLink and waiting for the end: nil after an orderly one, which
// the end of ctx is. It makes a Supervisor a suture service and an errgroup
// function. Requests are accepted once [Supervisor.Healthy] is nil.
func (s *Supervisor) Serve(ctx context.Context) error {
	if err := s.StartLink(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	g := s.gen.Load()
	select {
	case <-g.done:
	case <-ctx.Done(): // StartLink follows its ctx, but another call may have been the one that started
		g.stop(context.Cause(ctx))
		<-g.done
	}
	s.events.settle(eventGrace)
	if err := g.unstopped(nil); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return nil
	}
	return g.reason()
}

// Restart ends the life of a child and returns when the next one is ready. Its
// open requests get [ErrRestarted] at once; a handler that does not heed its
// context then holds up the restart for the child's [Stop] times. A child that had
// ended for good is started again. When ctx ends what still runs is killed, and
// Restart returns [ErrTimeout] or [ErrCanceled] if no new life is ready yet.
func (s *Supervisor) Restart(ctx context.Context, id int) error {
	g, err := s.current()
	if err != nil {
		return err
	}
	sl, err := s.child(id)
	if err != nil {
		return err
	}
	return sl.restart(ctx, g.force)
}

// Unregister stops a child in order and takes its id out of use. Its open
// requests that are not answered within its Stop times get [ErrClosed]; its
// unclaimed replies stay. When ctx ends it is killed.
func (s *Supervisor) Unregister(ctx context.Context, id int) error {
	sl, err := s.child(id)
	if err != nil {
		return err
	}
	if !sl.leaving.CompareAndSwap(false, true) {
		return fmt.Errorf("%w: %d", ErrNoSuchChild, id)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.gen.Load().force, cancel)() // a Shutdown that kills does not wait for this
	stuck, killed := sl.stop(ctx, ErrClosed)
	s.forget(sl)
	switch {
	case len(stuck) > 0:
		return stuck[0]
	case len(killed) > 0:
		return because(ErrTimeout, killed[0])
	default:
		return nil
	}
}

// current returns the generation that takes requests.
func (s *Supervisor) current() (*generation, error) {
	g := s.gen.Load()
	switch g.phase() {
	case running:
		return g, nil
	case unstarted, starting:
		return nil, ErrNotStarted
	default:
		return nil, because(ErrClosed, g.reason())
	}
}
