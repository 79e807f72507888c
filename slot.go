package supervisor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/workerlink/supervisor/future"
	"github.com/workerlink/supervisor/internal/restart"
	"github.com/workerlink/supervisor/internal/task"
)

// State is where a child is between its lives.
//
//	idle -> starting -> up -> waiting -> starting …
//	          |          |       |
//	          +----------+-------+--> ended     it died and does not come back by itself
//	          +----------+-------+--> stopping -> idle
//
// Restart takes a child from ended to starting, the end of the supervisor to idle.
type State int

// The states of a child.
const (
	StateIdle     State = iota // not started, or stopped in order
	StateStarting              // a life is being started
	StateUp                    // a life takes requests
	StateWaiting               // a life has ended and the next one is delayed
	StateStopping              // told to stop
	StateEnded                 // not coming back by itself; Restart brings it back
)

// String returns the state in lower case.
func (s State) String() string {
	if s < StateIdle || s > StateEnded {
		return fmt.Sprintf("State(%d)", int(s))
	}
	return [...]string{"idle", "starting", "up", "waiting", "stopping", "ended"}[s]
}

// MarshalText returns the state in lower case.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// resolver is a Child that checks requests before anything is sent.
type resolver interface{ resolve(r *Request) error }

// preparer is a Child whose arguments are copied on the caller's goroutine,
// which may run user code. It returns the room they take.
type preparer interface {
	prepare(r *Request) (size int64, err error)
}

// slot is one child of a supervisor, through all its lives.
type slot struct {
	sup   *Supervisor
	id    int // set before the slot can be found
	cfg   childConfig
	child Child
	gate  *gate
	late  atomic.Int64 // replies that came after the verdict
	past  history

	leaving   atomic.Bool // Unregister has begun: no further requests
	abandoned abandoned

	mu sync.Mutex
	slotState
}

// slotState is guarded by the slot's mutex.
type slotState struct {
	state   State
	life    *Life // while up or stopping; the last one otherwise
	err     error // why it has ended, or why the last life ended
	again   bool  // Restart wants a new life whatever the policy says
	done    bool  // it has ended in order, and its policy wants no other life
	counts  lifeCounts
	history restart.History
	held    *hold         // the strategy has a part in when the next life comes; or nil
	changed chan struct{} // closed at the next change of state
	keeping
}

// keeping is how the keeper of a child is reached.
type keeping struct {
	keeper *task.Task         // runs the lives; nil before the first
	cancel context.CancelFunc // ends the start or the delay that is under way
	hurry  context.CancelFunc // makes the last stop of a life that never was up a kill; nil before the first
	wake   context.CancelFunc // ends the delay only; nil unless waiting for it
	stopBy context.Context    // its end makes the stop of a life that is just starting a kill
}

// lifeCounts are over all lives of a child.
type lifeCounts struct {
	restarts int // by the policy
	recycled int
}

func newSlot(sup *Supervisor, cfg childConfig) *slot {
	s := &slot{sup: sup, cfg: cfg, gate: newGate(cfg.limits)}
	s.changed = make(chan struct{})
	return s
}

// become changes the state; the mutex is held.
func (s *slot) becomeLocked(state State) {
	s.state = state
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *slot) emit(e Event) {
	e.ProcID, e.Name = s.id, s.cfg.name
	s.past.addEvent(e)
	s.sup.events.emit(e)
}

func (s *slot) countLate(l *Life, method string) {
	s.emit(Event{Kind: EventLateReply, Incarnation: l.Incarnation(), Text: method, N: s.late.Add(1)})
}

// pidOf is the process id behind a link, or 0.
func pidOf(l Link) int {
	if p, ok := l.(interface{ pid() int }); ok {
		return p.pid()
	}
	return 0
}

// alreadyEnded makes a Stop kill at once.
var alreadyEnded = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// stopContext is how long an orderly end may take.
func (s *slot) stopContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.cfg.stop.total())
}

// stop ends the child for good: no further life, requests get cause. It
// returns when the keeper has ended: with the lives that could not be ended and
// are still there, and with what was cut off in its work because ctx ended
// first: the last life, or those below a branch.
func (s *slot) stop(ctx context.Context, cause error) (stuck, killed []*StuckError) {
	s.gate.shut(cause)
	s.mu.Lock()
	keeper := s.keeper
	if keeper == nil || s.state == StateIdle {
		s.mu.Unlock()
		return s.abandoned.left(), nil
	}
	if s.state == StateEnded {
		s.stopBy = ctx
		s.becomeLocked(StateIdle)
		s.mu.Unlock()
		s.awaitKeeper(ctx, keeper)
		return s.abandoned.left(), nil
	}
	life := s.life
	live := life != nil && (s.state == StateUp || s.state == StateStopping)
	if s.state != StateStopping {
		s.becomeLocked(StateStopping)
	}
	s.stopBy = ctx
	s.cancel()
	s.mu.Unlock()
	if live {
		killed = s.endLife(ctx, life)
	}
	s.awaitKeeper(ctx, keeper)
	return s.abandoned.left(), killed
}

