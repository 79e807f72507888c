package executor

import (
	"context"
	"errors"
	"time"

	"github.com/workerlink/supervisor"
)

// execute takes a chunk through the worker and gives its tasks their verdicts. It returns how the worker died, if it did.
func (l *lane) execute(c *chunk) *death {
	args := make([]any, len(c.tasks))
	for i, t := range c.tasks {
		args[i] = t.in
	}
	cut, kill := c.limits()
	if cut > 0 {
		defer time.AfterFunc(cut, c.cut).Stop()
	}
	begin := time.Now()
	reply, err := l.ask(c, supervisor.SendPayload{ProcID: l.id, Method: c.function().method, Args: args, KillAfter: kill})
	return l.digest(c, reply, err, time.Since(begin))
}

// digest is execute when the chunk has ended.
func (l *lane) digest(c *chunk, reply supervisor.RecvPayload, err error, took time.Duration) *death {
	v := judge(err)
	running := l.conclude(c, reply, v, took)
	c.stop()
	if v.withdrawn { // the verdict is there, but the worker may still be at it
		_, err := l.executor.sup.Do(context.Background(), supervisor.SendPayload{ProcID: l.id, Method: methodIdle})
		v = judge(err)
	}
	switch {
	case v.alive && c.eye.broken != nil: // that it says what cannot be is why it has to go
		return &death{err: c.eye.broken}
	case v.alive:
		return nil
	}
	return &death{err: v.err, job: running, hung: v.hung}
}

// stop releases what the chunk's contexts hold.
func (c *chunk) stop() {
	c.cancel(nil)
	if c.free != nil {
		c.free()
	}
}

// ask sends a chunk, after the object that it needs if that is missing.
func (l *lane) ask(c *chunk, p supervisor.SendPayload) (supervisor.RecvPayload, error) {
	for {
		reply, err := l.executor.sup.Do(c.ctx, p)
		if err == nil || !isRemote(err, errUnloaded) {
			return reply, err
		}
		if err := l.load(c); err != nil {
			return reply, err
		}
	}
}

// load makes the object of a function in the worker.
func (l *lane) load(c *chunk) error {
	f := c.function()
	limit := l.executor.cfg.child.StartTimeout
	ctx, cancel := context.WithTimeout(c.ctx, limit)
	defer cancel()
	_, err := l.executor.sup.Do(ctx, supervisor.SendPayload{ProcID: l.id, Method: methodLoad, Args: []any{f.object}, KillAfter: limit})
	if err == nil || c.ctx.Err() != nil {
		return err
	}
	reason := err
	if call, ok := errors.AsType[*supervisor.CallError](err); ok {
		reason = call.Err
	}
	return &loadingError{LoadError{Factory: f.spec.Name(), Err: reason}, err}
}

// loadingError is a LoadError on its way to the tasks.
type loadingError struct {
	LoadError
	call error
}

// isRemote reports whether a worker has answered with the error is.
func isRemote(err, is error) bool {
	call, ok := errors.AsType[*supervisor.CallError](err)
	if !ok {
		return false
	}
	remote, ok := call.Err.(*supervisor.RemoteError) //nolint:errorlint // as the worker's own word, not inside of something
	return ok && errors.Is(remote, is)
}

// judgement is what the error of a chunk means.
type judgement struct {
	err       error // nil for a value, which may be that of no task
	alive     bool  // the worker goes on
	refused   bool  // nothing of the chunk was executed, because of its values
	unsent    bool  // nor did it reach the worker, which had died before
	withdrawn bool  // the context has ended; the worker may still be at it
	hung      bool  // the worker was killed because it took too long
	load      bool  // the object could not be made
}

func judge(err error) judgement {
	if err == nil {
		return judgement{alive: true}
	}
	if failure, ok := err.(*loadingError); ok { //nolint:errorlint // as load returns it
		j := judge(failure.call)
		j.err, j.load, j.hung = &failure.LoadError, true, false
		return j
	}
	call, ok := errors.AsType[*supervisor.CallError](err)
	if !ok {
		return judgement{err: err, alive: true}
	}
	j := judgement{err: call.Err}
	_, exited := errors.AsType[*supervisor.ExitError](call.Err)
	_, stuck := errors.AsType[*supervisor.StuckError](call.Err)
	switch call.Err.(type) { //nolint:errorlint // the worker's own word, whatever that wraps
	case *supervisor.RemoteError, *supervisor.PanicError:
		j.alive = true
		return j
	}
	switch {
	case exited || stuck:
		j.unsent = call.Unexecuted
		j.hung = errors.Is(call.Err, supervisor.ErrTimeout)
	case isRefusal(call):
		j.alive, j.refused = true, true
	case anyOf(call.Err, supervisor.ErrClosed, supervisor.ErrNoSuchChild, supervisor.ErrNotStarted, supervisor.ErrRestarted, supervisor.ErrRestartLimit):
		j.unsent = call.Unexecuted
	case anyOf(call.Err, supervisor.ErrTimeout, supervisor.ErrCanceled):
		j.alive, j.withdrawn = true, true
	default:
		j.alive = true
	}
	return j
}

