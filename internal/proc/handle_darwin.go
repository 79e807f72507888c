package proc

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// identity is the event queue that is to tell of the end of the process, made beforehand so that the start fails if it
// cannot be had.
type identity struct{ queue int }

// enterCgroup does nothing: there are none.
func enterCgroup(*syscall.SysProcAttr, int) {}

func (i *identity) prepare(*syscall.SysProcAttr) error {
	queue, err := unix.Kqueue()
	if err != nil {
		return fmt.Errorf("kqueue: %w", err)
	}
	if queue, err = clearOfStdio(queue); err != nil {
		return fmt.Errorf("kqueue: %w", err)
	}
	unix.CloseOnExec(queue)
	i.queue = queue
	return nil
}

func (i *identity) discard() { closeFd(&i.queue) }

func (i *identity) handle(int) handle { return handle{queue: i.queue} }

type handle struct{ queue int }

// awaitExit blocks, and a thread with it, until the process is exiting. It returns false if somebody else has reaped it.
// Waitid will not do: on this system it returns for stopped processes too (go#19314).
func (h handle) awaitExit(pid int) bool {
	changes := []unix.Kevent_t{{
		Ident: uint64(pid), Filter: unix.EVFILT_PROC, Flags: unix.EV_ADD | unix.EV_ONESHOT, Fflags: unix.NOTE_EXIT,
	}}
	events := make([]unix.Kevent_t, 1)
	for {
		_, err := unix.Kevent(h.queue, changes, events, nil)
		if !errors.Is(err, unix.EINTR) {
			break // any other error is that the process had ended before
		}
	}
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err == nil && int(info.Eproc.Ppid) == os.Getpid()
}

// signal sends a signal to a process that we have not reaped.
func (h handle) signal(pid int, group bool, signal syscall.Signal) error {
	err := sendByNumber(pid, group, signal)
	if errors.Is(err, unix.EPERM) && group {
		return nil // what a group of zombies answers on this system
	}
	return err
}

// killRest does nothing: on this system only the pid names the group, and it may be a stranger's by now.
func (h handle) killRest() {}

func (h handle) close() { closeFd(&h.queue) }
