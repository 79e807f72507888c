//go:build linux || darwin

package proc_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/workerlink/supervisor/internal/proc"
)

func TestSharedMemory(t *testing.T) {
	const size = 8192
	host, err := proc.NewShared(size)
	require.NoError(t, err, "NewShared")
	fd, err := unix.FcntlInt(host.File().Fd(), unix.F_DUPFD_CLOEXEC, 0)
	require.NoError(t, err, "a second descriptor, as a worker would have")
	worker, err := proc.MapShared(fd, size)
	require.NoError(t, err, "MapShared")

	host.Words(2)[1].Store(7)
	require.EqualValues(t, 7, worker.Words(2)[1].Load(), "a word that the host wrote")
	require.True(t, worker.Words(2)[1].CompareAndSwap(7, 8), "the worker's exchange")
	require.EqualValues(t, 8, host.Words(2)[1].Load(), "a word that the worker wrote")
	copy(worker.Bytes(size-3), "abc")
	require.Equal(t, "abc", string(host.Bytes(size-3)), "bytes that the worker wrote")

	require.NoError(t, worker.Close(), "Close in the worker")
	require.Equal(t, "abc", string(host.Bytes(size-3)), "bytes after the worker's end")
	require.NoError(t, host.Close(), "Close in the host")

	_, err = proc.MapShared(fd, size)
	require.Error(t, err, "MapShared of a descriptor that is closed")
}
