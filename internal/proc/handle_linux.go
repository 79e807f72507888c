package proc

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// signalGroup is PIDFD_SIGNAL_PROCESS_GROUP (Linux 6.9): the signal goes to the group that the process leads, or led.
const signalGroup = 1 << 2

// identity is where the kernel puts the pidfd of the process that it starts.
type identity struct{ pidfd int }

// enterCgroup makes the process start in a cgroup.
func enterCgroup(attr *syscall.SysProcAttr, fd int) { attr.UseCgroupFD, attr.CgroupFD = true, fd }

func (i *identity) prepare(attr *syscall.SysProcAttr) error {
	i.pidfd = -1
	attr.PidFD = &i.pidfd
	// Never SIGKILL: a worker killed by it would leave its own group behind. This one wakes a worker that is stopped, so that
	// it sees the end of its pipe, and does nothing to one that runs.
	attr.Pdeathsig = syscall.SIGCONT
	return nil
}

// discard does nothing: a failed start leaves no pidfd.
func (i *identity) discard() {}

func (i *identity) handle(int) handle {
	if i.pidfd < 0 {
		return handle{} // kernel before 5.2
	}
	fd, err := clearOfStdio(i.pidfd)
	if err != nil {
		return handle{}
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return handle{}
	}
	return handle{file: os.NewFile(uintptr(fd), "pidfd"), fd: fd}
}

// handle is a pidfd, or nothing on old kernels.
type handle struct {
	file *os.File // in the poller
	fd   int      // the same, for calls that do not wait
}

// awaitExit blocks until the process has ended and is a zombie. It returns false if it is none because somebody else in this
// program, or the kernel, has reaped it.
func (h handle) awaitExit(pid int) bool {
	if h.file == nil {
		return h.awaitBlocking(pid)
	}
	conn, err := h.file.SyscallConn()
	if err != nil {
		return h.awaitBlocking(pid)
	}
	var waitErr error
	err = conn.Read(func(fd uintptr) bool {
		var ended bool
		ended, waitErr = peek(unix.P_PIDFD, int(fd), unix.WNOHANG)
		return ended || waitErr != nil
	})
	if err == nil && waitErr == nil {
		return true
	}
	if errors.Is(waitErr, unix.ECHILD) {
		return false
	}
	return h.awaitBlocking(pid) // P_PIDFD came with Linux 5.4, or the pidfd is not pollable
}

func (h handle) awaitBlocking(pid int) bool {
	_, err := peek(unix.P_PID, pid, 0)
	return err == nil
}

// peek reports whether a process has ended, and leaves it a zombie.
func peek(kind, id, options int) (bool, error) {
	for {
		var info unix.Siginfo
		err := unix.Waitid(kind, id, &info, unix.WEXITED|unix.WNOWAIT|options, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return info.Signo != 0, err
	}
}

// signal sends a signal to a process that we have not reaped.
func (h handle) signal(pid int, group bool, signal syscall.Signal) error {
	if h.file == nil {
		return sendByNumber(pid, group, signal)
	}
	flags := 0
	if group {
		flags = signalGroup
	}
	err := unix.PidfdSendSignal(h.fd, signal, nil, flags)
	switch {
	case errors.Is(err, unix.ESRCH):
		return nil
	case errors.Is(err, unix.EINVAL) && group:
		return h.signalGroupByNumber(pid, signal)
	}
	return err
}

// signalGroupByNumber is for kernels older than the flag. While the pidfd has a process its number has not been reused.
func (h handle) signalGroupByNumber(pid int, signal syscall.Signal) error {
	err := unix.PidfdSendSignal(h.fd, 0, nil, 0)
	if err == nil {
		err = sendByNumber(pid, true, signal)
	}
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// killRest kills what is left of the group of a process that was reaped behind our back. Only the pidfd names the
// group then; where the kernel cannot, the rest is left alone rather than a stranger killed.
func (h handle) killRest() {
	if h.file != nil {
		_ = unix.PidfdSendSignal(h.fd, unix.SIGKILL, nil, signalGroup)
	}
}

func (h handle) close() {
	if h.file != nil {
		_ = h.file.Close()
	}
}
