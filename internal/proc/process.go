package proc

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
)

// Process is a worker process as its host sees it. Only [Starter.Start] makes one. Its owner calls Wait, always, and Close.
// The files are non-blocking and belong to the Process; all methods may be called from many goroutines.
type Process struct {
	Requests *os.File // write end of the worker's descriptor 3
	Replies  *os.File // read end of its descriptor 4
	Control  *os.File // our end of the socketpair that is its descriptor 5
	Stdout   *os.File // read end of its descriptor 1
	Stderr   *os.File // read end of its descriptor 2

	pid     int
	release func() // tells the Starter that the process is reaped

	mu     sync.Mutex
	handle handle // what the system knows the process by
	reaped bool   // the pid may belong to a stranger from here on

	wait sync.Once
	ending
}

// ending is what is seen of the end of a process.
type ending struct {
	oom    oomWatch
	status Status // set by wait
}

// Status says how a process ended.
type Status struct {
	// Known is false if somebody else in the host took the status: a wait4(-1) loop, or SIGCHLD was ignored.
	Known bool
	// Code is the exit code, or -1 if a signal ended the process.
	Code int
	// Signal is what ended the process, or 0.
	Signal syscall.Signal
	// OOM reports that it was SIGKILL and that the kernel has killed for want of memory in the cgroup meanwhile.
	OOM bool
	// User and System are the CPU time of the process and of the descendants that it waited for.
	User, System time.Duration
}

// Pid returns the process id, which is the id of the process group too. It must not be used for sending signals.
func (p *Process) Pid() int { return p.pid }

// Signal sends a signal to the process, or to its whole group. It is legal at any time and does nothing once the process
// is reaped. An error says that the system refused; that there is nobody left is not an error.
func (p *Process) Signal(group bool, signal syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return nil
	}
	return p.handle.signal(p.pid, group, signal)
}

// Terminate asks the group to end, by SIGTERM. It is legal at any time.
func (p *Process) Terminate() { _ = p.Signal(true, syscall.SIGTERM) }

// Kill ends the group by SIGKILL, and the process itself too should it have left its group. It does not wait and is legal at
// any time.
func (p *Process) Kill() {
	_ = p.Signal(true, syscall.SIGKILL)
	_ = p.Signal(false, syscall.SIGKILL)
}

// Wait blocks until the process has ended by itself or by a signal; it cannot be interrupted otherwise. Before the process is
// reaped its group is killed, so that no descendant in it outlives the process. Every call returns the same Status. On
// Linux a waiting call occupies no thread.
func (p *Process) Wait() Status {
	p.wait.Do(func() {
		p.status = p.reap()
		p.status.OOM = p.oom.killed() && p.status.Signal == syscall.SIGKILL
		p.release()
	})
	return p.status
}

// Close closes the host's ends of the descriptors; calls blocked on them return. The process may be alive: it sees the
// end of its requests. Close may be called twice.
func (p *Process) Close() error {
	var errs []error
	for _, f := range []*os.File{p.Requests, p.Replies, p.Control, p.Stdout, p.Stderr} {
		if err := f.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
