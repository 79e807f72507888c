//go:build linux || darwin

package faulttest_test

import (
	"slices"
	"syscall"

	"github.com/workerlink/supervisor/internal/testkit"
)

const (
	sigKill = syscall.SIGKILL
	sigStop = syscall.SIGSTOP
	sigCont = syscall.SIGCONT
)

// chaosSignal sends a signal to a worker that may have ended meanwhile: its number may by now be another's, so it must
// still be a child of ours where the system says so.
func chaosSignal(pid int, sig syscall.Signal) {
	ours := testkit.Children()
	if pid > 0 && (len(ours) == 0 || slices.Contains(ours, pid)) {
		_ = syscall.Kill(pid, sig) // it may be gone
	}
}
