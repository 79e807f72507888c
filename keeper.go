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
	if s.leaving.Load() { // Unregister, which has nothing to stop, came first
		if first != nil {
			first <- nil
		}
		return
	}
	s.err, s.again, s.done, s.held, s.history = nil, false, false, nil, restart.History{}
	s.stopBy = force
	s.gate.open()
	s.becomeLocked(StateStarting)
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.keeper = task.Go(func(context.Context) {
		defer cancel()
		s.keep(ctx, force, first)
	})
}

// lifeEnd is how a life ended.
type lifeEnd struct {
	life     *Life
	err      error
	first    bool   // nothing was up before it
	orderly  bool   // the child has chosen to end, without an error
	recycled string // why it was replaced; empty if it was not
}

// keep runs one life after the other until one is the last.
func (s *slot) keep(ctx, force context.Context, outcome chan<- error) {
	var next *Life // the successor of a life that was recycled, if it is ready already
	for first := true; ; first = false {
		life, err := next, error(nil)
		if next = nil; life == nil {
			life, err = s.start(ctx)
		}
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
		end := lifeEnd{life: life, err: err, first: first}
		switch {
		case up:
			end, next = s.oversee(ctx, force, life)
			end.first = first
		case err == nil: // told to stop while it started
			end.err = s.discard(life)
		}
		if !s.proceed(ctx, end) {
			s.drop(next)
			s.rest()
			return
		}
	}
}

// drop stops a successor that has nobody to follow; nil is none. It never had a
// request.
func (s *slot) drop(next *Life) {
	if next == nil {
		return
	}
	if stuck, ok := errors.AsType[*StuckError](s.discard(next)); ok {
		s.emit(Event{Kind: EventStuck, Incarnation: next.Incarnation(), Err: stuck})
		s.abandoned.add(stuck, remainsOf(next.link))
	}
}

