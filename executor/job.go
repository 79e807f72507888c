package executor

import (
	"time"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/future"
)

// job is one task: one call of a function.
//
//	entering -> queued -> sent -> settled      a verdict
//	               ^  \     |
//	               |   +----+---> settled      cancelled, closed, broken
//	               +--------+                  the worker died before it began, or it is retried at once
//	            delayed <---+                  it is retried later
//
// Whoever makes it settled, under the executor's mutex, gives its owner the verdict, after that.
type job struct {
	// Set once.
	function *function
	in       any
	owner    owner
	deadline time.Time // of the ctx it was submitted with; zero: none
	index    int       // for its owner
	want     int       // how many of its kind travel together; 0: as the executor thinks

	// Guarded by the executor's mutex.
	state      taskState
	prev, next *job // in the queue
	wire       place
	history
}

type taskState uint8

const (
	entering taskState = iota
	queued
	sent
	delayed
	settled
)

// place is where a task is that was sent.
type place struct {
	chunk *chunk
	at    int
}

// history is what a task has been through.
type history struct {
	attempts int       // how often it was begun
	crashes  int       // at how many crashes it was running
	lost     int       // how often its worker died before it began
	alone    bool      // it must not travel with others: it may be what kept them from arriving
	canceled error     // why nobody wants it any more, if that came while it was running or on its way
	accepted time.Time // if its wait is measured
}

// verdict is the end of a task.
type verdict struct {
	job   *job
	value any
	err   error
}

// owner takes the verdicts of tasks. It is called without a lock, once for each task.
type owner interface{ settle(verdicts []verdict) }

// failure is a verdict without a value.
func (t *job) failure(worker int, unexecuted bool, err error) verdict {
	return verdict{job: t, err: &TaskError{Task: t.function.name, Worker: worker, Attempts: t.attempts, Unexecuted: unexecuted, Err: err}}
}

// together reports whether b may travel with a, which goes first.
func together(a, b *job) bool {
	return a.function == b.function && a.deadline.Equal(b.deadline) && a.want == b.want && !a.alone && !b.alone
}

// futureOwner is the owner of a submitted task.
type futureOwner[Out any] struct {
	resolver future.Resolver[Out]
	unwatch  func() bool // nil if the task's ctx never ends
}

func (o *futureOwner[Out]) settle(verdicts []verdict) {
	for _, v := range verdicts {
		if o.unwatch != nil {
			o.unwatch()
		}
		if v.err != nil {
			o.resolver.Reject(v.err)
			continue
		}
		out, _ := v.value.(Out) // nil is the zero value of an interface type
		o.resolver.Resolve(out)
	}
}

// deliver gives verdicts to their owners, those of one owner in a row at once.
func deliver(verdicts []verdict) {
	for len(verdicts) > 0 {
		n := 1
		for n < len(verdicts) && verdicts[n].job.owner == verdicts[0].job.owner {
			n++
		}
		verdicts[0].job.owner.settle(verdicts[:n])
		verdicts = verdicts[n:]
	}
}

// isRefusal reports whether err is about the values of a request, which was not executed.
func isRefusal(call *supervisor.CallError) bool {
	if !call.Unexecuted {
		return false
	}
	return anyOf(call.Err, supervisor.ErrEncode, supervisor.ErrDecode, supervisor.ErrTooLarge, supervisor.ErrBadArgs, supervisor.ErrUnsupported)
}
