package supervisor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/workerlink/supervisor/future"
)

// AsChild returns s as a child of another supervisor, for
// [Supervisor.RegisterChild]: a life of the child is a generation of s. Its
// children start with it, all or none; when s ends, because it gave up or by a
// Shutdown of its own, that is the child's death, and the policy there decides
// whether a fresh generation follows. Unless [Stop] says otherwise it has as long
// to stop as the supervisor above, so that a tree stops depth first under one
// deadline. It takes no requests: those go to s itself, whose methods StartLink,
// Shutdown and Close are now the other supervisor's to call. Of [Recycle] it
// takes MaxAge alone. What would make a
// circle is an [ErrBadArgs] of RegisterChild.
//
// It is the preferred way to build a tree. By its Serve a supervisor can be an
// [Object] as well, but then [Supervisor.Snapshot] and [Supervisor.Healthy] do not
// look into it, and it has its own times to stop.
func (s *Supervisor) AsChild() Child { return &branch{s} }

// branch is a supervisor as a child.
type branch struct{ sup *Supervisor }

// Start starts a generation.
func (b *branch) Start(ctx context.Context, life *Life) (Link, error) {
	if b.sup == life.slot.sup {
		return nil, fmt.Errorf("%w: a supervisor below itself", ErrBadArgs)
	}
	lifetime, end := context.WithCancelCause(context.WithoutCancel(ctx))
	calledOff := context.AfterFunc(ctx, func() { end(future.Cause(ctx)) })
	if err := b.sup.startFresh(lifetime); err != nil {
		end(nil)
		return nil, err
	}
	g := b.sup.gen.Load()
	if !calledOff() { // too late
		g.kill()
		<-g.done
		return nil, future.Cause(ctx)
	}
	return &branchLink{sup: b.sup, gen: g, end: end}, nil
}

// awaitEnd waits for a start that was called off, and kills what has come up
// when limit ends.
func (b *branch) awaitEnd(limit context.Context, ended <-chan struct{}) bool {
	select {
	case <-ended:
		return true
	case <-limit.Done():
	}
	b.sup.gen.Load().kill()
	return awaitFor(ended, killedWait)
}

// tree is what the snapshot of the supervisors above shows; nil if it is one of
// them. RegisterChild sees to it that it is none, but a look must end anyway.
func (b *branch) tree(above []*Supervisor) *Snapshot {
	if slices.Contains(above, b.sup) {
		return nil
	}
	return new(b.sup.snapshot(above))
}

// joining are the branches that are just being registered: those that are can
// be found in their supervisors. Without them two that are registered at the same
// time could make a circle.
var joining struct {
	mu    sync.Mutex
	edges []joint
}

// joint is a supervisor and one that is to be below it.
type joint struct{ above, below *Supervisor }

// join notes that child is to be below s, until done is called. It is an error if
// s is below it already.
func (s *Supervisor) join(child Child) (done func(), err error) {
	b, ok := child.(*branch)
	if !ok {
		return func() {}, nil
	}
	joining.mu.Lock()
	defer joining.mu.Unlock()
	if b.sup.reaches(s, make(map[*Supervisor]bool)) {
		what := fmt.Sprintf("the %v cannot be below the %v", b.sup, s)
		if b.sup == s {
			what += ": it is the same one"
		} else {
			what += ": that is below it already"
		}
		return nil, fmt.Errorf("%w: %s", ErrBadArgs, what)
	}
	edge := joint{above: s, below: b.sup}
	joining.edges = append(joining.edges, edge)
	return func() {
		joining.mu.Lock()
		defer joining.mu.Unlock()
		i := slices.Index(joining.edges, edge)
		joining.edges = slices.Delete(joining.edges, i, i+1)
	}, nil
}

// reaches reports whether s is other or above it; seen are those that were asked.
// The mutex of joining is held.
func (s *Supervisor) reaches(other *Supervisor, seen map[*Supervisor]bool) bool {
	if s == other {
		return true
	}
	if seen[s] {
		return false
	}
	seen[s] = true
	for _, sl := range s.present() {
		if b, ok := sl.child.(*branch); ok && b.sup.reaches(other, seen) {
			return true
		}
	}
	return slices.ContainsFunc(joining.edges, func(j joint) bool { return j.above == s && j.below.reaches(other, seen) })
}

// branchLink is one generation as a life.
type branchLink struct {
	sup *Supervisor
	gen *generation
	end context.CancelCauseFunc // of the generation's life
}

// Submit refuses everything.
func (l *branchLink) Submit(r *Request) error {
	return fmt.Errorf("%w: %s: a supervisor takes no requests as a child", ErrNoSuchMethod, r.Method)
}

// Stop is Shutdown.
func (l *branchLink) Stop(ctx context.Context) error {
	l.gen.stop(nil)
	select {
	case <-l.gen.done:
	case <-ctx.Done():
		l.gen.kill()
		l.gen.awaitKilled()
	}
	return l.outcome()
}

// Wait returns when the generation has ended.
func (l *branchLink) Wait() error {
	<-l.gen.done
	l.end(nil)
	return l.outcome()
}

// outcome is why the generation ended, and what it left behind.
func (l *branchLink) outcome() error {
	why, stuck := l.gen.reason(), l.gen.unstopped(nil)
	if why == nil || stuck == nil {
		return orErr(why, stuck)
	}
	return &becauseError{why, &whereError{"left behind", stuck}}
}

// remains reports whether something of what the generation left behind still
// runs.
func (l *branchLink) remains() bool { return l.gen.remains() }

// startFresh is StartLink of a supervisor that must not be running.
func (s *Supervisor) startFresh(ctx context.Context) error {
	if p := s.gen.Load().phase(); p == starting || p == running {
		return errors.New("supervisor: it is running already: a supervisor below another one is started by that")
	}
	return s.StartLink(ctx)
}

// forBranch gives a branch the times of the supervisor above it, and refuses
// what cannot be had of a branch; of that, defaults are left out.
func (c *childConfig) forBranch(child Child, opts []ChildOption) error {
	if _, ok := child.(*branch); !ok {
		return nil
	}
	if r := given(opts).watch.recycle; r.MaxRequests > 0 || r.Rolling {
		return unfit("Recycle.MaxRequests or Rolling", "supervisor")
	}
	c.watch.recycle.MaxRequests, c.watch.recycle.Rolling = 0, false
	if c.stop == (Stop{}) {
		c.stop.Grace = math.MaxInt64
	}
	if c.startTimeout == defaultStartTimeout {
		c.startTimeout = math.MaxInt64 // each child below has its own
	}
	return nil
}