// conclude gives the tasks of a chunk that has ended their verdicts, or puts them back. It returns the task that the
// worker was executing at the end, if there was one.
func (l *lane) conclude(c *chunk, reply supervisor.RecvPayload, j judgement, took time.Duration) (running *job) {
	x := l.executor
	h := c.harvest(true)
	running, untouched, verdicts := h.running, h.untouched, h.verdicts
	x.mu.Lock()
	l.chunk = nil
	pace := x.paceLocked(c.function())
	if running != nil {
		running.attempts++
		x.state.stats.running--
		verdicts = append(verdicts, x.verdictLocked(l, c, running, reply, j)...)
	}
	switch {
	case len(untouched) == 0:
	case running == nil && !j.unsent && (j.err != nil && !isRemoteStop(j.err)):
		verdicts = append(verdicts, x.unbegunLocked(l, c, untouched, j)...)
	default:
		if len(c.tasks) > 1 && j.err != nil {
			pace.stumble()
		}
		verdicts = append(verdicts, x.backLocked(untouched)...)
	}
	if j.alive && j.err == nil {
		x.state.breaker.succeeded()
		x.state.stats.runs.add(took / time.Duration(len(c.tasks)))
		if len(untouched) == 0 && c.tasks[0].want == 0 {
			pace.tell(len(c.tasks), took)
		}
	}
	x.mu.Unlock()
	x.deliver(verdicts)
	c.settle(h.finished) // last: it may run user code
	if j.load && j.alive {
		x.events.emit(Event{Kind: EventStartFailed, Worker: l.id, Err: j.err})
		x.failed(j.err)
	}
	return running
}

// isRemoteStop reports whether a worker had nothing left to do.
func isRemoteStop(err error) bool {
	remote, ok := err.(*supervisor.RemoteError) //nolint:errorlint // as the worker's own word
	return ok && errors.Is(remote, errStopped)
}

// unbegunLocked decides about tasks of which none was begun although the chunk has ended with an error that is not about
// one of them: their values could not cross, or the worker died over them or could not make their object.
func (x *Executor) unbegunLocked(l *lane, c *chunk, tasks []*job, j judgement) (verdicts []verdict) {
	fail := func(t *job, err error) {
		verdicts = append(verdicts, x.settleLocked(t, t.failure(l.id, t.attempts == 0, err)))
	}
	switch {
	case j.withdrawn, j.load: // they share their deadline, and nothing else withdraws what was not begun
		for _, t := range tasks {
			fail(t, j.err)
		}
	case len(c.tasks) > 1: // one of them is to blame: each goes alone
		for _, t := range tasks {
			t.alone = true
		}
		verdicts = x.backLocked(tasks)
	case j.alive:
		fail(tasks[0], j.err)
	default:
		if tasks[0].lost++; tasks[0].lost > 1 {
			fail(tasks[0], j.err)
			break
		}
		verdicts = x.backLocked(tasks)
	}
	return verdicts
}

// verdictLocked decides about the task that was being executed when its chunk ended.
func (x *Executor) verdictLocked(l *lane, c *chunk, t *job, reply supervisor.RecvPayload, j judgement) []verdict {
	fail := func(err error) []verdict { return []verdict{x.settleLocked(t, t.failure(l.id, false, err))} }
	if j.err == nil {
		return []verdict{x.settleLocked(t, verdict{job: t, value: reply.Data})}
	}
	if !j.alive {
		if x.dead.Err() != nil { // it was killed with the executor; in a broken one it has died by itself
			return fail(supervisor.ErrClosed)
		}
		t.crashes++
	}
	retry := t.function.retries
	switch {
	case t.canceled != nil:
		return fail(t.canceled)
	case j.withdrawn, retry.Max == 0, j.alive && !retry.Errors:
		return fail(j.err)
	case !j.alive && x.cfg.PoisonAfter > 0 && t.crashes >= x.cfg.PoisonAfter:
		x.events.emit(Event{Kind: EventPoison, Worker: l.id, Task: t.function.name, Err: j.err})
		return fail(&becauseError{ErrPoison, j.err})
	case t.attempts > retry.Max:
		return fail(j.err)
	}
	return x.retryLocked(l, t, j.err)
}

// retryLocked puts a task back, or aside for a while.
func (x *Executor) retryLocked(l *lane, t *job, why error) []verdict {
	if err := x.closedLocked(); err != nil {
		return []verdict{x.settleLocked(t, t.failure(l.id, false, err))}
	}
	x.state.stats.retried++
	wait := delay(t.function.retries.Backoff, t.attempts)
	x.events.emit(Event{Kind: EventRetry, Worker: l.id, Task: t.function.name, Err: why, N: int64(wait)})
	if wait == 0 {
		return x.backLocked([]*job{t})
	}
	t.state, t.wire = delayed, place{}
	x.state.delayed[t] = time.AfterFunc(wait, func() { x.resume(t) })
	return nil
}

// resume is called when the delay of a task is over.
func (x *Executor) resume(t *job) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if t.state != delayed {
		return
	}
	delete(x.state.delayed, t)
	x.state.queue.pushFront(t)
	x.staffLocked()
}
