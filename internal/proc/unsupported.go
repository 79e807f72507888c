//go:build !linux && !darwin

package proc

import (
	"os"
	"syscall"
)

// launch cannot be made on this system, so its other methods are never reached.
type launch struct{}

func newLaunch(Config) (*launch, error) { return nil, ErrUnsupported }

func (l *launch) fork() error             { return ErrUnsupported }
func (l *launch) abandon()                {}
func (l *launch) process(func()) *Process { return nil }

type handle struct{}

func (h handle) signal(pid int, group bool, signal syscall.Signal) error { return ErrUnsupported }

func (p *Process) reap() Status { return Status{} }

// No process is a worker on this system.
func plausible() bool                           { return false }
func closeOnExec(fd int)                        {}
func openNonblocking(fd int, n string) *os.File { return os.NewFile(uintptr(fd), n) }

// SetCrashOutput returns ErrUnsupported on this system.
func (w *Worker) SetCrashOutput() error { return ErrUnsupported }

// HoldSignals does nothing on this system.
func (w *Worker) HoldSignals(orphaned, term func()) {}

// EndGroup does nothing.
func (w *Worker) EndGroup() {}

// KillGroup ends the process with status 1.
func (w *Worker) KillGroup() { os.Exit(1) }
