package executor_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/executor"
	"github.com/workerlink/supervisor/future"
)

func TestSubmit(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			x := newExecutor(t, executor.Options{MaxWorkers: 2, Workers: ofKind(kind)})
			require.Equal(t, 49, value(t, submit(t, square, x, 7)), "value")
			require.Equal(t, point{2, 2, "p"}, value(t, submit(t, moved, x, point{1, 2, "p"})), "struct")

			failed := failure(t, submit(t, refuse, x, 5))
			require.ErrorIs(t, failed, errRefused, "a registered error")
			require.EqualError(t, failed, `executor: task "test.refuse" (worker 0): refused: 5`)
			require.Equal(t, 1, failed.Attempts, "attempts")
			require.False(t, failed.Unexecuted, "it was executed")
			require.Nil(t, failed.Exit(), "nothing has died")

			var panicked *supervisor.PanicError
			require.ErrorAs(t, failure(t, submit(t, refuse, x, -1)), &panicked, "a panic")
			require.Equal(t, "negative", panicked.Value, "its value")
			require.Contains(t, panicked.Stack, "fixtures_test.go", "its stack")
			require.Equal(t, 4, value(t, submit(t, square, x, 2)), "the next task")
			shutdown(t, x)
			stats := x.Stats()
			require.EqualValues(t, 3, stats.Done, "tasks with a value")
			require.EqualValues(t, 2, stats.Failed, "tasks without")
			require.Zero(t, stats.Workers.Now, "workers after Shutdown")
		})
	}
}

func TestManyTasksOfManySubmitters(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			x := newExecutor(t, executor.Options{MaxWorkers: 3, Queue: 64, Workers: ofKind(kind)})
			var submitters sync.WaitGroup
			for s := range 8 {
				submitters.Go(func() {
					for i := range 2000 {
						f, err := square.Submit(t.Context(), x, s*i)
						if err != nil {
							t.Errorf("Submit: %v", err)
							return
						}
						if i%100 == 0 {
							if n, err := f.Result(t.Context()); err != nil || n != s*i*s*i {
								t.Errorf("Result of %d: %d, %v", s*i, n, err)
							}
						}
					}
				})
			}
			submitters.Wait()
			shutdown(t, x)
			require.EqualValues(t, 16000, x.Stats().Done, "values")
		})
	}
}

func TestFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := goroutines(t, executor.Options{MaxWorkers: 1, Queue: 2})
		g := newGate(t, "busy")
		running := submit(t, pass, x, "busy")
		<-g.begun
		for i := range 2 {
			submit(t, pass, x, fmt.Sprint(i))
		}
		_, err := pass.TrySubmit(t.Context(), x, "refused")
		require.ErrorIs(t, err, supervisor.ErrBusy, "TrySubmit to a full queue")

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		_, err = pass.Submit(ctx, x, "late")
		require.ErrorIs(t, err, supervisor.ErrTimeout, "Submit to a full queue")
		require.Equal(t, time.Second, time.Since(begin), "time that it waited")

		noted.Store(new([]int))
		entered := make(chan error, 3)
		for n := range 3 {
			go func() {
				f, err := noteOf.Submit(t.Context(), x, n)
				if err == nil {
					_, err = f.Result(t.Context())
				}
				entered <- err
			}()
			synctest.Wait()
		}
		close(g.open)
		require.Equal(t, "busy", value(t, running), "the one that was running")
		for range 3 {
			require.NoError(t, <-entered, "one that waited")
		}
		require.Equal(t, []int{0, 1, 2}, *noted.Load(), "order of those that waited")
	})
}

// noteOf notes the order in which its tasks are executed, one at a time.
var (
	noted  atomic.Pointer[[]int]
	noteOf = executor.Define("test.note", func(_ context.Context, n int) (int, error) {
		noted.Store(new(append(*noted.Load(), n)))
		return n, nil
	})
)

func TestCancelBeforeItBegins(t *testing.T) {
	for name, cancelled := range map[string]func(x *executor.Executor) (*future.Future[string], func()){
		"by the future": func(x *executor.Executor) (*future.Future[string], func()) {
			f, _ := pass.Submit(context.Background(), x, "never")
			return f, f.Cancel
		},
		"by the context": func(x *executor.Executor) (*future.Future[string], func()) {
			ctx, cancel := context.WithCancel(context.Background())
			f, _ := pass.Submit(ctx, x, "never")
			return f, cancel
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := goroutines(t, executor.Options{MaxWorkers: 1})
				busy, never := newGate(t, "busy"), newGate(t, "never")
				running := submit(t, pass, x, "busy")
				<-busy.begun
				f, cancel := cancelled(x)
				next := submit(t, square, x, 3)
				cancel()
				synctest.Wait()
				failed := failure(t, f)
				require.ErrorIs(t, failed, supervisor.ErrCanceled, "verdict")
				require.True(t, failed.Unexecuted, "it was not executed")
				require.Equal(t, -1, failed.Worker, "no worker had it")
				close(busy.open)
				require.Equal(t, "busy", value(t, running), "the one before it")
				require.Equal(t, 9, value(t, next), "the one behind it")
				require.Zero(t, never.runs, "executions")
				shutdown(t, x)
			})
		})
	}
}

func TestCancelWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := goroutines(t, executor.Options{MaxWorkers: 1})
		g := newGate(t, "running")
		f := submit(t, pass, x, "running")
		<-g.begun
		f.Cancel()
		failed := failure(t, f)
		require.ErrorIs(t, failed, supervisor.ErrCanceled, "verdict")
		require.False(t, failed.Unexecuted, "it has begun")
		require.Equal(t, 4, value(t, submit(t, square, x, 2)), "the next task, by the same worker")
		shutdown(t, x)
		require.Zero(t, x.Stats().Workers.Crashed, "workers that died")
	})
}

// A cancelled task that does not heed its context keeps its worker, and its future ends all the same.
func TestCancelOfADeafTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := goroutines(t, executor.Options{MaxWorkers: 1})
		g := newGate(t, "deaf")
		f := submit(t, deaf, x, "deaf")
		<-g.begun
		next := submit(t, square, x, 2)
		f.Cancel()
		require.ErrorIs(t, failure(t, f), supervisor.ErrCanceled, "verdict")
		synctest.Wait()
		select {
		case <-next.Done():
			t.Fatal("the next task ran beside one that had not returned")
		default:
		}
		close(g.open)
		require.Equal(t, 4, value(t, next), "the next task")
		shutdown(t, x)
	})
}

func TestDeadline(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			x := newExecutor(t, executor.Options{MaxWorkers: 1, Workers: ofKind(kind)})
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			f, err := misbehave.Submit(ctx, x, "wait")
			require.NoError(t, err, "Submit")
			require.ErrorIs(t, failure(t, f), supervisor.ErrTimeout, "verdict of a running task")
			require.Equal(t, "5", value(t, submit(t, misbehave, x, "5")), "the next task")

			<-ctx.Done() // the task has a timer of its own, which may be first
			_, err = misbehave.Submit(ctx, x, "5")
			require.ErrorIs(t, err, supervisor.ErrTimeout, "Submit after the deadline")
			shutdown(t, x)
			require.Zero(t, x.Stats().Workers.Crashed, "workers that died")
		})
	}
}

var hasDeadline = executor.Define("test.hasDeadline", func(ctx context.Context, _ int) (bool, error) {
	_, ok := ctx.Deadline()
	return ok, nil
})

func TestDeadlineReachesTheTask(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			x := newExecutor(t, executor.Options{MaxWorkers: 1, Workers: ofKind(kind)})
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			f, err := hasDeadline.Submit(ctx, x, 0)
			require.NoError(t, err, "Submit")
			require.True(t, value(t, f), "deadline with one")
			require.False(t, value(t, submit(t, hasDeadline, x, 0)), "deadline without one")
			shutdown(t, x)
		})
	}
}

var hung = executor.Define("test.hung", func(ctx context.Context, name string) (string, error) {
	if name == "hang" {
		select {}
	}
	return name, nil
}, executor.KillAfter(50*time.Millisecond))

func TestKillAfter(t *testing.T) {
	if !processes(t) {
		return
	}
	x := newExecutor(t, executor.Options{MaxWorkers: 1, Breaker: executor.Breaker{Max: 1}, Workers: []supervisor.ChildOption{
		supervisor.Stop{TermGrace: 10 * time.Millisecond},
	}})
	for range 3 { // more often than the breaker allows for crashes
		f := submit(t, hung, x, "hang")
		others := []*future.Future[string]{submit(t, hung, x, "a"), submit(t, hung, x, "b")}
		failed := failure(t, f)
		require.ErrorIs(t, failed, supervisor.ErrTimeout, "verdict")
		require.NotNil(t, failed.Exit(), "how the worker ended")
		require.Contains(t, failed.Exit().Trace, "submit_test.go", "stacks of what it was doing")
		for _, f := range others {
			value(t, f)
		}
	}
	cancelled := submit(t, hung, x, "hang")
	until(t, x, "it runs", func(s executor.Stats) bool { return s.Running == 1 })
	cancelled.Cancel()
	require.ErrorIs(t, failure(t, cancelled), supervisor.ErrCanceled, "verdict of a cancelled task")
	require.Equal(t, "c", value(t, submit(t, hung, x, "c")), "the next task, by another worker")
	shutdown(t, x)
}

// processes skips nothing: it reports whether this system has worker processes.
func processes(t testing.TB) bool {
	t.Helper()
	return len(kinds()) == 2
}

