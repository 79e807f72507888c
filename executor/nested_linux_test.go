package executor_test

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/executor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// deeper runs itself in executors within each other, and at the bottom something else.
type nesting struct {
	Depth  int
	Bottom string // a task of misbehave
}

var deeper *executor.Func[nesting, string]

func init() {
	deeper = executor.Define("test.deeper", func(ctx context.Context, n nesting) (string, error) {
		if n.Depth == 0 {
			fmt.Fprintln(os.Stderr, "bottom")
			select {
			case <-ctx.Done():
				return "", context.Cause(ctx)
			default:
			}
			if n.Bottom == "hang" {
				select {}
			}
			return n.Bottom, nil
		}
		l, err := executor.Reusable(ctx, executor.Options{MaxWorkers: 1, Events: forwarded})
		if err != nil {
			return "", err
		}
		defer l.Release()
		f, err := deeper.Submit(ctx, l.Executor, nesting{n.Depth - 1, n.Bottom})
		if err != nil {
			return "", err
		}
		return f.Result(ctx)
	})
}

// forwarded passes a worker's output on, so that its host sees it.
func forwarded(e executor.Event) {
	if e.Kind == executor.EventOutput {
		fmt.Fprintln(os.Stderr, e.Text)
	}
}

// outermost is newExecutor for one whose workers have workers: those become children of this process when their own
// parent ends, and must end soon after that.
func outermost(t *testing.T, o executor.Options) *executor.Executor {
	t.Helper()
	testkit.NoLeaks(t)
	t.Cleanup(func() { allOrphansEnd(t) })
	return bare(t, o)
}

func allOrphansEnd(t *testing.T) {
	t.Helper()
	testkit.Within(t, 2*time.Second, func() {
		testkit.Until(t, "the workers of the workers have ended", func() bool {
			_, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			return err != nil // there are none
		})
	})
}

func TestNestedExecutors(t *testing.T) {
	t.Setenv("SUPERVISOR_MAX_DEPTH", "4")
	x := outermost(t, executor.Options{MaxWorkers: 1})
	require.Equal(t, "done", value(t, submit(t, deeper, x, nesting{3, "done"})), "a task at depth 4")
	failed := failure(t, submit(t, deeper, x, nesting{4, "done"}))
	require.ErrorIs(t, failed, executor.ErrTooDeep, "a task at depth 5")
	shutdown(t, x)

	y := outermost(t, executor.Options{MaxWorkers: 1, Workers: []supervisor.ChildOption{supervisor.Proc{Env: []string{"SUPERVISOR_MAX_DEPTH=1"}}}})
	require.ErrorIs(t, failure(t, submit(t, deeper, y, nesting{1, "done"})), executor.ErrTooDeep, "a limit of the worker's own")
	shutdown(t, y)
}

// Everything goes with the outermost worker, however deep it is, within a second.
func TestEndOfNestedExecutors(t *testing.T) {
	events := testkit.NewRecorder(func(e executor.Event) string { return e.Kind.String() + " " + e.Text })
	x := outermost(t, executor.Options{MaxWorkers: 1, Events: events.Record})
	f := submit(t, deeper, x, nesting{3, "hang"})
	events.Wait(t, "output bottom")
	testkit.Within(t, time.Second, func() { require.NoError(t, x.KillWorkers(), "KillWorkers") })
	require.ErrorIs(t, failure(t, f), supervisor.ErrClosed, "its task")
}
