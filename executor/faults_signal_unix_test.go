//go:build unix

package executor_test

import "syscall"

// terminate sends the signal that asks for an end.
func terminate(pid int) { _ = syscall.Kill(pid, syscall.SIGTERM) }
