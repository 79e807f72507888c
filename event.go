package supervisor

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/workerlink/supervisor/internal/lines"
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
	// EventRestarting says that a new life follows; N is its delay in nanoseconds,
	// so that time.Duration(N) is the delay.
	EventRestarting
	// EventGivenUp says that no new life follows the end of one that failed, or
	// had to stop with others; Err says why.
	EventGivenUp
	// EventStuck says that a life could not be ended; Err is a [*StuckError].
	EventStuck
	// EventOutput is one line of a worker's output, in Text; N is 1 for its
	// stdout, 2 for its stderr.
	EventOutput
	// EventPanic says that the handler of the method in Text panicked; Err is a
	// [*PanicError].
	EventPanic
	// EventLateReply says that a reply came after the verdict and was
	// discarded; N counts them for this child, Text is the method.
	EventLateReply
	// EventDropped says that N events were dropped before this one.
	EventDropped
	// EventHung says that a life is ended because it hangs: a handler outran its
	// KillAfter, or Liveness failed. Err says which, Text has the stacks.
	EventHung
	// EventRecycled says that a life was replaced for the reason in Text; it was well.
	EventRecycled
	// EventShutdown says that a supervisor has stopped; Err is why, or nil.
	EventShutdown
	// EventDone says that a child whose life ended in order is not started again,
	// because its [Restart] says so.
	EventDone
)

// String returns the kind in one or two lower-case words.
func (k EventKind) String() string {
	if k < EventStarted || k > EventDone {
		return "unknown"
	}
	return [...]string{
		"started", "start failed", "exited", "stopped", "restarting", "given up",
		"stuck", "output", "panic", "late reply", "dropped", "hung", "recycled", "shutdown", "done",
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

// String returns the event as one line for people, without its time: whose it
// is, what happened, and the first line of what there is to say of it. What a
// terminal would obey is escaped. The text is not for parsing.
func (e Event) String() string {
	var b strings.Builder
	if e.ProcID < 0 {
		b.WriteString("supervisor")
	} else {
		fmt.Fprintf(&b, "child %d%s", e.ProcID, quoted(e.Name))
	}
	if e.Incarnation != 0 {
		fmt.Fprintf(&b, ", life %d", e.Incarnation)
	}
	if e.Pid != 0 {
		fmt.Fprintf(&b, ", pid %d", e.Pid)
	}
	b.WriteString(": " + e.Kind.String())
	if more := e.more(); more != "" {
		b.WriteString(e.separator() + more)
	}
	if e.Err != nil {
		b.WriteString(": " + oneLine(strings.TrimPrefix(errorText(e.Err), "supervisor: ")))
	}
	return b.String()
}

// more is what Text and N say, by the kind.
func (e Event) more() string {
	text := oneLine(e.Text)
	switch e.Kind {
	case EventRestarting:
		return e.delay()
	case EventDropped:
		return strconv.FormatInt(e.N, 10) + " events"
	case EventLateReply:
		return fmt.Sprintf("%s, %d so far", text, e.N)
	case EventHung: // its stacks; Err says more
		return ""
	default:
		return text
	}
}

func (e Event) separator() string {
	switch e.Kind {
	case EventPanic:
		return " in "
	case EventRestarting, EventDropped:
		return " "
	default:
		return ": "
	}
}

// delay is the N of EventRestarting in words.
func (e Event) delay() string { return "in " + time.Duration(e.N).String() }

// oneLine is the first line of a text, safe to print.
func oneLine(s string) string { return lines.Clean([]byte(firstLine(s))) }

const eventQueueLimit = 1024

// eventQueue hands events to the user's function and to the log, in order, on
// a goroutine that lives only while there are any.
type eventQueue struct {
	take func(Event) // nil if nobody listens

	mu      sync.Mutex
	queue   []Event
	taken   int        // queue[:taken] are handed over
	dropped int64      // since the last event in the queue
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
	room := eventQueueLimit - (len(q.queue) - q.taken)
	if room <= 0 || q.dropped > 0 && room == 1 { // that one is for the event about them
		q.dropped++
		return
	}
	q.reportDroppedLocked()
	q.queue = append(q.queue, e)
	if q.drain == nil {
		q.drain = task.Go(func(context.Context) { q.run() })
	}
}

func (q *eventQueue) reportDroppedLocked() {
	if q.dropped > 0 {
		q.queue = append(q.queue, Event{Kind: EventDropped, Time: time.Now(), ProcID: -1, N: q.dropped})
		q.dropped = 0
	}
}

// run hands events over. The user's function may end the goroutine by
// runtime.Goexit, as a test does that fails: then another one goes on.
func (q *eventQueue) run() {
	over := false
	defer func() {
		if !over {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.drain = task.Go(func(context.Context) { q.run() })
		}
	}()
	for {
		e, ok := q.next()
		if !ok {
			over = true
			return
		}
		q.take(e)
	}
}

// next returns what is to be handed over next; at the end the drain is over.
func (q *eventQueue) next() (Event, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.taken == len(q.queue) {
		q.queue, q.taken = q.queue[:0], 0
		q.reportDroppedLocked()
	}
	if len(q.queue) == 0 {
		q.queue, q.drain = nil, nil
		return Event{}, false
	}
	e := q.queue[q.taken]
	q.queue[q.taken] = Event{}
	q.taken++
	if q.taken == eventQueueLimit {
		q.queue, q.taken = append(q.queue[:0], q.queue[q.taken:]...), 0
	}
	return e, true
}

// settle waits until the events so far are handed over, but not longer than d:
// the user's function may itself be waiting for the caller.
func (q *eventQueue) settle(d time.Duration) {
	for limit := time.Now().Add(d); ; {
		q.mu.Lock()
		drain := q.drain
		q.mu.Unlock()
		if drain == nil || !awaitFor(drain.Done(), time.Until(limit)) {
			return
		}
	}
}
