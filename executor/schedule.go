package executor

import (
	"errors"
	"slices"
	"time"

	"github.com/workerlink/supervisor"
)

// next waits for work for l, whose worker is up. It returns nil when l is to leave; why is then said in l.leaving.
func (x *Executor) next(l *lane) *chunk {
	limit := x.cfg.IdleTimeout
	for {
		x.mu.Lock()
		x.arrivedLocked(l)
		if x.leavesLocked(l) {
			if l.leaving != whyGone { // nobody comes for it before its death is counted
				x.goneLocked(l)
				x.staffLocked()
			}
			x.mu.Unlock()
			return nil
		}
		if x.state.queue.n > 0 {
			c := x.takeLocked(l)
			admitted := x.admitLocked()
			x.mu.Unlock()
			admitted.decide(nil)
			return c
		}
		x.state.crew.idle = append(x.state.crew.idle, l)
		x.mu.Unlock()
		if l.rest(limit) {
			limit = x.cfg.IdleTimeout
			continue
		}
		var left bool
		if left, limit = x.retire(l); left {
			return nil
		}
	}
}

// retire lets a lane leave that has been idle for long enough, unless it has just been called, or is one of those that
// stay. For how long it may rest again is returned.
func (x *Executor) retire(l *lane) (left bool, limit time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	c := &x.state.crew
	at := slices.Index(c.idle, l)
	switch {
	case at < 0:
		return false, x.cfg.IdleTimeout
	case len(c.lanes) > x.cfg.MinIdle:
		l.leaving = whyIdle
		x.goneLocked(l)
		return true, 0
	default:
		c.idle = slices.Delete(c.idle, at, at+1)
		return false, -1 // no further worker comes as long as this one is idle
	}
}

// leavesLocked reports whether l takes no more tasks.
func (x *Executor) leavesLocked(l *lane) bool {
	c := &x.state.crew
	switch {
	case l.leaving != "":
	case l.lost != nil:
		l.leaving = whyGone
	case x.overLocked():
		l.leaving = whyShutdown
	case !l.renewed && c.surplus() > 0:
		l.leaving = whyResized
	case l.replaced:
		l.leaving = whyRecycled
	case l.due > 0 && l.tasks >= l.due && !l.renewed:
		if !x.cfg.recycle.Rolling {
			l.leaving = whyRecycled
			break
		}
		l.renewed = true
		c.renewing++
		x.launchLocked(l)
	}
	return l.leaving != ""
}

// takeLocked takes a chunk from the head of the queue.
func (x *Executor) takeLocked(l *lane) *chunk {
	s := &x.state
	first := s.queue.head
	n := 1
	switch {
	case first.alone:
	case first.want > 0:
		n = min(first.want, maxChunk)
	default:
		n = min(x.paceLocked(first.function).size, (s.queue.n+len(s.crew.lanes)-1)/len(s.crew.lanes))
	}
	if l.due > 0 && !l.renewed {
		n = min(n, int(l.due-l.tasks))
	}
	c := newChunk(l, first)
	now := time.Time{}
	for t := first; t != nil && len(c.tasks) < n; t = s.queue.head {
		if t != first && !together(first, t) {
			break
		}
		s.queue.remove(t)
		t.state, t.wire = sent, place{c, len(c.tasks)}
		c.tasks = append(c.tasks, t)
		if !t.accepted.IsZero() {
			if now.IsZero() {
				now = time.Now()
			}
			s.stats.waits.add(now.Sub(t.accepted))
			t.accepted = time.Time{}
		}
	}
	l.chunk = c
	c.journal.reset(len(c.tasks))
	s.stats.running += len(c.tasks)
	l.tasks += uint64(len(c.tasks))
	return c
}

// backLocked puts tasks that were sent and not begun back to where they came from.
func (x *Executor) backLocked(tasks []*job) (verdicts []verdict) {
	for _, t := range slices.Backward(tasks) {
		err := x.closedLocked()
		if t.canceled != nil { // while it was nowhere
			err = t.canceled
		}
		if err != nil {
			verdicts = append(verdicts, x.settleLocked(t, t.failure(-1, t.attempts == 0, err)))
			continue
		}
		t.wire = place{}
		x.state.queue.pushFront(t)
	}
	x.staffLocked()
	return verdicts
}

// closedLocked says why nothing is executed any more, or returns nil.
func (x *Executor) closedLocked() error {
	if x.state.broken != nil {
		return x.state.broken
	}
	if x.dead.Err() != nil {
		return supervisor.ErrClosed
	}
	return nil
}

// cancel is called when nobody wants t any more.
func (x *Executor) cancel(t *job, why error) {
	x.mu.Lock()
	s := &x.state
	var verdicts []verdict
	switch t.state {
	case entering:
		t.canceled = why
	case queued:
		s.queue.remove(t)
		verdicts = append(verdicts, x.settleLocked(t, t.failure(-1, t.attempts == 0, why)))
	case delayed:
		s.delayed[t].Stop()
		delete(s.delayed, t)
		verdicts = append(verdicts, x.settleLocked(t, t.failure(-1, false, why)))
	case sent:
		verdicts = x.cancelSentLocked(t, why)
	}
	admitted := x.admitLocked()
	x.mu.Unlock()
	admitted.decide(nil)
	x.deliver(verdicts)
}

// cancelSentLocked is cancel for a task that is on the wire. One that is being executed gets its context ended, which
// is that of its chunk: so the others are taken from that first.
func (x *Executor) cancelSentLocked(t *job, why error) (verdicts []verdict) {
	c, at := t.wire.chunk, t.wire.at
	if c == nil { // its result is being read
		return nil
	}
	if c.journal.revoke(at) {
		x.state.stats.running--
		return []verdict{x.settleLocked(t, t.failure(c.lane.id, t.attempts == 0, why))}
	}
	switch c.journal.state(at) {
	case revoked: // somebody is about to put it back
		t.canceled = why
		return nil
	case done:
		return nil
	}
	verdicts = x.backLocked(x.revokeLocked(c))
	if c.journal.state(at) == begun && t.canceled == nil {
		t.canceled = why
		c.cancel(why)
	}
	return verdicts
}

// revokeLocked takes from c what has not begun; after that nothing of it will.
func (x *Executor) revokeLocked(c *chunk) (tasks []*job) {
	for i, t := range c.tasks {
		if t.wire.chunk == c && c.journal.revoke(i) {
			tasks = append(tasks, t)
		}
	}
	x.state.stats.running -= len(tasks)
	return tasks
}

// anyOf reports whether err is one of the others.
func anyOf(err error, others ...error) bool {
	return slices.ContainsFunc(others, func(other error) bool { return errors.Is(err, other) })
}
