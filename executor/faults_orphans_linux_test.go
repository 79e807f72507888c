package executor_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/workerlink/supervisor/internal/testkit"
)

// orphansEnd waits until nothing is left of a host that has ended: its workers have become children of this process.
func orphansEnd(t testing.TB) {
	t.Helper()
	testkit.Within(t, 2*time.Second, func() {
		testkit.Until(t, "nothing is left of the host", func() bool {
			_, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			return err != nil // there are none
		})
	})
}
