package supervisor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/workerlink/supervisor/future"
)

// AsChild returns s as a child of another supervisor, for
// [Supervisor.RegisterChild]: a life of the child is a generation of s. Its
// children start with it, all or none; when s ends, because it gave up or by a
// Shutdown of its own, that is the child's death, and the policy there decides
// whether a fresh generation follows. Unless [Stop] says otherwise it has as long
// to stop as the supervisor above, so that a tree stops depth first under one
// deadline. It takes no requests: those go to s itself, whose methods StartLink,
// Shutdown and Close are now the other supervisor's to call.
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
// them, and then would never end.
func (b *branch) tree(above []*Supervisor) *Snapshot {
	if slices.Contains(above, b.sup) {
		return nil
	}
	return new(b.sup.snapshot(above))
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

// forBranch gives a branch the times of the supervisor above it.
func (c *childConfig) forBranch(child Child) {
	if _, ok := child.(*branch); !ok {
		return
	}
	if c.stop == (Stop{}) {
		c.stop.Grace = math.MaxInt64
	}
	if c.startTimeout == defaultStartTimeout {
		c.startTimeout = math.MaxInt64 // each child below has its own
	}
}
