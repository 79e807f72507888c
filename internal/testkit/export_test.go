package testkit

import "time"

// SetLeakWait says how long NoLeaks waits before it complains.
func SetLeakWait(d time.Duration) { leakWait = d }
