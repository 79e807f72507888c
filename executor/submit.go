package executor

import (
	"container/list"
	"context"
	"fmt"
	"time"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/future"
)

// submit is Submit and TrySubmit.
func (f *Func[In, Out]) submit(ctx context.Context, x *Executor, in In, wait bool) (*future.Future[Out], error) {
	if err := cause(ctx); err != nil {
		return nil, err
	}
	deadline, limited := ctx.Deadline()
	if limited && !time.Now().Before(deadline) { // its timer is late; those of other tasks with the deadline may have been in time
		return nil, supervisor.ErrTimeout
	}
	result, resolver := future.New[Out]()
	o := &futureOwner[Out]{resolver: resolver}
	t := &job{function: f.function, in: in, owner: o, deadline: deadline}
	if ctx.Done() != nil {
		o.unwatch = context.AfterFunc(ctx, func() { x.cancel(t, cause(ctx)) })
	}
	if err := x.enter(ctx, wait, t); err != nil {
		if o.unwatch != nil {
			o.unwatch()
		}
		return nil, err
	}
	resolver.OnCancel(func() { x.cancel(t, supervisor.ErrCanceled) })
	return result, nil
}

// enter accepts tasks, all or none. It waits for room, if it may, until ctx ends; tasks that are more than the queue
// holds enter an empty one.
func (x *Executor) enter(ctx context.Context, wait bool, tasks ...*job) error {
	x.mu.Lock()
	s := &x.state
	if err := x.refusalLocked(); err != nil {
		x.mu.Unlock()
		return err
	}
	if s.waiters.list.Len() == 0 && x.roomLocked(len(tasks)) {
		err := x.acceptLocked(tasks)
		x.mu.Unlock()
		return err
	}
	if !wait {
		x.mu.Unlock()
		return fmt.Errorf("executor: %w", supervisor.ErrBusy)
	}
	w := &waiter{tasks: tasks, decided: make(chan struct{})}
	w.place = s.waiters.list.PushBack(w)
	x.mu.Unlock()
	select {
	case <-w.decided:
		return w.err
	case <-ctx.Done():
	}
	x.mu.Lock()
	if !w.leave(&s.waiters) {
		x.mu.Unlock()
		<-w.decided
		return w.err
	}
	admitted := x.admitLocked() // it may have been in the way of smaller ones
	x.mu.Unlock()
	admitted.decide(nil)
	return cause(ctx)
}

func (x *Executor) roomLocked(n int) bool {
	return x.state.queue.n == 0 || x.state.queue.n+n <= x.cfg.Queue
}

// acceptLocked puts tasks into the queue.
func (x *Executor) acceptLocked(tasks []*job) error {
	s := &x.state
	for _, t := range tasks {
		if t.canceled != nil { // its ctx has ended on the way
			return t.canceled
		}
	}
	for _, t := range tasks {
		if s.stats.sampled() {
			t.accepted = time.Now()
		}
		s.queue.pushBack(t)
	}
	s.pending += len(tasks)
	x.staffLocked()
	return nil
}

// waiters wait for room in the queue, in the order in which they came.
type waiters struct{ list list.List } // of *waiter

// waiter is a Submit that waits. Whoever takes it out of the list decides, after releasing the mutex.
type waiter struct {
	tasks   []*job
	place   *list.Element // nil once it was taken out
	decided chan struct{}
	err     error // valid once decided
}

func (w *waiter) leave(all *waiters) bool {
	if w.place == nil {
		return false
	}
	all.list.Remove(w.place)
	w.place = nil
	return true
}

func (w *waiter) decide(err error) {
	if w.err == nil {
		w.err = err
	}
	close(w.decided)
}

// group are waiters that were taken out.
type group []*waiter

func (g group) decide(err error) {
	for _, w := range g {
		w.decide(err)
	}
}

func (ws *waiters) all() (taken group) {
	for e := ws.list.Front(); e != nil; e = ws.list.Front() {
		w := e.Value.(*waiter)
		w.leave(ws)
		taken = append(taken, w)
	}
	return taken
}

// admitLocked lets in those for whom there is room.
func (x *Executor) admitLocked() (admitted group) {
	ws := &x.state.waiters
	for e := ws.list.Front(); e != nil; e = ws.list.Front() {
		w := e.Value.(*waiter)
		if !x.roomLocked(len(w.tasks)) {
			break
		}
		w.leave(ws)
		w.err = x.acceptLocked(w.tasks)
		admitted = append(admitted, w)
	}
	return admitted
}
