package executor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/workerlink/supervisor"
)

// lane is one worker, from its start to its end, and the goroutine that gives it its tasks: a child of the executor's
// supervisor that has one life, but for those that the supervisor recycles.
type lane struct {
	// Set once.
	executor *Executor
	wake     chan struct{} // has one place
	replaces *lane         // leaves when this one is ready; nil if none does

	// The lane's own.
	journal *journal
	timer   *time.Timer // for rests

	// Guarded by the executor's mutex.
	id       int    // of the child; -1 before it has one
	chunk    *chunk // that its worker has; nil if none
	coming   bool   // on its way to the queue
	starting bool   // as the crew counts it
	leaving  string // why it takes no more tasks; empty if it does
	lost     *death // the worker died between two chunks; nil if it did not
	wear
}

// wear is how a worker comes to be recycled.
type wear struct {
	tasks    uint64 // that it was given
	due      uint64 // after how many; 0: never
	renewed  bool   // another lane is getting ready to take its place
	replaced bool   // and is ready
}

// firstFile is the descriptor that a worker has the first of Proc.ExtraFiles as.
const firstFile = 6

// death is how a worker died.
type death struct {
	err  error
	job  *job // that it was executing; nil if none
	hung bool // it was killed because that task took longer than its KillAfter
}

// Why workers leave.
const (
	whyIdle     = "idle"
	whyResized  = "resized"
	whyShutdown = "shut down"
	whyRecycled = "recycled"
	whyGone     = "gone"
)

func newLane(x *Executor, replaces *lane) *lane {
	l := &lane{executor: x, replaces: replaces, wake: make(chan struct{}, 1), id: -1}
	if n := x.cfg.recycle.MaxRequests; n > 0 {
		l.due = max(1, n-uint64(float64(n)*rand.Float64()/10))
	}
	return l
}

