//go:build linux || darwin

package proc

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/workerlink/supervisor/internal/task"
)

// plausible reports whether the descriptors are of the kinds that a host hands over.
func plausible() bool {
	var requests, replies, control unix.Stat_t
	return unix.Fstat(requestsFd, &requests) == nil && requests.Mode&unix.S_IFMT == unix.S_IFIFO &&
		unix.Fstat(repliesFd, &replies) == nil && replies.Mode&unix.S_IFMT == unix.S_IFIFO &&
		unix.Fstat(controlFd, &control) == nil && control.Mode&unix.S_IFMT == unix.S_IFSOCK
}

func closeOnExec(fd int) { unix.CloseOnExec(fd) }

// openNonblocking opens a descriptor that blocks until now. If that fails the file blocks a thread, and works.
func openNonblocking(fd int, name string) *os.File {
	_ = unix.SetNonblock(fd, true)
	return os.NewFile(uintptr(fd), name)
}

// crashPatience is how long a dying worker waits, with each piece of its trace, for a host that does not read.
const crashPatience = time.Second

// SetCrashOutput makes the runtime write the trace of a fatal error to the control socket too, as plain text. The runtime
// writes it in very many small pieces and drops what does not fit, so the socket blocks from now on, which all duplicates of
// the descriptor share, but not for ever; the other side should read.
func (w *Worker) SetCrashOutput() error {
	fd, err := unix.FcntlInt(controlFd, unix.F_DUPFD_CLOEXEC, firstFileFd)
	if err != nil {
		return fmt.Errorf("proc: crash output: %w", err)
	}
	f := os.NewFile(uintptr(fd), "crash")
	defer f.Close()
	patience := unix.NsecToTimeval(int64(crashPatience))
	if err := unix.SetsockoptTimeval(controlFd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &patience); err != nil {
		return fmt.Errorf("proc: crash output: %w", err)
	}
	if err := debug.SetCrashOutput(f, debug.CrashOptions{}); err != nil {
		return fmt.Errorf("proc: crash output: %w", err)
	}
	if err := unix.SetNonblock(controlFd, false); err != nil {
		return fmt.Errorf("proc: crash output: %w", err)
	}
	return nil
}

// HoldSignals makes the process sit out SIGINT, SIGHUP and SIGTERM from now on: service managers and terminals send them to
// every process, and the host decides. At a SIGTERM it calls orphaned if the host is gone, else term; at a SIGCONT, which is
// the death signal, orphaned if the host is gone. Both run on one goroutine, which lasts as long as the process; while one runs,
// further signals wait. A write to a standard stream that nobody reads fails from now on: left to itself it would end an
// orphan by SIGPIPE, before that has ended its group.
func (w *Worker) HoldSignals(orphaned, term func()) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGCONT)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // nobody looks; ignored, it would be so in the worker's children too
	task.Go(func(context.Context) {
		for s := range signals {
			switch {
			case s != syscall.SIGTERM && s != syscall.SIGCONT:
			case w.Orphaned():
				orphaned()
			case s == syscall.SIGTERM:
				term()
			}
		}
	})
}

// EndGroup ends the rest of the process group by SIGKILL, so that a process that is about to exit leaves nothing even if its
// host dies before it can see to that. For that the process itself goes over to the group of its host; where it may not,
// as the leader of a session, the group is left to the host.
func (w *Worker) EndGroup() {
	pid := os.Getpid()
	if w.Orphaned() {
		w.KillGroup()
	}
	if unix.Getpgrp() != pid {
		return
	}
	host, err := unix.Getpgid(w.parent)
	if err == nil {
		err = unix.Setpgid(0, host)
	}
	switch {
	case err == nil:
		_ = unix.Kill(-pid, unix.SIGKILL) // most often there is nobody
	case w.Orphaned():
		w.KillGroup()
	}
}

// KillGroup ends the process and its whole group by SIGKILL. If the process does not lead its group it ends itself only,
// with status 1. It never returns.
func (w *Worker) KillGroup() {
	if pid := os.Getpid(); unix.Getpgrp() == pid {
		_ = unix.Kill(-pid, unix.SIGKILL)
	}
	os.Exit(1)
}
