package supervisor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

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

	leaving   atomic.Bool // Unregister has begun: no further requests
	abandoned abandoned

	mu sync.Mutex
	slotState
}

// slotState is guarded by the slot's mutex.
type slotState struct {
	state    State
	life     *Life // while up or stopping; the last one otherwise
	err      error // why it has ended, or why the last life ended
	again    bool  // Restart wants a new life whatever the policy says
	restarts int
	history  restart.History
	keeper   *task.Task         // runs the lives; nil before the first
	cancel   context.CancelFunc // ends the start or the delay that is under way
	wake     context.CancelFunc // ends the delay only; nil unless waiting
	changed  chan struct{}      // closed at the next change of state
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

// launch starts the keeper. The end of force makes every later stop a kill.
// The outcome of the first start goes to first, which is nil or has room.
func (s *slot) launch(force context.Context, first chan<- error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.launchLocked(force, first)
}

func (s *slot) launchLocked(force context.Context, first chan<- error) {
	s.err, s.again, s.history = nil, false, restart.History{}
	s.gate.open()
	s.becomeLocked(StateStarting)
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.keeper = task.Go(func(context.Context) {
		defer cancel()
		s.keep(ctx, force, first)
	})
}

// keep runs one life after the other until one is the last.
func (s *slot) keep(ctx, force context.Context, outcome chan<- error) {
	for first := true; ; first = false {
		life, err := s.start(ctx)
		up := err == nil && s.rise(life)
		if first && outcome != nil {
			switch {
			case up || err != nil:
				outcome <- err
			default:
				outcome <- ErrClosed
			}
		}
		switch {
		case up:
			err = life.link.Wait()
			life.end(s.epitaph(err))
		case err == nil: // told to stop while it started
			err = s.discard(force, life)
		}
		if !s.proceed(ctx, life, err, first) {
			return
		}
	}
}

// start begins a life; its error is a *StartError. A Child that does not heed
// the end of its context is left behind.
func (s *slot) start(ctx context.Context) (*Life, error) {
	life := newLife(s)
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.startTimeout, ErrTimeout)
	defer cancel()
	var link Link
	var err error
	t := task.Go(func(context.Context) { link, err = s.child.Start(ctx, life) })
	select {
	case <-t.Done():
	case <-ctx.Done():
		if !s.lastChance(t) {
			stuck := &StuckError{ProcID: s.id, Name: s.cfg.name, Incarnation: life.Incarnation(), Method: "Factory"}
			s.emit(Event{Kind: EventStuck, Err: stuck, Incarnation: life.Incarnation()})
			s.abandoned.add(stuck, task.Go(func(context.Context) { // it may still come up, and must not stay
				t.Wait()
				if err == nil && link != nil {
					_ = link.Stop(alreadyEnded)
				}
			}).Done())
			return life, s.startError(life, because(future.Cause(ctx), stuck))
		}
	}
	if err == nil && link == nil {
		err = errors.New("supervisor: Child.Start returned neither a Link nor an error")
	}
	if err != nil {
		if cause := future.Cause(ctx); cause != nil && !errors.Is(err, cause) {
			err = because(cause, err)
		}
		return life, s.startError(life, err)
	}
	life.link, life.up = link, time.Now()
	return life, nil
}

// lastChance waits a little for a start whose time is over.
func (s *slot) lastChance(t *task.Task) bool {
	wait := lastGrace
	if s.cfg.kind == Process {
		wait += killWait
	}
	return awaitFor(t.Done(), wait)
}

func (s *slot) startError(life *Life, err error) *StartError {
	return &StartError{ProcID: s.id, Name: s.cfg.name, Incarnation: life.Incarnation(), Err: err}
}

// rise makes a started life the one that takes requests, unless the slot was
// told to stop meanwhile.
func (s *slot) rise(life *Life) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == StateStopping {
		return false
	}
	s.life = life
	s.becomeLocked(StateUp)
	s.emit(Event{Kind: EventStarted, Incarnation: life.Incarnation(), Pid: pidOf(life.link)})
	return true
}

// discard stops a life that nobody wants any more.
func (s *slot) discard(force context.Context, life *Life) error {
	ctx, cancel := s.stopContext(force)
	defer cancel()
	_ = life.link.Stop(ctx) // Wait returns the same error
	return life.link.Wait()
}

// errEndedByItself is why a life ended that nobody asked to end and that had no
// error. No built-in kind does.
var errEndedByItself = because(ErrClosed, errors.New("the child has ended"))

// epitaph is the verdict of the requests that a life left open.
func (s *slot) epitaph(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.state == StateStopping:
		return ErrClosed
	case s.again:
		return ErrRestarted
	case err == nil:
		return errEndedByItself
	default:
		return err
	}
}

