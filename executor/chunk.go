package executor

import (
	"context"
	"errors"
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

// harvest takes the results that the worker has finished, and what it has not begun; that is put back. What it is
// executing, if anything, is returned.
func (c *chunk) harvest(final bool) (running *job, untouched []*job) {
	x := c.lane.executor
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		return nil, nil
	}
	c.over = final
	var finished []verdict
	x.mu.Lock()
	for i, t := range c.tasks {
		if t.wire.chunk != c {
			continue
		}
		switch c.journal.state(i) {
		case done:
			t.attempts++
			t.wire = place{nil, i}
			finished = append(finished, verdict{job: t})
		case begun:
			running = t
		}
	}
	untouched = x.revokeLocked(c)
	x.state.stats.running -= len(finished)
	x.mu.Unlock()
	for i := range finished {
		v := &finished[i]
		v.value, v.err = c.eye.result(v.job.wire.at, v.job.function)
	}
	c.mu.Unlock()
	c.settle(finished)
	return running, untouched
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
		x.settleLocked(v.job, v)
	}
	if len(results) > 0 {
		x.state.breaker.succeeded()
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
	_, untouched := c.harvest(false)
	x := c.lane.executor
	x.mu.Lock()
	if c.tasks[0].want == 0 {
		x.paceLocked(c.function()).size = 1
	}
	verdicts := x.backLocked(untouched)
	x.mu.Unlock()
	x.deliver(verdicts)
}
