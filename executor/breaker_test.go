package executor_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/executor"
	"github.com/workerlink/supervisor/future"
	"github.com/workerlink/supervisor/internal/testkit"
)

var quick = supervisor.Backoff{Min: time.Millisecond, Max: time.Millisecond}

func TestBreakerOfCrashes(t *testing.T) {
	if !processes(t) {
		return
	}
	events := testkit.NewRecorder(func(e executor.Event) executor.EventKind { return e.Kind })
	x := newExecutor(t, executor.Options{MaxWorkers: 1, Breaker: executor.Breaker{Max: 3, Backoff: quick}, Events: events.Record})
	var crashes []*future.Future[string]
	for range 6 {
		crashes = append(crashes, submit(t, misbehave, x, "exit test"))
	}
	for i, f := range crashes {
		failed := failure(t, f)
		require.NotNil(t, failed.Exit(), "task %d: how a worker ended: %v", i, failed)
		require.Equal(t, 3, failed.Exit().Code, "task %d: exit code", i)
		if i < 4 {
			require.NotErrorIs(t, failed, executor.ErrBroken, "task %d", i)
		} else {
			require.ErrorIs(t, failed, executor.ErrBroken, "task %d", i)
			require.True(t, failed.Unexecuted, "task %d never ran", i)
		}
	}
	_, err := square.Submit(t.Context(), x, 1)
	require.ErrorIs(t, err, executor.ErrBroken, "Submit to a broken executor")
	var exit *supervisor.ExitError
	require.ErrorAs(t, err, &exit, "its cause")
	require.ErrorIs(t, x.Health(t.Context()), executor.ErrBroken, "Health")
	require.ErrorIs(t, x.Resize(3), executor.ErrBroken, "Resize")
	events.Wait(t, executor.EventBroken)
	until(t, x, "no worker is left", func(s executor.Stats) bool { return s.Workers.Now == 0 })
	shutdown(t, x)
}

// Crashes with successes between them break nothing.
func TestCrashesThatDoNotBreak(t *testing.T) {
	if !processes(t) {
		return
	}
	x := newExecutor(t, executor.Options{MaxWorkers: 1, Breaker: executor.Breaker{Max: 1, Backoff: quick}})
	for range 5 {
		require.NotErrorIs(t, failure(t, submit(t, misbehave, x, "exit test")), executor.ErrBroken, "a crash")
		require.Equal(t, 4, value(t, submit(t, square, x, 2)), "a task")
	}
	shutdown(t, x)
}

func TestBreakerOfStarts(t *testing.T) {
	if !processes(t) {
		return
	}
	x := newExecutor(t, executor.Options{
		MaxWorkers: 2, Breaker: executor.Breaker{Max: 3, Backoff: quick},
		Workers: []supervisor.ChildOption{supervisor.Proc{Dir: "/no/such/directory"}},
	})
	failed := failure(t, submit(t, square, x, 1))
	require.ErrorIs(t, failed, executor.ErrBroken, "verdict")
	var start *supervisor.StartError
	require.ErrorAs(t, failed, &start, "its cause")
	require.ErrorContains(t, failed, "no such file or directory")
	shutdown(t, x)
}

// The window of the breaker slides, and workers are started again after longer and longer pauses.
func TestBreakerWindow(t *testing.T) {
	for _, tt := range []struct {
		name   string
		pause  time.Duration // between two tasks
		broken bool
	}{
		{"in the window", time.Second, true},
		{"out of the window", 20 * time.Second, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := goroutines(t, executor.Options{MaxWorkers: 1, Breaker: executor.Breaker{Max: 3, Within: time.Minute, Backoff: quick}})
				for range 10 {
					f, err := fatal.Submit(t.Context(), x, 1)
					if err == nil {
						_, err = f.Result(t.Context())
					}
					if !tt.broken {
						require.NotErrorIs(t, err, executor.ErrBroken)
					}
					<-time.After(tt.pause)
				}
				require.Equal(t, tt.broken, x.Health(t.Context()) != nil, "broken")
				shutdown(t, x)
			})
		})
	}
}

func TestBackoffOfStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := goroutines(t, executor.Options{MaxWorkers: 1, Breaker: executor.Breaker{
			Max: -1, Backoff: supervisor.Backoff{First: time.Second, Min: 10 * time.Second, Max: 15 * time.Second},
		}})
		for _, pause := range []time.Duration{0, time.Second, 10 * time.Second, 15 * time.Second, 15 * time.Second} {
			begin := time.Now()
			require.ErrorIs(t, failure(t, submit(t, fatal, x, 1)), errRefused, "verdict")
			require.InDelta(t, pause, time.Since(begin), float64(pause)/4, "pause before the worker was started")
			synctest.Wait()
		}
		<-time.After(time.Minute)
		require.Equal(t, 4, value(t, submit(t, square, x, 2)), "a success")
		require.ErrorIs(t, failure(t, submit(t, fatal, x, 1)), errRefused, "verdict")
		begin := time.Now()
		require.Equal(t, 4, value(t, submit(t, square, x, 2)), "a task after the first crash since")
		require.InDelta(t, time.Second, time.Since(begin), float64(time.Second)/4, "pause")
		shutdown(t, x)
	})
}

type model struct{ name string }

func (m *model) close() error { return nil }

// Close is called when its worker ends.
func (m *model) Close() error { closed.Add(1); return m.close() }

func (m *model) greet(_ context.Context, name string) (string, error) {
	return m.name + " greets " + name, nil
}

func (m *model) count(context.Context, int) (int64, error) { return made.Load(), nil }