// proceed records the end of a life and decides whether another one follows;
// if so it returns when its time has come.
func (s *slot) proceed(ctx context.Context, life *Life, err error, first bool) bool {
	_, unstarted := errors.AsType[*StartError](err) // asks err, whose methods may be user code, so before the lock
	stuck, _ := errors.AsType[*StuckError](err)
	why := orErr(err, errEndedByItself)
	givenUp := why
	if s.cfg.restart.Type == Permanent {
		givenUp = because(ErrRestartLimit, why)
	}
	s.mu.Lock()
	s.err = err
	s.report(life, unstarted, stuck)
	if s.state == StateStopping {
		s.becomeLocked(StateIdle)
		s.mu.Unlock()
		return false
	}
	if s.again { // asked for, so it counts for nothing
		s.again = false
		s.becomeLocked(StateStarting)
		s.mu.Unlock()
		return true
	}
	if first && unstarted { // it never was up: whoever launched it is told
		s.endLocked(why)
		s.mu.Unlock()
		return false
	}
	if !life.up.IsZero() { // a start that fails is no quiet time
		s.history = s.history.Started(life.up)
	}
	wait, again, history := restart.Decide(s.policy(), s.history, time.Now(), rand.Float64())
	s.history = history
	if !again {
		s.endLocked(givenUp)
		s.emit(Event{Kind: EventGivenUp, Incarnation: life.Incarnation(), Err: givenUp})
		s.mu.Unlock()
		return false
	}
	s.restarts++
	s.becomeLocked(StateWaiting)
	s.emit(Event{Kind: EventRestarting, Incarnation: life.Incarnation(), N: int64(wait)})
	delay, wake := context.WithTimeout(ctx, wait)
	s.wake = wake
	s.mu.Unlock()
	<-delay.Done()
	wake()
	return s.resume()
}

// resume goes on after a delay, unless that was ended by stop.
func (s *slot) resume() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake = nil
	if s.state == StateStopping {
		s.becomeLocked(StateIdle)
		return false
	}
	s.becomeLocked(StateStarting)
	return true
}

func (s *slot) endLocked(err error) {
	s.err = err
	s.gate.shut(err)
	s.becomeLocked(StateEnded)
}

func (s *slot) policy() restart.Policy {
	p := restart.Policy{Max: 5, Within: 10 * time.Second, Min: 100 * time.Millisecond, Cap: 30 * time.Second}
	if s.cfg.restart.Type == Temporary {
		p.Type = restart.Temporary
	}
	return p
}

// report tells the events how a life ended, which s.err says; the mutex is held.
func (s *slot) report(life *Life, unstarted bool, stuck *StuckError) {
	e := Event{Kind: EventExited, Incarnation: life.Incarnation(), Pid: pidOf(life.link), Err: s.err}
	switch {
	case unstarted:
		e.Kind = EventStartFailed
	case stuck != nil:
		e.Kind = EventStuck
		s.abandoned.add(stuck, goneWhen(life.link))
	case s.state == StateStopping || s.again:
		e.Kind = EventStopped
	}
	s.emit(e)
}

func (s *slot) emit(e Event) {
	e.ProcID, e.Name = s.id, s.cfg.name
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
// are still there, and with killed if the last one was cut off in its work
// because ctx ended first.
func (s *slot) stop(ctx context.Context, cause error) (stuck []*StuckError, killed *StuckError) {
	s.gate.shut(cause)
	s.mu.Lock()
	keeper := s.keeper
	if keeper == nil || s.state == StateIdle {
		s.mu.Unlock()
		return s.abandoned.left(), nil
	}
	if s.state == StateEnded {
		s.err = nil
		s.becomeLocked(StateIdle)
		s.mu.Unlock()
		keeper.Wait()
		return s.abandoned.left(), nil
	}
	life := s.life
	live := life != nil && (s.state == StateUp || s.state == StateStopping)
	if s.state != StateStopping {
		s.becomeLocked(StateStopping)
	}
	s.cancel()
	s.mu.Unlock()
	if live {
		killed = s.endLife(ctx, life)
	}
	keeper.Wait()
	return s.abandoned.left(), killed
}

// endLife stops a life; it returns an error if that was cut off in its work.
func (s *slot) endLife(ctx context.Context, life *Life) (killed *StuckError) {
	method, open := life.oldest()
	limit, cancel := s.stopContext(ctx)
	defer cancel()
	err := life.link.Stop(limit) // the keeper gets the same from Wait
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
	return &StuckError{ProcID: s.id, Name: s.cfg.name, Incarnation: life.Incarnation(), Method: method, Killed: true}
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
		s.keeper.Wait() // it has no more to do than return
		s.launchLocked(force, nil)
		s.mu.Unlock()
	case StateWaiting:
		s.wake()
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

// awaitUp waits for a life after the one seen.
func (s *slot) awaitUp(ctx context.Context, seen uint64) error {
	for {
		s.mu.Lock()
		state, life, err, changed := s.state, s.life, s.err, s.changed
		s.mu.Unlock()
		switch {
		case state == StateUp && life.Incarnation() > seen:
			return nil
		case state == StateEnded:
			return err
		case state == StateIdle || state == StateStopping:
			return because(ErrClosed, err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return future.Cause(ctx)
		}
	}
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
