package executor_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/executor"
	"github.com/workerlink/supervisor/future"
	"github.com/workerlink/supervisor/internal/testkit"
)

// startVariable names a pipe that a worker opens before it is ready, which it is not until somebody writes to that.
const startVariable = "EXECUTOR_TEST_START"

func init() {
	if path := os.Getenv(startVariable); path != "" {
		f, err := os.Open(path)
		if err != nil {
			panic(err)
		}
		_ = f.Close() // it was only for its opening
	}
}

// A worker that is ready does not make way for one that is not: whoever resizes all the time would otherwise have nothing
// but workers that start.
func TestResizeWhileWorkersStart(t *testing.T) {
	testkit.NoLeaks(t)
	path := filepath.Join(t.TempDir(), "start")
	require.NoError(t, unix.Mkfifo(path, 0o600), "make a pipe")
	ready := func() *os.File {
		f, err := os.OpenFile(path, os.O_RDWR, 0) // does not wait for the other end
		require.NoError(t, err, "open the pipe")
		return f
	}
	open := ready()
	x := bare(t, executor.Options{MaxWorkers: 1, Workers: []supervisor.ChildOption{supervisor.Proc{Env: []string{startVariable + "=" + path}}}})
	pid := value(t, submit(t, getpid, x, 0))
	require.NoError(t, open.Close(), "close the pipe: no further worker gets ready")

	busy := submit(t, misbehave, x, "wait")
	require.NoError(t, x.Resize(3), "Resize")
	waiting := []*future.Future[int]{submit(t, getpid, x, 0), submit(t, getpid, x, 0)}
	until(t, x, "two workers start", func(s executor.Stats) bool { return s.Workers.Now == 3 })
	require.NoError(t, x.Resize(1), "Resize")
	busy.Cancel()
	for _, f := range waiting {
		require.Equal(t, pid, value(t, f), "process of a task that waited")
	}
	open = ready()
	defer open.Close()
	until(t, x, "those that were starting have left", func(s executor.Stats) bool { return s.Workers.Now == 1 })
	require.Equal(t, pid, value(t, submit(t, getpid, x, 0)), "process of the next task")
	shutdown(t, x)
	require.Zero(t, x.Stats().Workers.Crashed, "workers that died")
}
