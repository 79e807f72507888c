package executor_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/executor"
	"github.com/workerlink/supervisor/future"
	"github.com/workerlink/supervisor/internal/testkit"
)

// gated returns n running tasks that go on when their gates open.
func gated(t *testing.T, x *executor.Executor, n int) (gates []*gate, results []*future.Future[string]) {
	t.Helper()
	for i := range n {
		name := fmt.Sprint("gated ", i)
		gates = append(gates, newGate(t, name))
		results = append(results, submit(t, pass, x, name))
	}
	return gates, results
}

func workers(x *executor.Executor) int {
	synctest.Wait()
	return x.Stats().Workers.Now
}

func TestWorkersComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := goroutines(t, executor.Options{MaxWorkers: 3})
		require.Zero(t, workers(x), "workers before the first task")
		gates, results := gated(t, x, 2)
		require.Equal(t, 2, workers(x), "workers of two tasks")
		more, last := gated2(t, x, "third"), gated2(t, x, "fourth")
		require.Equal(t, 3, workers(x), "workers of four tasks")
		close(gates[0].open)
		value(t, results[0])
		<-last.begun
		<-time.After(time.Minute)
		require.Equal(t, 3, workers(x), "workers that are busy for longer than the idle timeout")

		begin := time.Now()
		for _, g := range []*gate{gates[1], more, last} {
			close(g.open)
		}
		<-time.After(10*time.Second - time.Nanosecond)
		require.Equal(t, 3, workers(x), "workers until the idle timeout")
		<-time.After(time.Nanosecond)
		require.Zero(t, workers(x), "workers after it")
		require.Equal(t, 10*time.Second, time.Since(begin), "idle timeout")
		require.Equal(t, 4, value(t, submit(t, square, x, 2)), "a task after that")
		require.Equal(t, 1, workers(x), "workers of one task")
		shutdown(t, x)
	})
}

func gated2(t *testing.T, x *executor.Executor, name string) *gate {
	t.Helper()
	g := newGate(t, name)
	submit(t, pass, x, name)
	return g
}

func TestIdleTimeouts(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options executor.Options
		left    int
	}{
		{"short", executor.Options{IdleTimeout: time.Millisecond}, 0},
		{"never", executor.Options{IdleTimeout: -1}, 2},
		{"some stay", executor.Options{IdleTimeout: time.Millisecond, MinIdle: 1}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.options.MaxWorkers = 2
				x := goroutines(t, tt.options)
				require.Equal(t, tt.options.MinIdle, workers(x), "workers before the first task")
				gates, results := gated(t, x, 2)
				require.Equal(t, 2, workers(x), "workers while there is work")
				for i, g := range gates {
					close(g.open)
					value(t, results[i])
				}
				<-time.After(time.Hour)
				require.Equal(t, tt.left, workers(x), "workers that are left")
				shutdown(t, x)
			})
		})
	}
}

// Those that have been idle longest leave first; a busy one after its task.
func TestResize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := testkit.NewRecorder(func(e executor.Event) executor.EventKind { return e.Kind })
		x := goroutines(t, executor.Options{MaxWorkers: 4, Events: events.Record})
		gates, results := gated(t, x, 4)
		require.Equal(t, 4, workers(x), "workers")
		close(gates[2].open)
		value(t, results[2])
		<-time.After(time.Second)
		require.NoError(t, x.Resize(4), "Resize to the same size")
		require.NoError(t, x.Resize(2), "Resize")
		require.Equal(t, 3, workers(x), "workers: an idle one has left, and one too many is busy")
		queued := submit(t, square, x, 5)
		close(gates[0].open)
		value(t, results[0])
		require.Equal(t, 2, workers(x), "workers when a busy one is done")
		close(gates[1].open)
		require.Equal(t, 25, value(t, queued), "a task that waited meanwhile")
		require.Equal(t, 2, workers(x), "workers")

		require.NoError(t, x.Resize(5), "Resize")
		require.Equal(t, 2, workers(x), "workers without need for more")
		more, _ := gated2(t, x, "a"), gated2(t, x, "b")
		<-more.begun
		require.Equal(t, 3, workers(x), "workers of three tasks")
		for _, e := range events.All() {
			if e.Kind == executor.EventLeft {
				require.Equal(t, "resized", e.Text, "why a worker left")
			}
		}
	})
}

// Under load no task is lost or executed twice, whatever the sizes.
func TestResizeUnderLoad(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			x := newExecutor(t, executor.Options{MaxWorkers: 3, Workers: ofKind(kind)})
			var results []*future.Future[int]
			for i, size := range []int{12, 2, 1, 12, 6, 1, 8, 5, 1} {
				for j := range 200 {
					results = append(results, submit(t, square, x, i*1000+j))
				}
				require.NoError(t, x.Resize(size), "Resize(%d)", size)
			}
			for _, f := range results {
				value(t, f)
			}
			until(t, x, "one worker is left", func(s executor.Stats) bool { return s.Workers.Now <= 1 })
			shutdown(t, x)
			require.EqualValues(t, len(results), x.Stats().Done, "values")
		})
	}
}

func TestRecycle(t *testing.T) {
	for _, rolling := range []bool{false, true} {
		for _, kind := range kinds() {
			t.Run(fmt.Sprintf("%v/rolling %v", kind, rolling), func(t *testing.T) {
				x := newExecutor(t, executor.Options{MaxWorkers: 1, Workers: ofKind(kind, supervisor.Recycle{MaxRequests: 10, Rolling: rolling})})
				testkit.Until(t, "workers were recycled", func() bool {
					for item := range executor.Map(t.Context(), x, square, upTo(200, nil)) {
						require.NoError(t, item.Err, "item %d", item.Index)
					}
					return x.Stats().Workers.Recycled >= 3
				})
				shutdown(t, x)
				require.Zero(t, x.Stats().Workers.Crashed, "crashes")
				require.Zero(t, x.Stats().Failed, "tasks that failed")
			})
		}
	}
}

func TestRecycleByAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := goroutines(t, executor.Options{MaxWorkers: 1, IdleTimeout: -1}, supervisor.Recycle{MaxAge: time.Minute})
		for range 10 {
			require.Equal(t, 4, value(t, submit(t, square, x, 2)), "a task")
			<-time.After(2 * time.Minute)
		}
		require.GreaterOrEqual(t, x.Stats().Workers.Recycled, int64(9), "recycled workers")
		shutdown(t, x)
	})
}

func TestEnvironmentOfWorkers(t *testing.T) {
	if !processes(t) {
		return
	}
	dir := t.TempDir()
	x := newExecutor(t, executor.Options{MaxWorkers: 1, Workers: []supervisor.ChildOption{
		supervisor.Proc{Env: []string{"EXECUTOR_TEST=set"}, Dir: dir}, supervisor.Share{CPU: 1},
	}})
	require.Equal(t, "set", value(t, submit(t, getenv, x, "EXECUTOR_TEST")), "a variable")
	require.Equal(t, "1", value(t, submit(t, getenv, x, "GOMAXPROCS")), "its share")
	require.Equal(t, dir, value(t, submit(t, getwd, x, 0)), "its directory")
	shutdown(t, x)
}