// call wakes a lane that rests. It is on its way then; the executor's mutex is held.
func (l *lane) call() {
	l.coming = true
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// rest waits to be called; false if limit came first. A negative limit never comes.
func (l *lane) rest(limit time.Duration) bool {
	if limit < 0 {
		<-l.wake
		return true
	}
	if l.timer == nil {
		l.timer = time.NewTimer(limit)
	} else {
		l.timer.Reset(limit)
	}
	defer l.timer.Stop()
	select {
	case <-l.wake:
		return true
	case <-l.timer.C:
		return false
	}
}

// run is the lane's goroutine.
func (l *lane) run() {
	if err := l.start(); err != nil {
		l.notStarted(err)
		return
	}
	l.takePlace()
	l.employ(l.work)
}

// employ does work until the worker is to leave or has died, and ends it. A user's code that encodes an argument may end
// the goroutine, with runtime.Goexit: then another one goes on.
func (l *lane) employ(work func() *death) {
	returned := false
	defer func() {
		if !returned {
			l.executor.goLane(func() { l.employ(l.goOn) })
		}
	}()
	died := work()
	returned = true
	if died != nil {
		l.died(died)
		if _, stuck := errors.AsType[*supervisor.StuckError](died.err); stuck {
			return // it stays a child, so that Shutdown can say whether it is still there
		}
	}
	l.end()
}

// work gives the worker one chunk after the other, until it is to leave or dies.
func (l *lane) work() *death {
	for c := l.executor.next(l); c != nil; c = l.executor.next(l) {
		if died := l.execute(c); died != nil {
			return died
		}
	}
	return l.lost
}

// goOn is work after the goroutine that should have sent a chunk was ended.
func (l *lane) goOn() *death {
	err := fmt.Errorf("%w: the goroutine of the encoder was ended", supervisor.ErrEncode)
	if died := l.digest(l.chunk, supervisor.RecvPayload{}, &supervisor.CallError{ProcID: l.id, Unexecuted: true, Err: err}, 0); died != nil {
		return died
	}
	return l.work()
}

// start brings the worker up.
func (l *lane) start() error {
	x := l.executor
	var err error
	if l.journal, err = newJournal(x.cfg.child.Process); err != nil {
		return err
	}
	opts := slices.Clone(x.cfg.others)
	arg := setup{local: l.journal, executor: x}
	recycle := x.cfg.recycle
	recycle.MaxRequests = 0 // the lane counts
	recycle.Rolling = recycle.Rolling && (recycle.MaxAge > 0 || recycle.MaxMemory > 0)
	if x.cfg.child.Process {
		p := x.cfg.proc
		p.Env = append(slices.Clone(p.Env), depthVariable+"="+strconv.Itoa(depth+1))
		p.ExtraFiles = append(slices.Clone(p.ExtraFiles), l.journal.memory.File())
		arg = setup{JournalFD: firstFile + len(p.ExtraFiles) - 1}
		opts = append(opts, p)
	}
	opts = append(opts, recycle)
	id, err := x.sup.Register(x.dead, workerFactory.With(arg), opts...)
	if err != nil {
		return errors.Join(err, l.journal.close())
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	l.id = id
	return nil
}

// notStarted is the end of a lane whose worker did not get ready.
func (l *lane) notStarted(err error) {
	x := l.executor
	x.mu.Lock()
	killed := x.dead.Err() != nil
	if l.replaces != nil && l.replaces.renewed { // then it goes on for as many tasks again
		l.replaces.renewed = false
		l.replaces.due += x.cfg.recycle.MaxRequests
		x.state.crew.renewing--
	}
	x.goneLocked(l)
	if killed {
		x.mu.Unlock()
		return
	}
	x.events.emit(Event{Kind: EventStartFailed, Worker: -1, Err: err})
	broken := x.failedLocked(err) // while nobody can hire: the pause counts from here
	x.mu.Unlock()
	x.abandonBroken(broken)
}

// takePlace lets the lane leave that this one replaces.
func (l *lane) takePlace() {
	old := l.replaces
	if old == nil {
		return
	}
	l.replaces = nil
	x := l.executor
	x.mu.Lock()
	defer x.mu.Unlock()
	c := &x.state.crew
	old.replaced = true
	if at := slices.Index(c.idle, old); at >= 0 {
		c.idle = slices.Delete(c.idle, at, at+1)
		c.coming++
		old.call()
	}
}

// died is the end of a worker that nobody had told to end.
func (l *lane) died(d *death) {
	x := l.executor
	e := Event{Kind: EventCrashed, Worker: l.id, Err: d.err}
	if exit, ok := errors.AsType[*supervisor.ExitError](d.err); ok {
		e.Pid = exit.Pid
	}
	if d.job != nil {
		e.Task = d.job.function.name
	}
	x.mu.Lock()
	x.goneLocked(l)
	l.leaving = whyGone
	if x.dead.Err() != nil { // it was killed
		x.mu.Unlock()
		return
	}
	x.state.stats.crashed++
	x.events.emit(e)
	var broken error
	if d.hung { // that is the task's fault
		x.staffLocked()
	} else {
		broken = x.failedLocked(d.err) // while nobody can hire: the pause counts from here
	}
	x.mu.Unlock()
	x.abandonBroken(broken)
}

// end ends the worker, in order unless the executor is killed.
func (l *lane) end() {
	x := l.executor
	err := x.sup.Unregister(context.Background(), l.id)
	if stuck, ok := errors.AsType[*supervisor.StuckError](err); ok && !stuck.Killed {
		x.mu.Lock()
		x.state.stuck = append(x.state.stuck, stuck)
		x.mu.Unlock()
	}
	_ = l.journal.close() // there is nothing to do about it, and no descriptor left either way
	switch l.leaving {
	case whyGone:
	case whyRecycled:
		x.mu.Lock()
		x.state.stats.recycled++
		x.mu.Unlock()
		x.events.emit(Event{Kind: EventRecycled, Worker: l.id, Text: "it has had " + strconv.FormatUint(l.tasks, 10) + " tasks"})
	default:
		x.events.emit(Event{Kind: EventLeft, Worker: l.id, Text: l.leaving})
	}
}
