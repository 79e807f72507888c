//go:build linux || darwin

package faulttest_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// sysReader is an object whose handler is in a system call.
type sysReader struct{ fd int }

// Read waits in the kernel, on a thread of its own, for a byte.
func (r sysReader) Read() (int, error) {
	for {
		n, err := syscall.Read(r.fd, make([]byte, 1))
		if err != syscall.EINTR {
			return n, err
		}
	}
}

func TestG06HandlerInSystemCall(t *testing.T) {
	testkit.NoLeaks(t)
	var ends [2]int // blocking, unlike those of os.Pipe
	require.NoError(t, syscall.Pipe(ends[:]), "Pipe")
	outlasts(t, supervisor.Object(sysReader{ends[0]}), "sysReader", "Read", func(t testing.TB) {
		require.NoError(t, syscall.Close(ends[1]), "Close")
	})
	require.NoError(t, syscall.Close(ends[0]), "Close")
}