// rest is the end of a keeper that was told to stop, after which nothing runs.
func (s *slot) rest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == StateStopping {
		s.becomeLocked(StateIdle)
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
			if maker := life.maker.Load(); maker != nil {
				stuck.Stack = stacksOf(*maker)
			}
			s.emit(Event{Kind: EventStuck, Err: stuck, Incarnation: life.Incarnation()})
			late := task.Go(func(context.Context) { // it may still come up, and must not stay
				t.Wait()
				if err == nil && link != nil {
					_ = link.Stop(alreadyEnded)
				}
			})
			s.abandoned.add(stuck, func() bool { return !isClosed(late.Done()) })
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

// lastChance waits a little for a start whose time is over. A supervisor below
// this one first stops in order those of its children that are up.
func (s *slot) lastChance(t *task.Task) bool {
	if b, ok := s.child.(*branch); ok {
		s.mu.Lock()
		by := s.stopBy
		s.mu.Unlock()
		limit, cancel := s.stopContext(by)
		defer cancel()
		return b.awaitEnd(limit, t.Done())
	}
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
	life.watch(s.cfg.watch)
	s.becomeLocked(StateUp)
	s.emit(Event{Kind: EventStarted, Incarnation: life.Incarnation(), Pid: pidOf(life.link)})
	return true
}

// discard stops a life that nobody wants any more.
func (s *slot) discard(life *Life) error {
	s.mu.Lock()
	ctx, cancel := s.stopContext(s.stopBy)
	s.hurry = cancel
	s.mu.Unlock()
	defer cancel()
	_ = life.link.Stop(ctx) // Wait returns the same error
	return life.link.Wait()
}

// oversee returns when a life that is up has ended, with its successor if that
// is ready already.
func (s *slot) oversee(ctx, force context.Context, life *Life) (end lifeEnd, next *Life) {
	end.life = life
	if !s.cfg.watch.recycle.on() {
		s.bury(&end)
		return end, nil
	}
	buried := task.Go(func(context.Context) { s.bury(&end) }) // its verdicts do not wait for a successor
	select {
	case <-buried.Done():
	case why := <-life.worn:
		var recycled string
		next, recycled = s.recycle(ctx, force, life, why, buried.Done())
		buried.Wait()
		if !failed(end.err) {
			end.recycled = recycled
		}
	}
	if next != nil && end.recycled == "" && s.sup.opts.strategy != OneForOne { // made beside what it has to follow
		s.drop(next)
		next = nil
	}
	return end, next
}

// bury waits for the end of a life, and gives what it left open its verdict.
func (s *slot) bury(end *lifeEnd) {
	end.err = end.life.link.Wait()
	end.life.unwatch()
	_, open := end.life.oldest()
	end.orderly = orderly(end.err, open)
	end.life.end(s.epitaph(end.err))
}

// failed reports whether a life that was asked to end did so for a reason of
// its own.
func failed(err error) bool {
	exit, ok := errors.AsType[*ExitError](err)
	return ok && (exit.Err != nil || exit.KilledBy == "")
}

// orderly reports whether a life that nobody had told to end did so of its own
// accord and in order: a process that exits with code 0 and owes no reply has.
func orderly(err error, open int) bool {
	exit, ok := err.(*ExitError) //nolint:errorlint // as the built-in kinds return it
	return err == nil || ok && open == 0 && exit.Pid != 0 && exit.Code == 0 && exit.KilledBy == "" && exit.Err == nil
}

// recyclePause is how long a life that has to go on, because its successor did
// not get ready, does so at least.
const recyclePause = 10 * time.Second

// recycle ends a life between two requests. It returns with an empty reason if
// the life ends for another one.
func (s *slot) recycle(ctx, force context.Context, life *Life, why string, ended <-chan struct{}) (next *Life, reason string) {
	for s.cfg.watch.recycle.Rolling {
		var err error
		if next, err = s.startBeside(ctx, ended); err == nil {
			break
		}
		if ctx.Err() == nil && !isClosed(ended) {
			s.emit(Event{Kind: EventStartFailed, Incarnation: next.Incarnation(), Err: err})
		}
		pause, cancel := context.WithTimeout(ctx, recyclePause)
		select {
		case <-pause.Done():
		case <-ended:
		}
		cancel()
		if ctx.Err() != nil || isClosed(ended) {
			return nil, ""
		}
	}
	select {
	case <-life.retire():
	case <-ended:
		return next, ""
	case <-ctx.Done():
		return next, ""
	}
	s.mu.Lock()
	meant := s.state == StateUp && !s.again
	s.mu.Unlock()
	if !meant || isClosed(ended) {
		return next, ""
	}
	limit, cancel := s.stopContext(force)
	defer cancel()
	_ = life.link.Stop(limit) // oversee gets the same from Wait
	return next, why
}

// startBeside is start of a successor, which is called off when the life that it
// is to follow ends before it is ready.
func (s *slot) startBeside(ctx context.Context, ended <-chan struct{}) (*Life, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	over := make(chan struct{})
	watch := task.Go(func(context.Context) {
		select {
		case <-ended:
			cancel(because(ErrCanceled, errors.New("supervisor: the life that it was to follow has ended")))
		case <-over:
		}
	})
	defer watch.Wait()
	defer close(over)
	return s.start(ctx)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// errEndedByItself is why a life ended that nobody asked to end and that had no
// error: its Serve returned nil.
var errEndedByItself = because(ErrClosed, errors.New("the child has ended"))

// epitaph is the verdict of the requests that a life left open.
func (s *slot) epitaph(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.state == StateStopping:
		return ErrClosed
	case s.again && s.held != nil:
		return s.held.cause
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
func (s *slot) proceed(ctx context.Context, end lifeEnd) bool {
	_, unstarted := errors.AsType[*StartError](end.err) // asks err, whose methods may be user code, so before the lock
	stuck, _ := errors.AsType[*StuckError](end.err)
	why := orErr(end.err, errEndedByItself)
	tooOften, gone := because(ErrRestartLimit, why), because(ErrClosed, why)
	s.mu.Lock()
	s.err = end.err
	s.report(end, unstarted, stuck)
	if !end.life.up.IsZero() { // a start that fails is no quiet time
		s.history = s.history.Started(end.life.up)
	}
	s.history = s.history.Ended(time.Now(), s.cfg.restart.policy())
	switch {
	case s.state == StateStopping:
		s.mu.Unlock()
		return false
	case s.again: // asked for, so it counts for nothing
		s.again = false
		switch {
		case s.held == nil:
		case s.cfg.restart.Type == Temporary:
			s.giveUpLocked(end.life, s.held.cause, s.held.cause)
			s.mu.Unlock()
			return false
		default: // the strategy says when to go on
			return s.waitUnlock(ctx, s.held.released)
		}
		s.becomeLocked(StateStarting)
		s.mu.Unlock()
		return true
	case end.recycled != "":
		s.counts.recycled++
		s.becomeLocked(StateStarting)
		s.mu.Unlock()
		return true
	case end.first && unstarted: // it never was up: whoever launched it is told
		s.endLocked(why, gone)
		s.mu.Unlock()
		return false
	}
	var d restart.Decision
	d, s.history = restart.Decide(s.cfg.restart.policy(), s.history, time.Now(), end.orderly, rand.Float64())
	if d.Again {
		s.counts.restarts++
		s.emit(Event{Kind: EventRestarting, Incarnation: end.life.Incarnation(), N: int64(d.Wait)})
		if s.sup.opts.strategy != OneForOne {
			s.held = newHold(nil)
			s.sup.gen.Load().together.fell(fallen{slot: s, due: time.Now().Add(d.Wait), why: why})
			return s.waitUnlock(ctx, s.held.released)
		}
		delay, wake := context.WithTimeout(ctx, d.Wait)
		defer wake()
		s.wake = wake
		return s.waitUnlock(ctx, delay.Done())
	}
	switch {
	case d.Limit:
		s.giveUpLocked(end.life, tooOften, tooOften)
	case end.orderly:
		s.done = true
		s.endLocked(why, gone)
		s.emit(Event{Kind: EventDone, Incarnation: end.life.Incarnation(), Pid: pidOf(end.life.link)})
	default:
		s.giveUpLocked(end.life, why, gone)
	}
	s.mu.Unlock()
	if d.Limit && s.cfg.restart.GiveUp == GiveUpSupervisor {
		s.sup.gen.Load().stop(tooOften)
	}
	return false
}

// waitUnlock releases the mutex and waits until the next life may start; false
// if the slot was told to stop.
func (s *slot) waitUnlock(ctx context.Context, until <-chan struct{}) bool {
	s.becomeLocked(StateWaiting)
	s.mu.Unlock()
	select {
	case <-until:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake, s.held = nil, nil
	if s.state == StateStopping {
		return false
	}
	s.becomeLocked(StateStarting)
	return true
}

// endLocked leaves the child ended: why is for those who look, refusal for those
// who send.
func (s *slot) endLocked(why, refusal error) {
	s.err = why
	s.gate.shut(refusal)
	s.becomeLocked(StateEnded)
}

// giveUpLocked ends the child for good after a life that was up.
func (s *slot) giveUpLocked(last *Life, why, refusal error) {
	s.endLocked(why, refusal)
	s.emit(Event{Kind: EventGivenUp, Incarnation: last.Incarnation(), Err: why})
}

// report tells the events how a life ended; the mutex is held.
func (s *slot) report(end lifeEnd, unstarted bool, stuck *StuckError) {
	e := Event{Kind: EventExited, Incarnation: end.life.Incarnation(), Pid: pidOf(end.life.link), Err: end.err}
	if stuck != nil && !unstarted { // else start has seen to it
		s.abandoned.add(stuck, remainsOf(end.life.link))
	}
	switch {
	case unstarted:
		e.Kind = EventStartFailed
	case s.life != end.life && stuck == nil:
		return // it never was up, and nobody was told that it was
	case stuck != nil && !gaveUp(end.life.link):
		e.Kind = EventStuck
	case s.state == StateStopping || s.again:
		e.Kind = EventStopped
	case end.recycled != "":
		e.Kind, e.Text = EventRecycled, end.recycled
	}
	s.emit(e)
}

// gaveUp reports whether a link is a supervisor that ended for a reason of its
// own, which says more than what it left behind.
func gaveUp(l Link) bool {
	b, ok := l.(*branchLink)
	return ok && b.gen.reason() != nil
}
