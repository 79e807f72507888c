package supervisor

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/workerlink/supervisor/future"
	"github.com/workerlink/supervisor/internal/restart"
	"github.com/workerlink/supervisor/internal/task"
)

// launch starts the keeper. The end of force makes every later stop a kill.
// The outcome of the first start goes to first, which is nil or has room.
func (s *slot) launch(force context.Context, first chan<- error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.launchLocked(force, first)
}

func (s *slot) launchLocked(force context.Context, first chan<- error) {
	if s.leaving.Load() { // Unregister, which had nothing to stop, came first
		if first != nil {
			first <- nil
		}
		return
	}
	s.err, s.again, s.history = nil, false, restart.History{}
	s.stopBy = force
	s.gate.open()
	s.becomeLocked(StateStarting)
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.keeper = task.Go(func(context.Context) {
		defer cancel()
		s.keep(ctx, first)
	})
}

// keep runs one life after the other until one is the last.
func (s *slot) keep(ctx context.Context, outcome chan<- error) {
	for first := true; ; first = false {
		life, err := s.start(ctx)
		up := err == nil && s.rise(life)
		if first && outcome != nil {
			switch {
			case s.leaving.Load(): // whoever unregisters it knows
				outcome <- nil
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
			err = s.discard(life)
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

// startGrace is how long a factory may take to notice that its time is over. On
// a busy machine even one that does nothing may need some of it.
const startGrace = time.Second

// lastChance waits a little for a start whose time is over.
func (s *slot) lastChance(t *task.Task) bool {
	wait := startGrace
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
func (s *slot) discard(life *Life) error {
	s.mu.Lock()
	stopBy := s.stopBy
	s.mu.Unlock()
	ctx, cancel := s.stopContext(stopBy)
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
	case s.life != life && stuck == nil:
		return // it never was up, and nobody was told that it was
	case stuck != nil:
		e.Kind = EventStuck
		s.abandoned.add(stuck, goneWhen(life.link))
	case s.state == StateStopping || s.again:
		e.Kind = EventStopped
	}
	s.emit(e)
}
