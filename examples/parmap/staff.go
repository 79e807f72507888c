package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/workerlink/supervisor/executor"
)

// staff sees the workers come and go.
type staff struct {
	mu      sync.Mutex
	present map[int]bool // by id
	counts  map[executor.EventKind]int
	idle    int           // those that left because there was no work
	change  chan struct{} // holds a value if there may be news for the one that waits
}

func newStaff() *staff {
	return &staff{present: make(map[int]bool), counts: make(map[executor.EventKind]int), change: make(chan struct{}, 1)}
}

// see is called for each event of the executor.
func (s *staff) see(e executor.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[e.Kind]++
	switch e.Kind {
	case executor.EventStarted:
		s.present[e.Worker] = true
	case executor.EventLeft, executor.EventCrashed, executor.EventRecycled:
		delete(s.present, e.Worker)
		if e.Text == "idle" {
			s.idle++
		}
	}
	select {
	case s.change <- struct{}{}:
	default: // there is one already
	}
}

// gone waits until all workers of x have left by themselves.
func (s *staff) gone(ctx context.Context, x *executor.Executor) error {
	for x.Stats().Workers.Now > 0 || s.someone() {
		select {
		case <-s.change:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// someone reports whether a worker has not been seen to leave. The executor itself does not count one that is about to.
func (s *staff) someone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.present) > 0
}

// report is one line on where all workers have gone.
func (s *staff) report(c config) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("parmap: %d workers started, %d crashed, %d replaced for their memory, %d left after %v without work",
		s.counts[executor.EventStarted], s.counts[executor.EventCrashed], s.counts[executor.EventRecycled], s.idle, c.idle)
}
