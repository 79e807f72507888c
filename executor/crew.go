package executor

import (
	"context"
	"slices"
	"time"

	"github.com/workerlink/supervisor/internal/task"
)

// crew are the lanes of an executor; its mutex guards them.
type crew struct {
	max      int
	lanes    map[*lane]bool
	idle     []*lane // those without work; the one that has been idle longest first
	coming   int     // lanes that are on their way to the queue, but for those that take another one's place
	starting int     // lanes without a worker yet, but for those that take another one's place
	renewing int     // lanes that go on until the one that takes their place is ready
	hiring   *time.Timer
}

// staffLocked sees to it that somebody comes for what is queued: an idle worker, the one that had work last first, or a
// new one if there may be more.
func (x *Executor) staffLocked() {
	c := &x.state.crew
	for n := len(c.idle); n > 0 && x.state.queue.n > c.coming-c.starting; n = len(c.idle) { // who is starting may take long
		l := c.idle[n-1]
		c.idle = c.idle[:n-1]
		c.coming++
		l.call()
	}
	for x.state.queue.n > c.coming && x.hireLocked() {
	}
	for len(c.lanes) < x.cfg.MinIdle && !x.overLocked() && x.hireLocked() {
	}
}

// overLocked reports whether there will be no work any more.
func (x *Executor) overLocked() bool {
	s := &x.state
	return s.broken != nil || s.closing && s.pending == 0 || x.dead.Err() != nil
}

// hireLocked starts a lane, if there may be one more now.
func (x *Executor) hireLocked() bool {
	c := &x.state.crew
	if len(c.lanes)-c.renewing >= c.max || x.dead.Err() != nil || x.state.broken != nil {
		return false
	}
	if wait := x.state.breaker.wait(time.Now()); wait > 0 {
		if c.hiring == nil {
			c.hiring = time.AfterFunc(wait, x.hireAgain)
		}
		return false
	}
	x.launchLocked(nil)
	return true
}

// hireAgain is called when the pause after a failure is over.
func (x *Executor) hireAgain() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.state.crew.hiring = nil
	x.staffLocked()
}

// launchLocked starts a lane, which may be to take the place of another one.
func (x *Executor) launchLocked(replaces *lane) {
	c := &x.state.crew
	l := newLane(x, replaces)
	c.lanes[l] = true
	if replaces == nil { // else the other one goes on meanwhile
		l.coming, l.starting = true, true
		c.coming++
		c.starting++
	}
	x.goLane(l.run)
}

// goLane runs a lane, or what is left of it, on a goroutine.
func (x *Executor) goLane(run func()) {
	x.running.Add(1)
	task.Go(func(context.Context) {
		defer x.running.Done()
		run()
	})
}

// dismissLocked tells the idle workers that are too many to leave; busy ones notice after their task.
func (x *Executor) dismissLocked() {
	c := &x.state.crew
	surplus := c.surplus()
	if x.overLocked() {
		surplus = len(c.lanes)
	}
	for surplus > 0 && len(c.idle) > 0 {
		l := c.idle[0]
		c.idle = c.idle[1:]
		if l.leaving = whyResized; x.overLocked() {
			l.leaving = whyShutdown
		}
		delete(c.lanes, l)
		c.coming++
		l.call()
		surplus--
	}
}

// surplus is how many lanes with workers are too many. Those that are starting come behind them: they leave as soon as
// they are ready, so that nobody who is at work makes way for somebody who is not yet.
func (c *crew) surplus() int { return len(c.lanes) - c.renewing - c.starting - c.max }

// arrivedLocked says that l has come to the queue. A call that it did not wait for, as its rest was over at the same
// moment, is answered with that: it must not end its next rest, while it still counts as idle.
func (x *Executor) arrivedLocked(l *lane) {
	select {
	case <-l.wake:
	default:
	}
	if l.starting {
		l.starting = false
		x.state.crew.starting--
	}
	if l.coming {
		l.coming = false
		x.state.crew.coming--
	}
}

// goneLocked takes l out of the crew.
func (x *Executor) goneLocked(l *lane) {
	c := &x.state.crew
	x.arrivedLocked(l)
	if l.renewed {
		l.renewed = false
		c.renewing--
	}
	delete(c.lanes, l)
	c.idle = slices.DeleteFunc(c.idle, func(other *lane) bool { return other == l })
}
