package supervisor

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/workerlink/supervisor/internal/task"
)

// Strategy says which children are restarted together, as in OTP.
type Strategy int

const (
	// OneForOne restarts the child that ended. Children start and stop in parallel.
	OneForOne Strategy = iota
	// OneForAll restarts all children when one has to be restarted.
	OneForAll
	// RestForOne restarts the child and those that were registered after it.
	RestForOne
)

// String returns the strategy as OTP writes it.
func (s Strategy) String() string {
	if s < OneForOne || s > RestForOne {
		return fmt.Sprintf("Strategy(%d)", int(s))
	}
	return [...]string{"one-for-one", "one-for-all", "rest-for-one"}[s]
}

// WithStrategy says which children are restarted when one has to be; the default
// is [OneForOne]. Under the other two children start in the order of their
// registration and stop in the reverse order, one by one; the open requests of
// those that have to follow another one get an [ErrRestarted] that says which.
// A [Temporary] child stops with the others and is not started again: its
// requests get an [ErrClosed].
func WithStrategy(st Strategy) Option {
	return optionFunc(func(o *options) { o.strategy = st })
}

// hold is a child's part in being restarted together with others.
type hold struct {
	cause    error         // the verdict of its open requests; nil for a child that itself fell
	once     sync.Once     // closes released
	released chan struct{} // closed when its next life may start
}

func newHold(cause error) *hold { return &hold{cause: cause, released: make(chan struct{})} }

// fallen is a child whose policy wants another life.
type fallen struct {
	slot *slot
	due  time.Time // of the next life
	why  error
}

// together restarts the children of one generation that belong together. Its
// task runs only while there is something to do.
type together struct {
	gen *generation

	mu     sync.Mutex
	fallen []fallen // not taken yet
	run    *task.Task
	woken  chan struct{} // closed to end the delay; nil unless there is one
}

// fell is called by the keeper of a child that has ended, under its mutex; it
// waits to be released.
func (t *together) fell(f fallen) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fallen = append(t.fallen, f)
	if t.run == nil {
		t.run = task.Go(func(context.Context) { t.restart() })
	}
}

// wait waits for the end of what is under way; nothing begins any more.
func (t *together) wait() {
	t.mu.Lock()
	run := t.run
	t.mu.Unlock()
	if run != nil {
		run.Wait()
	}
}

// take returns who fell meanwhile; with none and nothing left to do the task is over.
func (t *together) take(left int) []fallen {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.fallen
	t.fallen = nil
	if len(all) == 0 && left == 0 {
		t.run = nil
	}
	return all
}

// restart stops who has to follow the fallen, waits, and starts all of them
// again, in order, until none falls any more.
func (t *together) restart() {
	waiting := make(map[*slot]bool) // stopped, and not released
	for {
		all := t.take(len(waiting))
		if len(all) == 0 && len(waiting) == 0 {
			return
		}
		var due time.Time
		for ; len(all) > 0; all = t.take(1) { // others may have fallen at the same time, or during the delay
			for _, f := range all {
				waiting[f.slot] = true
				if f.due.After(due) {
					due = f.due
				}
			}
			t.stopFollowers(all, waiting)
			if !t.pause(due) {
				return // who waits is stopped with the rest
			}
		}
		if t.release(waiting); isClosed(t.gen.closing) {
			return // as above
		}
	}
}

// stopFollowers stops the children that have to be restarted with the fallen,
// the last one first.
func (t *together) stopFollowers(all []fallen, waiting map[*slot]bool) {
	children := t.gen.sup.present()
	for i := len(children) - 1; i >= 0; i-- {
		sl := children[i]
		for _, f := range all {
			if waiting[sl] || t.gen.sup.opts.strategy == RestForOne && sl.id < f.slot.id {
				continue
			}
			end := ErrRestarted
			if sl.cfg.restart.Type == Temporary {
				end = ErrClosed
			}
			cause := fmt.Errorf("%w: with child %d%s, by the strategy %v: %s",
				end, f.slot.id, quoted(f.slot.cfg.name), t.gen.sup.opts.strategy, bare(f.why))
			if sl.follow(t.gen.force, cause) {
				waiting[sl] = true
			}
			break
		}
	}
}

// pause waits until the next lives are due, or somebody cannot wait for them;
// false if the generation ends.
func (t *together) pause(due time.Time) bool {
	woken := make(chan struct{})
	t.mu.Lock()
	t.woken = woken
	t.mu.Unlock()
	limit := time.NewTimer(time.Until(due))
	defer limit.Stop()
	select {
	case <-limit.C:
	case <-woken:
	case <-t.gen.closing:
	}
	return !isClosed(t.gen.closing)
}

// hurry ends the delay that is under way: all come back now.
func (t *together) hurry() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.woken != nil {
		close(t.woken)
		t.woken = nil
	}
}

// release starts who waits, in order, each when the one before it is up. It
// returns early when one falls again.
func (t *together) release(waiting map[*slot]bool) {
	for _, sl := range t.gen.sup.present() {
		if !waiting[sl] {
			continue
		}
		if isClosed(t.gen.closing) {
			return
		}
		delete(waiting, sl)
		if sl.release(); sl.settled() == StateWaiting {
			return
		}
	}
	clear(waiting) // unregistered meanwhile
}

// follow stops the life that is up, so that the child can be restarted with
// another one, and leaves it waiting, or ended if it is temporary; false if
// there is none.
func (s *slot) follow(force context.Context, cause error) bool {
	if s.settled() != StateUp {
		return false
	}
	s.mu.Lock()
	if s.state != StateUp {
		s.mu.Unlock()
		return false
	}
	life := s.life
	s.again, s.held = true, newHold(cause)
	s.mu.Unlock()
	life.withdrawAll(cause)
	limit, cancel := s.stopContext(force)
	defer cancel()
	_ = life.link.Stop(limit)                             // its failure is an event; a new life comes all the same
	s.await(func(st State) bool { return st != StateUp }) // the event comes before that of who is stopped next
	return true
}

// release lets a child that waits for it start.
func (s *slot) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held != nil && s.state == StateWaiting {
		s.held.once.Do(func() { close(s.held.released) })
		s.becomeLocked(StateStarting)
	}
}

// settled waits until the child is not starting, and returns its state.
func (s *slot) settled() State { return s.await(func(st State) bool { return st != StateStarting }) }

// await waits for a state. A keeper always comes to one: starts and stops are bounded.
func (s *slot) await(is func(State) bool) State {
	for {
		s.mu.Lock()
		state, changed := s.state, s.changed
		s.mu.Unlock()
		if is(state) {
			return state
		}
		<-changed
	}
}
