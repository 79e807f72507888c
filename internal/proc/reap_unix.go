//go:build linux || darwin

package proc

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// reap waits for the end of the process and collects it. The order is the point: while the leader is a zombie its pid
// cannot be given to another process, so the number still names our group and nobody else's.
func (p *Process) reap() Status {
	known := p.handle.awaitExit(p.pid)
	p.mu.Lock()
	defer p.mu.Unlock()
	var status Status
	if known {
		_ = p.handle.signal(p.pid, true, unix.SIGKILL)
		status = collect(p.pid)
	} else {
		p.handle.killRest()
	}
	p.reaped = true
	p.handle.close()
	return status
}

// collect takes the status of a process that has ended, or, on macOS, is about to.
func collect(pid int) Status {
	var ws syscall.WaitStatus
	var usage syscall.Rusage
	for {
		got, err := syscall.Wait4(pid, &ws, 0, &usage)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || got != pid {
			return Status{} // somebody else was faster
		}
		break
	}
	status := Status{
		Known:  true,
		Code:   ws.ExitStatus(),
		User:   timeOf(usage.Utime),
		System: timeOf(usage.Stime),
	}
	if ws.Signaled() {
		status.Signal = ws.Signal()
	}
	return status
}

// sendByNumber sends a signal to a pid that is known not to be reaped. That nobody is left to receive it is no error.
func sendByNumber(pid int, group bool, signal syscall.Signal) error {
	if group {
		pid = -pid
	}
	if err := unix.Kill(pid, signal); !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}

func timeOf(tv syscall.Timeval) time.Duration { return time.Duration(tv.Nano()) }
