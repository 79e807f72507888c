package executor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/wire"
)

// chunk is one or more tasks of one function on their way through one worker.
type chunk struct {
	lane    *lane
	journal *journal
	tasks   []*job
	ctx     context.Context
	cancel  context.CancelCauseFunc
	free    context.CancelFunc // releases the deadline; nil without one

	mu   sync.Mutex // held while results are taken, so that they are in their order
	eye  *eye
	over bool // the worker has let go of it
}

func newChunk(l *lane, first *job) *chunk {
	c := &chunk{lane: l, journal: l.journal, eye: l.journal.eye()}
	base := context.Background()
	if !first.deadline.IsZero() {
		base, c.free = context.WithDeadline(base, first.deadline)
	}
	c.ctx, c.cancel = context.WithCancelCause(base)
	return c
}

func (c *chunk) function() *function { return c.tasks[0].function }

// limits are when the chunk is cut, 0 for never, and how long its handler may run.
func (c *chunk) limits() (cut, kill time.Duration) {
	kill = c.function().killAfter
	switch {
	case len(c.tasks) == 1:
		return 0, kill
	case c.tasks[0].want == 0:
		cut = cutAfter
	case kill > 0:
		cut = kill
	}
	if kill > 0 {
		kill += cut
	}
	return cut, kill
}

// harvest is what has become of the tasks of a chunk.
type harvest struct {
	finished  []verdict // the worker has; not settled yet
	running   *job      // the worker is executing it; nil if none
	untouched []*job    // it has not begun, and never will
	verdicts  []verdict // settled already, of what was put back or cannot be
}

// harvest takes what the worker has finished, and what it has not begun, which after the last harvest is the caller's
// and otherwise put back at once.
func (c *chunk) harvest(last bool) (h harvest) {
	x := c.lane.executor
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return h
	}
	c.over = last
	x.mu.Lock()
	h.untouched = x.revokeLocked(c) // first, so that nothing begins meanwhile
	passed := 0                     // of these
	for i, t := range c.tasks {
		if t.wire.chunk != c || t.state != sent {
			continue
		}
		switch word := c.journal.state(i); {
		case passed < len(h.untouched) && h.untouched[passed] == t:
			passed++
		case word == done && h.running == nil && passed == 0:
			t.attempts++
			t.wire = place{nil, i}
			h.finished = append(h.finished, verdict{job: t})
		case word == begun && h.running == nil && passed == 0:
			h.running = t
		case last: // no worker of ours leaves it like that
			c.eye.broken = fmt.Errorf("%w: a worker's journal says %d of task %d of %d", wire.ErrProtocol, word, i, len(c.tasks))
			h.verdicts = append(h.verdicts, x.settleLocked(t, t.failure(c.lane.id, false, c.eye.broken)))
		}
	}
	x.state.stats.running -= len(h.finished) + len(h.verdicts)
	if !last {
		if c.tasks[0].want == 0 {
			x.paceLocked(c.function()).size = 1
		}
		h.verdicts = append(h.verdicts, x.backLocked(h.untouched)...)
	}
	x.mu.Unlock()
	for i := range h.finished {
		v := &h.finished[i]
		v.value, v.err = c.eye.result(v.job.wire.at, v.job.function)
	}
	return h
}

// settle delivers results as they stand in the journal.
func (c *chunk) settle(results []verdict) {
	x := c.lane.executor
	for i := range results {
		v := &results[i]
		if d, ok := v.value.(*wire.Deferred); ok {
			v.value, v.err = decode(d)
		}
		if v.err != nil {
			*v = v.job.failure(c.lane.id, false, v.err)
		}
	}
	x.mu.Lock()
	for _, v := range results {
		if x.settleLocked(v.job, v); v.err == nil {
			x.state.breaker.succeeded()
		}
	}
	x.mu.Unlock()
	x.deliver(results)
}

// decode runs a user's code, on a goroutine of its own, which that may end.
func decode(d *wire.Deferred) (value any, err error) {
	err = errors.Join(supervisor.ErrDecode, errors.New("the goroutine of the decoder was ended"))
	task.Go(func(context.Context) { value, err = d.Decode() }).Wait()
	return value, err
}

// cut is called when the chunk takes longer than short tasks do: what is finished is delivered, what has not begun goes
// elsewhere.
func (c *chunk) cut() {
	h := c.harvest(false)
	c.lane.executor.deliver(h.verdicts)
	c.settle(h.finished)
}
