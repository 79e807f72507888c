//go:build !linux && !darwin

package faulttest_test

import "syscall"

const (
	sigKill = syscall.SIGKILL
	sigStop = syscall.Signal(-1)
	sigCont = syscall.Signal(-1)
)

// chaosSignal does nothing: there are no process children.
func chaosSignal(int, syscall.Signal) {}