func TestRefusals(t *testing.T) {
	x := newExecutor(t, executor.Options{Workers: ofKind(supervisor.Goroutine)})
	shutdown(t, x)
	_, err := square.Submit(t.Context(), x, 1)
	require.ErrorIs(t, err, supervisor.ErrClosed, "Submit after Shutdown")
	require.ErrorIs(t, x.Resize(2), supervisor.ErrClosed, "Resize after Shutdown")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = square.Submit(ctx, x, 1)
	require.ErrorIs(t, err, supervisor.ErrCanceled, "Submit with an ended context")
}

func TestOptionsThatDoNotFit(t *testing.T) {
	for name, o := range map[string]executor.Options{
		"no workers":        {MaxWorkers: -1},
		"idle workers":      {MaxWorkers: 1, MinIdle: 2},
		"no queue":          {Queue: -1},
		"reuse":             {Reuse: 7},
		"breaker":           {Breaker: executor.Breaker{Within: -1}},
		"concurrency":       {Workers: []supervisor.ChildOption{supervisor.WithConcurrency(2)}},
		"copies":            {Workers: ofKind(supervisor.Goroutine, supervisor.WithCopy())},
		"another program":   {Workers: []supervisor.ChildOption{supervisor.Proc{Path: "/bin/true"}}},
		"the wrong kind":    {Workers: ofKind(supervisor.Goroutine, supervisor.Share{CPU: 1})},
		"a negative limit":  {Workers: []supervisor.ChildOption{supervisor.Limits{Queue: -1}}},
		"an unknown kind":   {Workers: ofKind(99)},
		"an option of none": {Workers: []supervisor.ChildOption{nil}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := executor.New(o)
			require.Error(t, err, "New")
			require.True(t, anyIs(err, supervisor.ErrBadArgs, supervisor.ErrUnsupported), "New: %v", err)
		})
	}
	x := newExecutor(t, executor.Options{Workers: ofKind(supervisor.Goroutine)})
	require.ErrorIs(t, x.Resize(0), supervisor.ErrBadArgs, "Resize(0)")
	require.ErrorIs(t, x.Resize(-1), supervisor.ErrBadArgs, "Resize(-1)")
	shutdown(t, x)
}

func TestDefineTwice(t *testing.T) {
	same := func(context.Context, int) (int, error) { return 0, nil }
	require.PanicsWithValue(t, panicContaining(t, func() { executor.Define("test.square", same) }, "fixtures_test.go", "submit_test.go"), func() { executor.Define("test.square", same) })
	require.Panics(t, func() { executor.Define("", same) }, "an empty name")
	x := newExecutor(t, executor.Options{Workers: ofKind(supervisor.Goroutine)})
	value(t, submit(t, square, x, 1))
	panicContaining(t, func() { executor.Define("test.too late", same) }, "after a worker was started")
	shutdown(t, x)
}

// panicContaining runs f, which must panic with a text that has all parts, and returns it.
func panicContaining(t *testing.T, f func(), parts ...string) (text string) {
	t.Helper()
	defer func() {
		t.Helper()
		text, _ = recover().(string)
		for _, part := range parts {
			require.Contains(t, text, part, "panic")
		}
	}()
	f()
	return ""
}

func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := goroutines(t, executor.Options{MaxWorkers: 1})
		g := newGate(t, "busy")
		f := submit(t, pass, x, "busy")
		<-g.begun
		waiting := submit(t, pass, x, "waits")
		<-time.After(time.Second)
		stats := x.Stats()
		require.Equal(t, 1, stats.Queued, "queued")
		require.Equal(t, 1, stats.Running, "running")
		require.Equal(t, executor.WorkerStats{Max: 1, Now: 1}, stats.Workers, "workers")
		close(g.open)
		value(t, f)
		value(t, waiting)
		synctest.Wait()
		stats = x.Stats()
		require.EqualValues(t, 2, stats.Done, "done")
		require.Equal(t, 1, stats.Workers.Idle, "idle")
		require.Equal(t, time.Second, stats.Run.P99, "longest run")
		shutdown(t, x)
	})
}

var hungDeaf = executor.Define("test.hungDeaf", func(_ context.Context, name string) (string, error) {
	gates.Lock()
	g := gates.byName[name]
	gates.Unlock()
	<-g.open
	return name, nil
}, executor.KillAfter(time.Second))

// A goroutine worker that hangs is left behind and replaced; Shutdown names it as long as it is there.
func TestKillAfterOfAGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := goroutines(t, executor.Options{MaxWorkers: 1}, supervisor.Stop{TermGrace: time.Second})
		g := newGate(t, "hung")
		begin := time.Now()
		failed := failure(t, submit(t, hungDeaf, x, "hung"))
		require.ErrorIs(t, failed, supervisor.ErrTimeout, "verdict")
		require.InDelta(t, 2*time.Second, time.Since(begin), float64(500*time.Millisecond), "time until then")
		require.Equal(t, 4, value(t, submit(t, square, x, 2)), "the next task")
		var stuck *supervisor.StuckError
		require.ErrorAs(t, x.Shutdown(t.Context()), &stuck, "Shutdown")
		close(g.open)
		synctest.Wait()
	})
}
