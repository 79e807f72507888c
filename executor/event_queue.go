package executor

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/task"
)

const eventLimit = 1024

// eventQueue hands events to the user's function, in order, on a goroutine that lives only while there are any.
type eventQueue struct {
	name string
	take func(Event) // nil if nobody listens

	mu      sync.Mutex
	queue   []Event
	dropped int64
	drain   *task.Task // nil while idle
}

func newEventQueue(name string, take func(Event)) *eventQueue {
	return &eventQueue{name: name, take: take}
}

// emit never blocks.
func (q *eventQueue) emit(e Event) {
	if q.take == nil {
		return
	}
	e.Time, e.Executor = time.Now(), q.name
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) >= eventLimit-1 {
		q.dropped++
		return
	}
	q.queue = append(q.queue, e)
	if q.drain == nil {
		q.drain = task.Go(func(context.Context) { q.run(nil) })
	}
}

// run hands over events and then those of the queue. The user's function may end the goroutine, with runtime.Goexit as a
// test does that fails: then another one goes on.
func (q *eventQueue) run(events []Event) {
	over := false
	defer func() {
		if !over {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.drain = task.Go(func(context.Context) { q.run(events) })
		}
	}()
	for {
		if len(events) == 0 {
			if events = q.next(); events == nil {
				over = true
				return
			}
		}
		e := events[0]
		events = events[1:]
		q.take(e)
	}
}

func (q *eventQueue) next() []Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.dropped > 0 {
		q.queue = append(q.queue, Event{Kind: EventDropped, Time: time.Now(), Executor: q.name, Worker: -1, N: q.dropped})
		q.dropped = 0
	}
	events := q.queue
	if q.queue = nil; events == nil {
		q.drain = nil
	}
	return events
}

// settle waits until the events so far are handed over, but not longer than limit.
func (q *eventQueue) settle(limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		q.mu.Lock()
		drain := q.drain
		q.mu.Unlock()
		if drain == nil {
			return
		}
		select {
		case <-drain.Done():
		case <-timer.C:
			return
		}
	}
}

// workerEvent takes the events of the workers' supervisor.
func (x *Executor) workerEvent(e supervisor.Event) {
	out := Event{Worker: e.ProcID, Pid: e.Pid, Err: e.Err, Text: e.Text, N: e.N}
	switch e.Kind {
	case supervisor.EventStarted:
		out.Kind = EventStarted
	case supervisor.EventRecycled:
		out.Kind = EventRecycled
		x.mu.Lock()
		x.state.stats.recycled++
		x.mu.Unlock()
	case supervisor.EventOutput:
		out.Kind = EventOutput
	case supervisor.EventExited:
		x.lost(e)
		return
	default:
		return
	}
	x.events.emit(out)
}

// lost is told that a worker has died. One that has work hears of it by the verdict of that.
func (x *Executor) lost(e supervisor.Event) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for l := range x.state.crew.lanes {
		if l.id != e.ProcID {
			continue
		}
		l.lost = &death{err: e.Err}
		c := &x.state.crew
		if at := slices.Index(c.idle, l); at >= 0 {
			c.idle = slices.Delete(c.idle, at, at+1)
			c.coming++
			l.call()
		}
	}
}
