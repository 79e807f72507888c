package testkit

import "time"

// SetLeakWait says how long NoLeaks waits before it complains, and returns how long it did before.
func SetLeakWait(d time.Duration) (before time.Duration) {
	before, leakWait = leakWait, d
	return before
}
