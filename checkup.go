package supervisor

import (
	"context"
	"sync"
	"time"

	"github.com/workerlink/supervisor/internal/task"
)

// healthy is the hook of objects that know whether they are well. It is called
// beside the requests, not between them, so that a long one is no illness.
type healthy interface {
	Health(ctx context.Context) error
}

// checkup calls the Health hook of one object: one call at a time, whose answer
// is that of all questions that came before it, so that a hook that takes its
// time does not pile up. The context of the call ends after the limit and with
// the life.
type checkup struct {
	object healthy
	limit  time.Duration
	ctx    context.Context
	cancel context.CancelFunc

	mu        sync.Mutex
	answers   []func(error) // of who waits for the call under way
	run       *task.Task    // the call under way; nil if there is none
	goroutine string        // that it runs on
	closed    bool          // none begins any more
}

func newCheckup(ctx context.Context, object healthy, limit time.Duration) *checkup {
	c := &checkup{object: object, limit: limit}
	c.ctx, c.cancel = context.WithCancel(ctx)
	return c
}

// ask calls answer with what the hook says, on another goroutine; never if the
// life is ending.
func (c *checkup) ask(answer func(error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.answers = append(c.answers, answer)
	if c.run == nil {
		c.run = task.Go(func(context.Context) { c.call() })
	}
}

func (c *checkup) call() {
	ctx, cancel := context.WithTimeoutCause(c.ctx, c.limit, ErrTimeout)
	defer cancel()
	err := contained(func() error {
		id := goroutineID()
		c.mu.Lock()
		c.goroutine = id
		c.mu.Unlock()
		return c.object.Health(ctx)
	})
	c.mu.Lock()
	answers := c.answers
	if c.closed { // its end may be the hook's answer, which nobody has asked for
		answers = nil
	}
	c.answers, c.run, c.goroutine = nil, nil, ""
	c.mu.Unlock()
	for _, answer := range answers {
		answer(err)
	}
}

// close ends the context and waits for the call under way.
func (c *checkup) close() {
	c.mu.Lock()
	c.closed = true
	run := c.run
	c.mu.Unlock()
	c.cancel()
	if run != nil {
		run.Wait()
	}
}

// busy reports whether the hook is running, and where.
func (c *checkup) busy() (goroutine string, running bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.goroutine, c.run != nil
}