var (
	newModel = supervisor.DefineWith("test.model", func(_ context.Context, name string) (*model, error) {
		made.Add(1)
		return &model{name}, nil
	})
	greet = executor.Method("test.greet", newModel.With("m"), (*model).greet)
	count = executor.Method("test.count", newModel.With("m"), (*model).count)
	other = executor.Method("test.other", newModel.With("o"), (*model).greet)

	badModel = supervisor.Define("test.badModel", func(context.Context) (*model, error) { return nil, errRefused })
	bad      = executor.Method("test.bad", badModel, (*model).greet)

	slowModel = supervisor.Define("test.slowModel", func(ctx context.Context) (*model, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	slow = executor.Method("test.slow", slowModel, (*model).greet)

	hungModel = supervisor.Define("test.hungModel", func(context.Context) (*model, error) { select {} })
	stuck     = executor.Method("test.stuck", hungModel, (*model).greet)

	valueModel = supervisor.Define("test.valueModel", func(context.Context) (model, error) { return model{"v"}, nil })
	byValue    = executor.Method("test.byValue", valueModel, model.show)
	byPointer  = executor.Method("test.byPointer", valueModel, (*model).greet)
	mismatch   = executor.Method("test.mismatch", valueModel, func(*point, context.Context, string) (string, error) { return "", nil })
)

func (m model) show(context.Context, string) (string, error) { return m.name, nil }

func TestMethod(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			made.Store(0)
			x := newExecutor(t, executor.Options{MaxWorkers: 1, Workers: ofKind(kind)})
			for range 3 {
				require.Equal(t, "m greets you", value(t, submit(t, greet, x, "you")), "first object")
			}
			require.EqualValues(t, 1, value(t, submit(t, count, x, 0)), "objects that were made in the worker: functions with equal specs share one")
			require.Equal(t, "o greets you", value(t, submit(t, other, x, "you")), "second object")
			require.EqualValues(t, 2, value(t, submit(t, count, x, 0)), "objects that were made in the worker")
			require.Equal(t, "v", value(t, submit(t, byValue, x, "you")), "an object by value")
			require.Equal(t, "v greets you", value(t, submit(t, byPointer, x, "you")), "the same by pointer")
			require.ErrorIs(t, failure(t, submit(t, mismatch, x, "you")), supervisor.ErrBadArgs, "an object of another type")
			n := 0
			for item := range executor.Map(t.Context(), x, greet, func(yield func(string) bool) {
				for i := 0; i < 5000 && yield("all"); i++ {
				}
			}) {
				require.NoError(t, item.Err)
				n++
			}
			require.Equal(t, 5000, n, "items")
			closed.Store(0)
			shutdown(t, x)
			if kind == supervisor.Goroutine {
				require.EqualValues(t, 3, closed.Load(), "objects that were closed")
			}
		})
	}
}

func TestObjectThatCannotBeMade(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			x := newExecutor(t, executor.Options{MaxWorkers: 1, Workers: ofKind(kind), Breaker: executor.Breaker{Max: 2}})
			for range 2 {
				failed := failure(t, submit(t, bad, x, "you"))
				var load *executor.LoadError
				require.ErrorAs(t, failed, &load, "verdict")
				require.ErrorIs(t, failed, errRefused, "its cause")
				require.Equal(t, "test.badModel", load.Factory, "factory")
				require.True(t, failed.Unexecuted, "it never ran")
			}
			require.Equal(t, 4, value(t, submit(t, square, x, 2)), "another function")
			for range 3 {
				require.ErrorIs(t, failure(t, submit(t, bad, x, "you")), errRefused, "verdict")
			}
			testkit.Until(t, "the executor is broken", func() bool { return x.Health(t.Context()) != nil })
			require.ErrorIs(t, x.Health(t.Context()), errRefused, "cause")
			shutdown(t, x)
		})
	}
}

// startLimit is long enough for a process to start.
const startLimit = 500 * time.Millisecond * testkit.Slowdown

func TestObjectThatTakesTooLong(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			x := newExecutor(t, executor.Options{MaxWorkers: 1, Workers: ofKind(kind, supervisor.WithStartTimeout(startLimit), supervisor.Stop{TermGrace: 10 * time.Millisecond})})
			begin := time.Now()
			failed := failure(t, submit(t, slow, x, "you"))
			require.ErrorIs(t, failed, supervisor.ErrTimeout, "verdict")
			require.Less(t, time.Since(begin), 4*startLimit, "time until then")
			require.Equal(t, 4, value(t, submit(t, square, x, 2)), "another function")
			if kind == supervisor.Process {
				require.ErrorIs(t, failure(t, submit(t, stuck, x, "you")), supervisor.ErrTimeout, "verdict of an object that hangs")
				require.Equal(t, 4, value(t, submit(t, square, x, 2)), "another function after that")
			}
			shutdown(t, x)
		})
	}
}

// The delay holds also if the worker dies just after its task has its verdict, and another one is there at once.
func TestBackoffAfterADeathBetweenTasks(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			x := goroutines(t, executor.Options{MaxWorkers: 1, Breaker: executor.Breaker{Max: -1, Backoff: supervisor.Backoff{First: time.Second}}})
			require.ErrorIs(t, failure(t, submit(t, fatal, x, 1)), errRefused, "verdict")
			begin := time.Now()
			require.Equal(t, 4, value(t, submit(t, square, x, 2)), "the next task")
			require.InDelta(t, time.Second, time.Since(begin), float64(time.Second)/4, "pause")
			shutdown(t, x)
		})
	}
}
