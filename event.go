package supervisor

import (
	"context"
	"sync"
	"time"

	"github.com/workerlink/supervisor/internal/task"
)

// EventKind says what happened.
type EventKind int

const (
	// EventStarted says that a life got ready.
	EventStarted EventKind = iota + 1
	// EventStartFailed says that a life did not get ready; Err says why.
	EventStartFailed
	// EventExited says that a life ended without being asked to; Err says how.
	EventExited
	// EventStopped says that a life ended because it was asked to.
	EventStopped
	// EventRestarting says that a new life follows; N is its delay in nanoseconds.
	EventRestarting
	// EventGivenUp says that no new life follows; Err says why.
	EventGivenUp
	// EventStuck says that a life could not be ended; Err is a [*StuckError].
	EventStuck
	// EventOutput is one line of a worker's output, in Text; N is 1 for its
	// stdout, 2 for its stderr.
	EventOutput
	// EventPanic says that a handler panicked; Err is a [*PanicError].
	EventPanic
	// EventLateReply says that a reply came after the verdict and was
	// discarded; N counts them for this child.
	EventLateReply
	// EventDropped says that N events were dropped before this one.
	EventDropped
	// EventShutdown says that a supervisor has stopped; Err is why, or nil.
	EventShutdown
)

// String returns the kind in one or two lower-case words.
func (k EventKind) String() string {
	if k < EventStarted || k > EventShutdown {
		return "unknown"
	}
	return [...]string{
		"started", "start failed", "exited", "stopped", "restarting", "given up",
		"stuck", "output", "panic", "late reply", "dropped", "shutdown",
	}[k-EventStarted]
}

// Event is one thing that happened. Fields that do not apply are zero.
type Event struct {
	Kind        EventKind
	Time        time.Time
	ProcID      int // -1 for events of the supervisor itself
	Name        string
	Incarnation uint64
	Pid         int
	Err         error
	Text        string
	N           int64
}

const eventQueueLimit = 1024

// eventQueue hands events to the user's function and to the log, in order, on
// a goroutine that lives only while there are any.
type eventQueue struct {
	take func(Event) // nil if nobody listens

	mu      sync.Mutex
	queue   []Event
	dropped int64
	drain   *task.Task // nil while idle
}

func newEventQueue(o *options) *eventQueue {
	var sinks []func(Event)
	if o.events != nil {
		sinks = append(sinks, o.events)
	}
	for _, core := range o.logs {
		sinks = append(sinks, func(e Event) { logEvent(core, e) })
	}
	q := &eventQueue{}
	if len(sinks) > 0 {
		q.take = func(e Event) {
			for _, sink := range sinks {
				sink(e)
			}
		}
	}
	return q
}

// emit never blocks.
func (q *eventQueue) emit(e Event) {
	if q.take == nil {
		return
	}
	e.Time = time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) >= eventQueueLimit {
		q.dropped++
		return
	}
	q.queue = append(q.queue, e)
	if q.drain == nil {
		q.drain = task.Go(func(context.Context) { q.run() })
	}
}

func (q *eventQueue) run() {
	for {
		q.mu.Lock()
		batch, dropped := q.queue, q.dropped
		if len(batch) == 0 && dropped == 0 {
			q.drain = nil
			q.mu.Unlock()
			return
		}
		q.queue, q.dropped = nil, 0
		q.mu.Unlock()
		for _, e := range batch {
			q.take(e)
		}
		if dropped > 0 {
			q.take(Event{Kind: EventDropped, Time: time.Now(), ProcID: -1, N: dropped})
		}
	}
}

// settle waits until the events so far are handed over, but not longer than d:
// the user's function may itself be waiting for the caller.
func (q *eventQueue) settle(d time.Duration) {
	q.mu.Lock()
	drain := q.drain
	q.mu.Unlock()
	if drain == nil {
		return
	}
	limit := time.NewTimer(d)
	defer limit.Stop()
	select {
	case <-drain.Done():
	case <-limit.C:
	}
}
