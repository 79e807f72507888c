package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/task"
)

// outsideChild is a kind of child made elsewhere, with nothing but what [supervisor.Child] asks for: a worker of the suite
// behind a goroutine that calls it by reflection.
type outsideChild struct {
	job childtest.Job

	mu   sync.Mutex
	link *outsideLink // the latest life
}

// Start makes the worker.
func (c *outsideChild) Start(ctx context.Context, life *supervisor.Life) (supervisor.Link, error) {
	var worker *childtest.Worker
	err := outsideGuard(func() (err error) {
		worker, err = childtest.NewWorker(ctx, c.job)
		return err
	})
	if err != nil {
		return nil, err
	}
	l := &outsideLink{
		life: life, worker: worker, queue: make(chan outsideRequest, 4096),
		stopping: make(chan struct{}), crashing: make(chan struct{}), done: make(chan struct{}),
	}
	task.Go(func(context.Context) { l.run() })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.link = l
	return l, nil
}

// kill ends the latest life as a crash would.
func (c *outsideChild) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.link.close(c.link.crashing)
}

var (
	errOutsideCrashed = errors.New("outside: crashed")
	errOutsideEnding  = fmt.Errorf("outside: the life is ending: %w", supervisor.ErrClosed)
)

// outsideRequest is a request and how to execute it.
type outsideRequest struct {
	*supervisor.Request
	invoke func() (any, error)
}

// outsideLink is one life. Its channels but the queue are closed by close and by finish.
type outsideLink struct {
	life   *supervisor.Life
	worker *childtest.Worker
	queue  chan outsideRequest

	mu       sync.Mutex
	stopping chan struct{} // no further requests
	crashing chan struct{}
	working  *supervisor.Request // nil between two
	err      error               // valid once done
	done     chan struct{}
}

// close closes one of the channels, once.
func (l *outsideLink) close(c chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !outsideClosed(c) {
		close(c)
	}
}

func outsideClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Submit queues a request that the worker can be asked.
func (l *outsideLink) Submit(r *supervisor.Request) error {
	if r.Attr {
		return fmt.Errorf("%w: attributes of an outside child", supervisor.ErrUnsupported)
	}
	invoke, err := outsideBind(l.worker, r)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if outsideClosed(l.stopping) || outsideClosed(l.crashing) || outsideClosed(l.done) {
		return errOutsideEnding
	}
	select {
	case l.queue <- outsideRequest{r, invoke}:
		return nil
	default:
		return supervisor.ErrBusy
	}
}

// run executes one request after the other until the life ends.
func (l *outsideLink) run() {
	for {
		select {
		case <-l.crashing:
			l.finish(errOutsideCrashed)
			return
		case r := <-l.queue:
			l.execute(r)
		case <-l.stopping:
			select {
			case r := <-l.queue: // what was submitted comes first
				l.execute(r)
			default:
				l.finish(l.worker.Close())
				return
			}
		}
	}
}

// execute runs a handler and waits for it, unless the life crashes. A request that has its verdict is not executed.
func (l *outsideLink) execute(r outsideRequest) {
	if outsideClosed(l.crashing) || r.Context().Err() != nil {
		return
	}
	l.at(r.Request)
	defer l.at(nil)
	handler := task.Go(func(context.Context) {
		var value any
		err := outsideGuard(func() (err error) {
			value, err = r.invoke()
			return err
		})
		if !outsideClosed(l.done) {
			l.life.Reply(r.Request, value, err)
		}
	})
	select {
	case <-handler.Done():
	case <-l.crashing:
	}
}

func (l *outsideLink) at(r *supervisor.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.working = r
}

// finish ends the life; the first end counts.
func (l *outsideLink) finish(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !outsideClosed(l.done) {
		l.err = err
		close(l.done)
	}
}

// Stop lets what was submitted be executed. When ctx ends it answers the rest, which ends the contexts of handlers; a
// handler that goes on all the same is left behind.
func (l *outsideLink) Stop(ctx context.Context) error {
	l.close(l.stopping)
	select {
	case <-l.done:
		return l.Wait()
	case <-ctx.Done():
	}
	for {
		select {
		case r := <-l.queue:
			l.life.Reply(r.Request, nil, supervisor.ErrClosed)
			continue
		default:
		}
		break
	}
	l.mu.Lock()
	working := l.working
	l.mu.Unlock()
	if working != nil {
		l.life.Reply(working, nil, supervisor.ErrClosed)
	}
	last := time.NewTimer(100 * time.Millisecond)
	defer last.Stop()
	select {
	case <-l.done:
	case <-last.C:
		stuck := &supervisor.StuckError{ProcID: l.life.ProcID(), Name: l.life.Name(), Incarnation: l.life.Incarnation()}
		if working != nil {
			stuck.Method = working.Method
		}
		l.finish(stuck)
	}
	return l.Wait()
}

// Wait returns when the life has ended.
func (l *outsideLink) Wait() error {
	<-l.done
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
