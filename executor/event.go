package executor

import (
	"fmt"
	"time"
)

// EventKind says what happened.
type EventKind int

const (
	// EventStarted says that a worker is ready.
	EventStarted EventKind = iota + 1
	// EventStartFailed says that a worker did not get ready, or could not make an object; Err says why.
	EventStartFailed
	// EventCrashed says that a worker died; Err says how, Task what it was executing, if anything.
	EventCrashed
	// EventLeft says that a worker has ended because it was told to; Text says why: idle, resized, shut down.
	EventLeft
	// EventRecycled says that a worker was replaced for the reason in Text; it was well.
	EventRecycled
	// EventOutput is a line of a worker's output, in Text; N is 1 for its stdout, 2 for its stderr.
	EventOutput
	// EventRetry says that Task is executed again after the delay of N nanoseconds; Err says why.
	EventRetry
	// EventPoison says that Task is not tried again; Err is how its last worker died.
	EventPoison
	// EventResized says that there are now at most N workers.
	EventResized
	// EventBroken says that the executor is broken; Err says why.
	EventBroken
	// EventRotated says that another executor has taken the name; Text is the [Reason].
	EventRotated
	// EventShutdown says that the executor has ended.
	EventShutdown
	// EventDropped says that N events were dropped before this one.
	EventDropped
)

// String returns the kind in one or two lower-case words.
func (k EventKind) String() string {
	if k < EventStarted || k > EventDropped {
		return fmt.Sprintf("EventKind(%d)", int(k))
	}
	return [...]string{
		"started", "start failed", "crashed", "left", "recycled", "output", "retry", "poison", "resized", "broken",
		"rotated", "shutdown", "dropped",
	}[k-EventStarted]
}

// Event is one thing that happened to an executor. Fields that do not apply are zero.
type Event struct {
	Kind     EventKind
	Time     time.Time
	Executor string // its name
	Worker   int    // the worker's id; -1 for events of the executor itself
	Pid      int
	Task     string // the name of a function
	Err      error
	Text     string
	N        int64
}