// awaitKeeper waits for a keeper that was told to stop. It may have a successor
// to stop, which the end of ctx makes a kill.
func (s *slot) awaitKeeper(ctx context.Context, keeper *task.Task) {
	defer context.AfterFunc(ctx, func() {
		s.mu.Lock()
		hurry := s.hurry
		s.mu.Unlock()
		if hurry != nil {
			hurry()
		}
	})()
	keeper.Wait()
}

// endLife stops a life, and returns what was cut off in its work by that.
func (s *slot) endLife(ctx context.Context, life *Life) (killed []*StuckError) {
	method, open := life.oldest()
	limit, cancel := s.stopContext(ctx)
	defer cancel()
	err := life.link.Stop(limit) // the keeper gets the same from Wait
	if b, ok := life.link.(*branchLink); ok {
		return b.gen.cutOff()
	}
	if _, stuck := errors.AsType[*StuckError](err); stuck || ctx.Err() == nil {
		return nil
	}
	cut := open > 0
	if l, ok := life.link.(cutter); ok {
		method, cut = l.cutOff()
	}
	if !cut {
		return nil
	}
	return []*StuckError{{ProcID: s.id, Name: s.cfg.name, Incarnation: life.Incarnation(), Method: method, Killed: true}}
}

// cutter is a link that knows whether Stop had to cut it off in its work, and
// in which method.
type cutter interface {
	cutOff() (method string, cut bool)
}

// restart ends the life that is up, if there is one, and returns when a later
// one is up, the slot has ended, or ctx has.
func (s *slot) restart(ctx, force context.Context) error {
	s.mu.Lock()
	seen := uint64(0)
	if s.life != nil {
		seen = s.life.Incarnation()
	}
	switch s.state {
	case StateIdle, StateStopping:
		s.mu.Unlock()
		return ErrClosed
	case StateEnded:
		if keeper := s.keeper; !isClosed(keeper.Done()) { // it may have a successor to stop
			s.mu.Unlock()
			select {
			case <-keeper.Done():
			case <-ctx.Done():
				return future.Cause(ctx)
			}
			return s.restart(ctx, force)
		}
		s.launchLocked(force, nil)
		s.mu.Unlock()
	case StateWaiting:
		switch {
		case s.wake != nil:
			s.wake()
		case s.held != nil:
			s.sup.gen.Load().together.hurry()
		}
		s.mu.Unlock()
	case StateStarting:
		s.mu.Unlock()
	case StateUp:
		life := s.life
		first := !s.again
		s.again = true
		s.mu.Unlock()
		if first {
			life.withdrawAll(ErrRestarted)
		}
		limit, cancel := s.stopContext(ctx)
		_ = life.link.Stop(limit) // its failure is an event; a new life comes all the same
		cancel()
	}
	return s.awaitUp(ctx, seen)
}

// awaitUp waits for a life after the one seen. It may be over by the time.
func (s *slot) awaitUp(ctx context.Context, seen uint64) error {
	for {
		s.mu.Lock()
		state, life, err, changed := s.state, s.life, s.err, s.changed
		s.mu.Unlock()
		switch {
		case state == StateIdle || state == StateStopping:
			return because(ErrClosed, err)
		case life != nil && life.Incarnation() > seen:
			return nil
		case state == StateEnded:
			return forGood(err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return future.Cause(ctx)
		}
	}
}

// forGood is what requests to a child get that has ended and does not come back
// by itself.
func forGood(why error) error {
	if errors.Is(why, ErrRestartLimit) {
		return why
	}
	return because(ErrClosed, why)
}

// unfinished describes a slot whose stop has not come to its end.
func (s *slot) unfinished() *StuckError {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == StateIdle || s.state == StateEnded {
		return nil
	}
	stuck := &StuckError{ProcID: s.id, Name: s.cfg.name, Method: s.state.String()}
	if s.life != nil {
		stuck.Incarnation = s.life.Incarnation()
	}
	return stuck
}
