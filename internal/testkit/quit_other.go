//go:build !linux && !darwin

package testkit

// traceOnQuit does nothing: this system has no workers.
func traceOnQuit() {}

// quitChildren asks nobody.
func quitChildren() int { return 0 }
