package executor

import (
	"math/rand/v2"
	"time"

	"github.com/workerlink/supervisor"
)

// breaker counts failures of workers. The executor's mutex guards it.
type breaker struct {
	Breaker
	failures []time.Time // since the last success, those within the window
	streak   int         // since the last success
	until    time.Time   // no worker is started before
}

// succeeded says that a task has a value: the workers work.
func (b *breaker) succeeded() {
	if b.streak > 0 {
		b.failures, b.streak, b.until = b.failures[:0], 0, time.Time{}
	}
}

// failed counts one failure, and reports whether that is enough for an executor of up to workers.
func (b *breaker) failed(now time.Time, workers int) (enough bool) {
	kept := b.failures[:0]
	for _, at := range b.failures {
		if now.Sub(at) < b.Within {
			kept = append(kept, at)
		}
	}
	b.failures = append(kept, now)
	b.streak++
	if until := now.Add(delay(b.Backoff, b.streak)); until.After(b.until) {
		b.until = until
	}
	limit := b.Max
	if limit == 0 {
		limit = workers + breakerMargin
	}
	return limit > 0 && len(b.failures) > limit
}

// wait is how long no worker may be started.
func (b *breaker) wait(now time.Time) time.Duration { return max(0, b.until.Sub(now)) }

// What the zero values of a Backoff stand for, as in a supervisor's Restart.
const (
	defaultBackoffMin = 100 * time.Millisecond
	defaultBackoffMax = 30 * time.Second
	jitter            = 0.2
)

// delay is that before the nth attempt after the first one.
func delay(b supervisor.Backoff, n int) time.Duration {
	d := b.First
	if n > 1 {
		if d = b.Min; d == 0 {
			d = defaultBackoffMin
		}
		most := b.Max
		if most == 0 {
			most = max(defaultBackoffMax, b.First, b.Min)
		}
		for range n - 2 {
			if d = 2 * d; d >= most {
				d = most
				break
			}
		}
		d = min(d, most)
	}
	return time.Duration(float64(d) * (1 + jitter*(2*rand.Float64()-1)))
}

// failed counts a failure of a worker that goes on.
func (x *Executor) failed(err error) {
	x.mu.Lock()
	broken := x.failedLocked(err)
	x.mu.Unlock()
	x.abandonBroken(broken)
}

// failedLocked counts a failure of a worker. If that is one too many it returns why nothing is executed any more, for
// abandonBroken.
func (x *Executor) failedLocked(err error) error {
	s := &x.state
	if s.broken != nil || x.dead.Err() != nil {
		return nil
	}
	if !s.breaker.failed(time.Now(), s.crew.max) {
		x.staffLocked()
		return nil
	}
	s.broken = &becauseError{ErrBroken, err}
	close(s.tripped)
	if s.crew.hiring != nil {
		s.crew.hiring.Stop()
	}
	x.dismissLocked()
	x.events.emit(Event{Kind: EventBroken, Worker: -1, Err: err})
	return s.broken
}

// abandonBroken gives up what an executor has that has just broken; nil says that it has not.
func (x *Executor) abandonBroken(broken error) {
	if broken != nil {
		x.abandon(broken)
	}
}
