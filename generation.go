package supervisor

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/workerlink/supervisor/future"
	"github.com/workerlink/supervisor/internal/inbox"
	"github.com/workerlink/supervisor/internal/task"
)

// generation is one span from StartLink to the end of Shutdown.
type generation struct {
	sup     *Supervisor
	inbox   *inbox.Box[RecvPayload]
	force   context.Context // its end makes every stop a kill
	kill    context.CancelFunc
	started chan struct{} // closed when StartLink has its outcome
	done    chan struct{} // closed when everything has stopped

	at       atomic.Int32 // the phase; changed under mu
	together together

	mu sync.Mutex
	generationEnd
}

// generationEnd is guarded by the generation's mutex.
type generationEnd struct {
	closing  chan struct{} // closed when the teardown begins
	err      error         // why it ended; nil for an orderly end
	left     leftovers
	unfollow func() bool // stops following StartLink's ctx
	stopping *task.Task  // runs the teardown
}

// leftovers are the children that did not stop by themselves in time.
type leftovers struct {
	stuck  []*StuckError // could not be ended
	killed []*StuckError // had to be killed because the time was over
}

// phase of a generation: unstarted -> starting -> running -> closing -> closed;
// a start that fails goes from starting to closing.
type phase int

const (
	unstarted phase = iota
	starting
	running
	closing
	closed
)

func (g *generation) phase() phase { return phase(g.at.Load()) }

func (g *generation) enter(p phase) { g.at.Store(int32(p)) }

// start starts the children: all or none. Each start has its own time limit.
func (g *generation) start(ctx context.Context, children []*slot) error {
	first := make(chan error, len(children))
	parallel := g.sup.opts.strategy == OneForOne
	var failed error
	await := func() {
		if err := <-first; err != nil && failed == nil {
			failed = err
			if ctx.Err() == nil {
				g.stop(err) // the rest need not come up any more
			}
		}
	}
	launched := 0
	for _, sl := range children {
		if !g.launch(sl, first) {
			break
		}
		if launched++; !parallel {
			await()
		}
	}
	for ; parallel && launched > 0; launched-- {
		await()
	}
	g.mu.Lock()
	if failed == nil && g.phase() == starting {
		g.enter(running)
		close(g.started)
		g.mu.Unlock()
		return nil
	}
	g.mu.Unlock()
	<-g.done
	close(g.started)
	if err := future.Cause(ctx); err != nil {
		return err
	}
	if reason := g.reason(); failed == nil || failed != reason { //nolint:errorlint // Shutdown came in between: a start that it calls off is no failure
		return because(ErrClosed, reason)
	}
	return failed
}

// launch starts a child unless the end has come.
func (g *generation) launch(sl *slot, first chan<- error) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.phase() != starting {
		return false
	}
	sl.launch(g.force, first)
	return true
}

func (g *generation) reason() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// stop begins the teardown, once; it does not wait.
func (g *generation) stop(cause error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.phase() == closing || g.phase() == closed {
		return
	}
	if g.phase() == unstarted {
		g.enter(closed)
		g.inbox.Close()
		g.kill()
		close(g.done)
		return
	}
	g.err = cause
	g.enter(closing)
	close(g.closing)
	g.stopping = task.Go(func(context.Context) { g.teardown() })
}

// teardown stops all children: in parallel, or the last one first.
func (g *generation) teardown() {
	g.unfollow()
	children := g.sup.present()
	stop := func(sl *slot) {
		stuck, killed := sl.stop(g.force, ErrClosed)
		g.mu.Lock()
		defer g.mu.Unlock()
		g.left.stuck = append(g.left.stuck, stuck...)
		g.left.killed = append(g.left.killed, killed...)
	}
	if g.sup.opts.strategy == OneForOne {
		var wg sync.WaitGroup
		for _, sl := range children {
			wg.Go(func() { stop(sl) })
		}
		wg.Wait()
	} else {
		for _, sl := range slices.Backward(children) {
			sl.gate.shut(ErrClosed)
		}
		for _, sl := range slices.Backward(children) {
			stop(sl)
		}
	}
	g.together.wait()
	g.awaitVerdicts()
	g.inbox.Close()
	g.mu.Lock()
	g.enter(closed)
	g.sup.events.emit(Event{Kind: EventShutdown, ProcID: -1, Err: g.err})
	g.mu.Unlock()
	g.kill()
	close(g.done)
}

// verdictWait is how long a verdict that was won may take to be delivered.
const verdictWait = time.Second

// awaitVerdicts waits for those that are on their way, such as a timeout of just
// now: whoever empties the inbox must meet them. A Send whose codec takes its
// time has no verdict yet, and is not waited for once we kill.
func (g *generation) awaitVerdicts() {
	quiet := g.inbox.Quiet()
	limit := time.NewTimer(verdictWait)
	defer limit.Stop()
	select {
	case <-quiet:
	case <-limit.C:
	case <-g.force.Done():
		awaitFor(quiet, lastGrace)
	}
}

// killedWait is how long a teardown that kills may take.
const killedWait = 2*(lastGrace+killWait) + verdictWait

// awaitKilled waits for the end of a teardown that kills. A Link made
// elsewhere may not keep its word, so even this has a limit; false if it was
// reached.
func (g *generation) awaitKilled() bool {
	if awaitFor(g.done, killedWait) {
		return true
	}
	var left []*StuckError
	for _, sl := range g.sup.present() {
		left = append(left, sl.abandoned.left()...)
		if stuck := sl.unfinished(); stuck != nil {
			left = append(left, stuck)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left.stuck = left
	return false
}

// remains reports whether something that could not be ended is still there.
func (g *generation) remains() bool {
	g.mu.Lock()
	stuck := slices.Clone(g.left.stuck)
	g.mu.Unlock()
	for _, sl := range g.sup.children() {
		for _, left := range sl.abandoned.left() {
			if slices.Contains(stuck, left) {
				return true
			}
		}
	}
	return false
}

// cutOff are the children that had to be killed.
func (g *generation) cutOff() []*StuckError {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.left.killed)
}

// unstopped is nil if everything stopped in time. After a time-out it names what
// had to be killed, too.
func (g *generation) unstopped(timeout error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	var errs []error
	if timeout != nil {
		errs = append(errs, timeout)
		slices.SortFunc(g.left.killed, func(a, b *StuckError) int { // those at work first
			return cmp.Or(cmp.Compare(len(b.Method), 0)-cmp.Compare(len(a.Method), 0), a.ProcID-b.ProcID)
		})
		for _, killed := range g.left.killed {
			errs = append(errs, killed)
		}
	}
	for _, stuck := range g.left.stuck {
		errs = append(errs, stuck)
	}
	return errors.Join(errs...)
}
