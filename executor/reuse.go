package executor

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/workerlink/supervisor/internal/task"
)

// ReuseMode says when [Reusable] gives an executor that is there.
type ReuseMode int

const (
	// ReuseAuto reuses an executor if its options are the same. One of another size is resized.
	ReuseAuto ReuseMode = iota
	// ReuseAlways reuses an executor whatever its options are; it keeps them, but for MaxWorkers if that is given.
	ReuseAlways
	// ReuseNever makes a new executor.
	ReuseNever
)

// String returns "auto", "always" or "never".
func (m ReuseMode) String() string {
	if m < ReuseAuto || m > ReuseNever {
		return fmt.Sprintf("ReuseMode(%d)", int(m))
	}
	return [...]string{"auto", "always", "never"}[m]
}

// Reason says where the executor of a [Lease] comes from.
type Reason int

// The reasons of [Reusable].
const (
	ReasonNew     Reason = iota // there was none of this name
	ReasonReused                // it was there, as it is
	ReasonResized               // it was there, with another size
	ReasonOptions               // new, because the options differ
	ReasonBroken                // new, because the old one was broken
	ReasonClosed                // new, because the old one was shut down
	ReasonNever                 // new, because ReuseNever asks for it
)

// String returns the reason in lower case.
func (r Reason) String() string {
	if r < ReasonNew || r > ReasonNever {
		return fmt.Sprintf("Reason(%d)", int(r))
	}
	return [...]string{"new", "reused", "resized", "options differ", "broken", "shut down", "never reused"}[r]
}

// A Lease is the right to use a shared executor until Release, whatever others ask of [Reusable] meanwhile. A Shutdown or
// KillWorkers of the executor itself ends it for everybody.
type Lease struct {
	*Executor
	pool     *pool
	reason   Reason
	released atomic.Bool
}

// Reason says where the executor comes from.
func (l *Lease) Reason() Reason { return l.reason }

// Reused reports whether the executor was there before.
func (l *Lease) Reused() bool { return l.reason == ReasonReused || l.reason == ReasonResized }

// Release gives the lease back. It does not wait. The executor stays for the next who asks for it; its workers end when
// they have been idle for long enough, or when the program ends; to wait for their end call Shutdown. An executor that
// another one has replaced is shut down in the background when its last lease is released, after all of its tasks. Release
// may be called again.
func (l *Lease) Release() {
	if l.released.CompareAndSwap(false, true) {
		pools.release(l.pool)
	}
}

// Reusable returns a lease of the executor of o.Name, which it makes if there is none that may be used: see [ReuseMode]
// and [Reason]. An executor that is not to be used any more loses its name and goes on with its tasks until it has none
// and nobody holds a lease of it; a task is never moved to another executor. Options are compared by what they mean;
// o.Events, o.Supervisor and o.Reuse do not count, and those of the call that made the executor stay. Reusable does not
// wait for anything; an ended ctx is an error.
func Reusable(ctx context.Context, o Options) (*Lease, error) {
	if err := cause(ctx); err != nil {
		return nil, err
	}
	cfg, err := newConfig(o)
	if err != nil {
		return nil, err
	}
	return pools.lease(cfg)
}

// pools are the shared executors of this process. That one is shared by all is what they are for, so they are global;
// nothing runs for them but the executors' own workers.
var pools = &poolMap{byName: make(map[string]*pool)}

type poolMap struct {
	mu     sync.Mutex // taken before an executor's
	byName map[string]*pool
}

// pool is a shared executor.
type pool struct {
	executor *Executor // nil once it has ended: then only why is kept
	why      Reason    // there must be a new one then
	text     string    // of its options
	leases   int
	retired  bool // another one has the name
}

func (m *poolMap) lease(cfg *config) (*Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.byName[cfg.Name]
	reason := ReasonNew
	if old != nil {
		reason = old.fits(cfg)
	}
	if reason == ReasonReused || reason == ReasonResized {
		old.leases++
		return &Lease{Executor: old.executor, pool: old, reason: reason}, nil
	}
	x, err := newExecutor(cfg)
	if err != nil {
		return nil, err
	}
	p := &pool{executor: x, text: cfg.text(), leases: 1}
	m.byName[cfg.Name] = p
	if old != nil && old.executor != nil {
		old.executor.events.emit(Event{Kind: EventRotated, Worker: -1, Text: reason.String()})
		old.retired = true
		old.drainLocked()
	}
	return &Lease{Executor: x, pool: p, reason: reason}, nil
}

// fits says whether the executor may be used for cfg, and resizes it then.
func (p *pool) fits(cfg *config) Reason {
	if p.executor == nil {
		return p.why
	}
	if reason := p.executor.unusable(); reason != ReasonReused {
		return reason
	}
	switch cfg.Reuse {
	case ReuseNever:
		return ReasonNever
	case ReuseAlways:
		if cfg.maxDefault {
			return ReasonReused
		}
	default:
		if p.text != cfg.text() {
			return ReasonOptions
		}
	}
	if p.executor.size() == cfg.MaxWorkers {
		return ReasonReused
	}
	if err := p.executor.Resize(cfg.MaxWorkers); err != nil { // it has just ended, or its MinIdle is larger
		if reason := p.executor.unusable(); reason != ReasonReused {
			return reason
		}
		return ReasonOptions
	}
	return ReasonResized
}

// unusable says why the executor takes no tasks, or ReasonReused.
func (x *Executor) unusable() Reason {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.state.broken != nil:
		return ReasonBroken
	case x.state.closing:
		return ReasonClosed
	default:
		return ReasonReused
	}
}

func (x *Executor) size() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.state.crew.max
}

func (m *poolMap) release(p *pool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p.leases--
	p.drainLocked()
}

// drainLocked ends an executor that nobody can use any more, when it has done what it was given.
func (p *pool) drainLocked() {
	if p.retired && p.leases == 0 {
		task.Go(func(context.Context) { _ = p.executor.Shutdown(context.Background()) })
	}
}

// ended leaves of a shared executor that has ended no more than that there was one.
func (m *poolMap) ended(x *Executor) {
	why := x.unusable()
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.byName[x.cfg.Name]; p != nil && p.executor == x {
		m.byName[x.cfg.Name] = &pool{why: why}
	}
}

// killAll ends the shared executors of a worker process that itself ends.
func (m *poolMap) killAll() {
	m.mu.Lock()
	all := m.byName
	m.byName = make(map[string]*pool)
	m.mu.Unlock()
	for _, p := range all {
		if p.executor == nil {
			continue
		}
		_ = p.executor.KillWorkers() // the process is about to end, and with it what is left
	}
}
