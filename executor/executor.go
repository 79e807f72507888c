package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/future"
	"github.com/workerlink/supervisor/internal/proc"
	"github.com/workerlink/supervisor/internal/task"
)

// An Executor runs tasks on workers that it starts and ends as there is work. [New] makes one of its own, [Reusable]
// one that is shared. Its methods may be called concurrently.
//
// Mutexes are taken in this order: pools, chunk, executor, event queue. None is held while user code runs or anything
// waits.
type Executor struct {
	cfg     *config
	sup     *supervisor.Supervisor // its children are the workers
	events  *eventQueue
	running sync.WaitGroup // of lanes
	drained chan struct{}  // closed, under the mutex, when nothing is accepted any more and everything has its verdict
	dead    context.Context
	die     context.CancelFunc // ends dead: nothing more is executed
	ended   chan struct{}      // closed by finish
	finish  sync.Once
	left    error // by finish: who could not be ended

	mu    sync.Mutex
	state state
}

// state is what an executor has to do and whom it has for it. The executor's mutex guards it.
type state struct {
	queue   queue
	waiters waiters // for room in the queue
	delayed map[*job]*time.Timer
	pending int // tasks that were accepted and have not given their owner a verdict

	crew    crew
	breaker breaker
	paces   map[*function]*pace
	stats   counts

	closing bool  // nothing more is accepted
	broken  error // nor here, and why; is ErrBroken
	stuck   []error
	tripped chan struct{} // closed once broken
}

// New returns an executor, which starts workers when there is work, or MinIdle of them at once. It must be ended by
// [Executor.Shutdown], [Executor.KillWorkers] or [Executor.Serve]; one that is forgotten instead keeps nothing but
// MinIdle workers when its work is done. In the tasks of ten processes within each other the error is [ErrTooDeep].
func New(o Options) (*Executor, error) {
	cfg, err := newConfig(o)
	if err != nil {
		return nil, err
	}
	return newExecutor(cfg)
}

func newExecutor(cfg *config) (*Executor, error) {
	switch {
	case cfg.child.Process && !proc.Supported:
		return nil, fmt.Errorf("executor: %w: worker processes; see supervisor.WithType", supervisor.ErrUnsupported)
	case cfg.child.Process && depth >= maxDepth():
		return nil, fmt.Errorf("%w: %d", ErrTooDeep, depth+1)
	}
	x := &Executor{cfg: cfg, drained: make(chan struct{}), ended: make(chan struct{})}
	x.events = newEventQueue(cfg.Name, cfg.Events)
	x.dead, x.die = context.WithCancel(context.Background())
	x.state = state{delayed: make(map[*job]*time.Timer), paces: make(map[*function]*pace), tripped: make(chan struct{})}
	x.state.crew = crew{max: cfg.MaxWorkers, lanes: make(map[*lane]bool)}
	x.state.breaker = breaker{Breaker: cfg.Breaker}
	opts := append(cfg.Supervisor[:len(cfg.Supervisor):len(cfg.Supervisor)], supervisor.WithEvents(x.workerEvent))
	var err error
	if x.sup, err = supervisor.New(supervisor.Process, opts...); err != nil {
		return nil, fmt.Errorf("executor: %w", err)
	}
	if err := x.sup.StartLink(context.Background()); err != nil {
		return nil, fmt.Errorf("executor: %w", err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.staffLocked()
	return x, nil
}

// Name returns the name that the options gave.
func (x *Executor) Name() string { return x.cfg.Name }

// Resize changes how many workers there may be at once, and returns without waiting for anything. Further ones start
// when there is work for them. Those that are too many leave: first those that are still starting, when they are ready,
// then those that have been idle longest, at once, then busy ones after the task that they have begun. n less than 1, or
// than MinIdle, is an error that is [supervisor.ErrBadArgs].
func (x *Executor) Resize(n int) error {
	if n < 1 || n < x.cfg.MinIdle {
		return fmt.Errorf("executor: %w: resize to %d workers", supervisor.ErrBadArgs, n)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.refusalLocked(); err != nil {
		return err
	}
	if n == x.state.crew.max {
		return nil
	}
	x.state.crew.max = n
	x.events.emit(Event{Kind: EventResized, Worker: -1, N: int64(n)})
	x.dismissLocked()
	x.staffLocked()
	return nil
}

// refusalLocked says why no task is accepted, or returns nil.
func (x *Executor) refusalLocked() error {
	switch {
	case x.state.broken != nil:
		return x.state.broken
	case x.state.closing:
		return fmt.Errorf("executor: %w", supervisor.ErrClosed)
	default:
		return nil
	}
}

// Shutdown accepts no further task, finishes all that were accepted, retries included, and ends the workers. When ctx
// ends first the rest gets ErrClosed, the workers are killed, and the error is [supervisor.ErrTimeout]; so a ctx that has ended
// kills at once. Otherwise an error names what could not be ended: goroutine workers whose code ignores its context. It may
// be called again and by many at once; with the ctx of one of its own tasks, in a worker that is a goroutine, it
// returns at once, and the end follows.
func (x *Executor) Shutdown(ctx context.Context) error {
	x.close()
	if ctx.Value(taskKey{x}) != nil {
		task.Go(func(context.Context) { _ = x.Shutdown(context.Background()) }) // others learn its error
		return nil
	}
	if late(x.drained, ctx) || late(x.lanesGone(), ctx) {
		return errors.Join(fmt.Errorf("executor: %w: shutdown", supervisor.ErrTimeout), x.kill())
	}
	return x.end()
}

// KillWorkers ends the executor at once: what waits and what runs gets ErrClosed, and the workers are killed with
// everything that they have started. It returns when they are gone. Its error is that of Shutdown.
func (x *Executor) KillWorkers() error {
	x.close()
	return x.kill()
}

// Serve runs until ctx ends, and then shuts down, within five seconds; so an executor is an object of a supervisor's child
// of the goroutine kind, a suture service, and an errgroup function. If the executor breaks, Serve ends it and returns
// [ErrBroken]: a factory that calls New gives the next life a new one. After a Shutdown by others it returns nil.
func (x *Executor) Serve(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-x.ended:
		return nil
	case <-x.state.tripped:
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), serveGrace)
	defer cancel()
	err := x.Shutdown(limit)
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.state.broken != nil:
		return x.state.broken
	case errors.Is(err, supervisor.ErrTimeout):
		return nil // they were killed
	default:
		return err
	}
}

