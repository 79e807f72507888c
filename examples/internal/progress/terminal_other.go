//go:build !linux && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd && !windows

package progress

// terminal says no where we do not know how to ask.
func terminal(uintptr) bool { return false }
