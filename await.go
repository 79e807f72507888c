package supervisor

import "time"

// awaitFor waits until done is closed, but not longer than d, and reports
// whether it is.
func awaitFor(done <-chan struct{}, d time.Duration) bool {
	limit := time.NewTimer(d)
	defer limit.Stop()
	select {
	case <-done:
		return true
	case <-limit.C:
		return false
	}
}
