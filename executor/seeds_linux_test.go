package executor_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/executor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// nester is a program whose tasks have executors of their own, and which ends without ending any.
var nester = testkit.Helper("nester", func() {
	ctx := context.Background()
	x, err := executor.New(executor.Options{MaxWorkers: 2})
	if err == nil {
		for item := range executor.Map(ctx, x, deeper, func(yield func(nesting) bool) {
			_ = yield(nesting{1, "left"}) && yield(nesting{1, "right"})
		}, executor.Chunk(1)) {
			fmt.Println(item.Out, item.Err)
		}
	}
	fmt.Println("ok", err)
})

func TestL41EndOfAProgramWithNestedExecutors(t *testing.T) {
	testkit.NoLeaks(t)
	cmd := testkit.Command(t, nester)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	testkit.Within(t, 30*time.Second, func() {
		out, err := cmd.Output()
		require.NoError(t, err, "the program")
		require.Equal(t, "left <nil>\nright <nil>\nok <nil>\n", string(out))
	})
	require.Empty(t, complaints.String(), "standard error")
	allOrphansEnd(t)
}

// L51: a task that fails in a nested executor leaves nothing behind and says nothing beside its error.
func TestL51FailureInANestedExecutor(t *testing.T) {
	events := testkit.NewRecorder(func(e executor.Event) executor.EventKind { return e.Kind })
	x := outermost(t, executor.Options{MaxWorkers: 1, Events: events.Record})
	for _, bottom := range []string{"panic", "exit"} {
		failed := failure(t, submit(t, deeperBomb, x, bomb{"run", bottom}))
		require.ErrorContains(t, failed, "test.carry", "the inner task's error")
	}
	require.Equal(t, 4, value(t, submit(t, square, x, 2)), "the next task")
	shutdown(t, x)
	for _, e := range events.All() {
		require.NotEqual(t, executor.EventOutput, e.Kind, "output of a worker: %s", e.Text)
	}
	require.Zero(t, x.Stats().Workers.Crashed, "outer workers that died")
}

// deeperBomb has a bomb go off in an executor of its own.
var deeperBomb = executor.Define("test.deeperBomb", func(ctx context.Context, b bomb) (string, error) {
	l, err := executor.Reusable(ctx, executor.Options{Name: "bombs", MaxWorkers: 1})
	if err != nil {
		return "", err
	}
	defer l.Release()
	f, err := carry.Submit(ctx, l.Executor, argument{b})
	if err != nil {
		return "", err
	}
	_, err = f.Result(ctx)
	return "", err
})

// L92, L132: ten executors within each other work, and an eleventh is refused.
func TestL92DepthOfNestedExecutors(t *testing.T) {
	x := outermost(t, executor.Options{MaxWorkers: 1})
	require.Equal(t, "done", value(t, submit(t, deeper, x, nesting{9, "done"})), "a task at depth 10")
	require.ErrorIs(t, failure(t, submit(t, deeper, x, nesting{10, "done"})), executor.ErrTooDeep, "a task at depth 11")
	shutdown(t, x)
}

// hoard keeps memory, and returns its process.
var (
	hoarded [][]byte
	hoard   = executor.Define("test.hoard", func(_ context.Context, n int) (int, error) {
		b := make([]byte, n)
		for i := 0; i < n; i += 512 {
			b[i] = 1
		}
		hoarded = append(hoarded, b)
		return os.Getpid(), nil
	})
)

// A worker that keeps more and more memory is replaced between two tasks.
func TestL94WorkersThatLeak(t *testing.T) {
	const most, piece = 160 << 20, 16 << 20
	events := testkit.NewRecorder(func(e executor.Event) executor.EventKind { return e.Kind })
	x := newExecutor(t, executor.Options{MaxWorkers: 1, Events: events.Record, Workers: []supervisor.ChildOption{supervisor.Recycle{MaxMemory: most}}})
	first := value(t, submit(t, hoard, x, piece))
	testkit.Until(t, "another process has come", func() bool { return value(t, submit(t, hoard, x, piece)) != first })
	require.Contains(t, events.Wait(t, executor.EventRecycled).Text, "MiB", "why")
	shutdown(t, x)
	require.Zero(t, x.Stats().Failed, "tasks that failed")
	require.Zero(t, x.Stats().Workers.Crashed, "workers that died")
}
