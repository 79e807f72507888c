package proc

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/workerlink/supervisor/internal/task"
)

// Starter starts processes from one thread of its own. The kernel binds the parent-death signal to the thread that
// started a process, not to the program (go#27505): started from any thread, workers would be told that their host is
// dead whenever that thread ends. The thread is there from the first Start until the last process is reaped.
// The zero value is ready. A Starter must not be copied.
type Starter struct {
	mu     sync.Mutex
	live   int          // processes that are being started or not yet reaped
	thread *startThread // nil if live is 0
}

// startThread is the goroutine that owns the thread.
type startThread struct {
	jobs chan func() // closed by the Starter when live falls to 0
	task *task.Task
}

// A binary that is being written cannot be executed (ETXTBSY); another goroutine's fork holds the file open for a moment
// longer than its writer does (go#22315).
const (
	busyTries = 8
	busyDelay = time.Millisecond // doubles with each try
)

// Start starts a process. Errors wrap what the system said, such as ENOENT, EAGAIN or EMFILE, or [os/exec.ErrDot]; after an
// error nothing is left open or running. The caller owns the Process and must call its Wait and Close.
func (s *Starter) Start(cfg Config) (*Process, error) {
	p, err := s.start(cfg)
	if err != nil {
		name := cfg.Path
		if name == "" {
			name = "this binary"
		}
		return nil, fmt.Errorf("proc: start %s: %w", name, err)
	}
	return p, nil
}

func (s *Starter) start(cfg Config) (*Process, error) {
	l, err := newLaunch(cfg)
	if err != nil {
		return nil, err
	}
	t := s.enter()
	delay := busyDelay
	for try := 1; ; try++ {
		t.run(func() { err = l.fork() })
		if !errors.Is(err, syscall.ETXTBSY) || try == busyTries {
			break
		}
		<-time.After(delay)
		delay *= 2
	}
	if err != nil {
		l.abandon()
		s.leave()
		return nil, err
	}
	p := l.process(s.leave)
	if err := limit(p.pid, cfg.Rlimits); err != nil {
		p.Kill()
		p.Wait()
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// enter counts one process more and returns the thread, which lasts until the matching leave.
func (s *Starter) enter() *startThread {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == 0 {
		s.thread = newStartThread()
	}
	s.live++
	return s.thread
}

// leave counts one process less. The last one waits until the thread is given back.
func (s *Starter) leave() {
	s.mu.Lock()
	s.live--
	var t *startThread
	if s.live == 0 {
		t, s.thread = s.thread, nil
	}
	s.mu.Unlock()
	if t != nil {
		close(t.jobs)
		t.task.Wait()
	}
}

func newStartThread() *startThread {
	t := &startThread{jobs: make(chan func())}
	t.task = task.Go(t.loop)
	return t
}

func (t *startThread) loop(context.Context) {
	runtime.LockOSThread()
	// A goroutine that ends locked takes its thread with it. Before the thread was ours it may have started processes of
	// other packages, with a death signal of their own; unlocked, it goes back to the runtime, which keeps it.
	defer runtime.UnlockOSThread()
	for job := range t.jobs {
		job()
	}
}

// run runs f on the thread and waits for it.
func (t *startThread) run(f func()) {
	done := make(chan struct{})
	t.jobs <- func() {
		defer close(done)
		f()
	}
	<-done
}