const (
	serveGrace = 5 * time.Second
	// killGrace is for lanes to notice that their workers are gone.
	killGrace = 2 * time.Second
)

// Health returns [ErrBroken] with its cause if the executor is broken, else nil.
func (x *Executor) Health(context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.state.broken
}

// close accepts no further task.
func (x *Executor) close() {
	x.mu.Lock()
	x.state.closing = true
	refused := x.state.waiters.all()
	x.settleDownLocked()
	x.mu.Unlock()
	refused.decide(fmt.Errorf("executor: %w", supervisor.ErrClosed))
}

// settleDownLocked sends everybody home when there is nothing more to do.
func (x *Executor) settleDownLocked() {
	s := &x.state
	if !s.closing || s.pending > 0 {
		return
	}
	select {
	case <-x.drained:
	default:
		close(x.drained)
		x.dismissLocked()
	}
}

// lanesGone is closed when all lanes have ended. No further one may start: all is drained, or dead.
func (x *Executor) lanesGone() <-chan struct{} {
	return task.Go(func(context.Context) { x.running.Wait() }).Done()
}

// late waits for done; it reports whether ctx ended first.
func late(done <-chan struct{}, ctx context.Context) bool { //nolint:revive // it is about done
	select {
	case <-done:
		return false
	default:
	}
	select {
	case <-done:
		return false
	case <-ctx.Done():
		return true
	}
}

// kill ends everything.
func (x *Executor) kill() error {
	x.die()
	x.abandon(fmt.Errorf("executor: %w", supervisor.ErrClosed))
	_ = x.sup.Close() // the same is said again at the end
	limit, cancel := context.WithTimeout(context.Background(), killGrace)
	defer cancel()
	var err error
	if late(x.lanesGone(), limit) { // user code decodes a result and does not return
		err = fmt.Errorf("executor: %w: a result is still being decoded", supervisor.ErrTimeout)
	}
	return errors.Join(err, x.end())
}

// end is the last step.
func (x *Executor) end() error {
	x.finish.Do(func() {
		x.die()
		x.left = x.sup.Close() // it has no child any more, but such as could not be ended
		x.events.emit(Event{Kind: EventShutdown, Worker: -1})
		x.events.settle(time.Second)
		pools.ended(x)
		close(x.ended)
	})
	x.mu.Lock()
	defer x.mu.Unlock()
	return errors.Join(append(slices.Clone(x.state.stuck), x.left)...)
}

// abandon gives everything that is not on a worker the verdict err.
func (x *Executor) abandon(err error) {
	x.mu.Lock()
	s := &x.state
	refused := s.waiters.all()
	var verdicts []verdict
	for t := s.queue.head; t != nil; t = s.queue.head {
		s.queue.remove(t)
		verdicts = append(verdicts, x.settleLocked(t, t.failure(-1, t.attempts == 0, err)))
	}
	for t, timer := range s.delayed {
		timer.Stop()
		delete(s.delayed, t)
		verdicts = append(verdicts, x.settleLocked(t, t.failure(-1, false, err)))
	}
	x.dismissLocked()
	x.mu.Unlock()
	refused.decide(err)
	x.deliver(verdicts)
}

// settleLocked makes t settled; the verdict is to be delivered.
func (x *Executor) settleLocked(t *job, v verdict) verdict {
	t.state, t.wire = settled, place{}
	if v.err == nil {
		x.state.stats.done++
	} else {
		x.state.stats.failed++
	}
	return v
}

// deliver gives verdicts to their owners, and then counts their tasks as gone.
func (x *Executor) deliver(verdicts []verdict) {
	if len(verdicts) == 0 {
		return
	}
	deliver(verdicts)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.state.pending -= len(verdicts)
	x.settleDownLocked()
}

// cause is why ctx has ended, in this library's errors.
func cause(ctx context.Context) error { return future.Cause(ctx) }
