package executor_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/executor"
	"github.com/workerlink/supervisor/future"
	"github.com/workerlink/supervisor/internal/testkit"
)

// L17: what goes wrong with a task goes wrong likewise if it was submitted by the callback of another one.
func TestL17CrashesFromACallback(t *testing.T) {
	if !processes(t) {
		return
	}
	testkit.NoLeaks(t)
	o := executor.Options{Name: uniqueName("callback"), MaxWorkers: 2, Breaker: executor.Breaker{Backoff: quick}}
	l := lease(t, o)
	for _, tt := range []struct {
		bomb
		check func(t *testing.T, err error)
	}{
		{bomb{"encode argument", "error"}, is(supervisor.ErrEncode)},
		{bomb{"decode argument", "exit"}, exited(3, 0)},
		{bomb{"decode argument", "exit 0"}, exited(0, 0)},
		{bomb{"decode argument", "error"}, is(supervisor.ErrDecode)},
		{bomb{"decode argument", "fault"}, faulted},
		{bomb{"run", "fault"}, faulted},
		{bomb{"run", "exit"}, exited(3, 0)},
		{bomb{"run", "exit 0"}, exited(0, 0)},
		{bomb{"run", "kill"}, exited(-1, syscall.SIGKILL)},
		{bomb{"run", "error"}, says("bomb")},
		{bomb{"encode result", "fault"}, faulted},
		{bomb{"encode result", "exit"}, exited(3, 0)},
		{bomb{"encode result", "exit 0"}, exited(0, 0)},
		{bomb{"encode result", "error"}, is(supervisor.ErrEncode)},
		{bomb{"decode result", "error"}, is(supervisor.ErrDecode)},
	} {
		t.Run(tt.Step+"/"+tt.Way, func(t *testing.T) {
			first := submit(t, square, l.Executor, 6)
			second := make(chan error, 1)
			first.Then(func(int, error) { second <- submitFromCallback(o, tt.bomb) })
			require.Equal(t, 36, value(t, first), "the first task")
			tt.check(t, testkit.Receive(t, second, "verdict of the second task"))
			require.Equal(t, 4, value(t, submit(t, square, l.Executor, 2)), "the next task")
		})
	}
}

func submitFromCallback(o executor.Options, b bomb) error {
	l, err := executor.Reusable(context.Background(), o)
	if err != nil {
		return err
	}
	defer l.Release()
	f, err := carry.Submit(context.Background(), l.Executor, argument{b})
	if err == nil {
		_, err = f.Result(context.Background())
	}
	return err
}

// A callback runs on a goroutine of its own, which it may end.
func TestL18CallbackThatEndsItsGoroutine(t *testing.T) {
	o := executor.Options{Name: uniqueName("goexit"), MaxWorkers: 1, Workers: ofKind(supervisor.Goroutine)}
	for range 2 {
		l := lease(t, o)
		begun := make(chan struct{})
		first := submit(t, square, l.Executor, 6)
		first.Then(func(int, error) { close(begun); runtime.Goexit() })
		testkit.Closed(t, begun, "the callback")
		require.Equal(t, 36, value(t, first), "the first task")
		require.Equal(t, 4, value(t, submit(t, square, l.Executor, 2)), "the next task")
	}
}

// A larger size is given while a task runs, whose worker is then killed: that costs this task.
func TestL19ResizeWhileATaskRuns(t *testing.T) {
	if !processes(t) {
		return
	}
	testkit.NoLeaks(t)
	events := testkit.NewRecorder(func(e executor.Event) executor.EventKind { return e.Kind })
	o := executor.Options{Name: uniqueName("busy"), MaxWorkers: 1, MinIdle: 1, Events: events.Record}
	first := lease(t, o)
	pid := events.Wait(t, executor.EventStarted).Pid
	running := held(t, first.Executor)
	o.MaxWorkers = 2
	second := lease(t, o)
	require.Equal(t, executor.ReasonResized, second.Reason(), "reason")
	require.EqualValues(t, 2, events.Wait(t, executor.EventResized).N, "size of the event")
	kill(pid)
	exited(-1, syscall.SIGKILL)(t, failure(t, running))
	require.Equal(t, 42, value(t, submit(t, moved, second.Executor, point{X: 41})).X, "a task")
	third := lease(t, o)
	require.Equal(t, executor.ReasonReused, third.Reason(), "an executor whose worker has died is not broken")
}

// A task that never returns keeps nobody from another executor, and ends with its own one.
func TestL27RotationWithAHungTask(t *testing.T) {
	if !processes(t) {
		return
	}
	testkit.NoLeaks(t)
	o := executor.Options{Name: uniqueName("hung"), MaxWorkers: 1}
	first := lease(t, o)
	hung := submit(t, misbehave, first.Executor, "hang")
	until(t, first.Executor, "it runs", func(s executor.Stats) bool { return s.Running == 1 })
	o.IdleTimeout = time.Minute
	second := lease(t, o)
	require.Equal(t, executor.ReasonOptions, second.Reason(), "reason")
	testkit.Within(t, time.Second, func() { require.NoError(t, first.KillWorkers(), "KillWorkers") })
	require.ErrorIs(t, failure(t, hung), supervisor.ErrClosed, "the hung task")
	require.Equal(t, 4, value(t, submit(t, square, second.Executor, 2)), "a task of the new one")
}

// Of two workers the one that is busy stays, and is one of those of the next larger size.
func TestL30ResizeKeepsTheBusyWorker(t *testing.T) {
	if !processes(t) {
		return
	}
	testkit.NoLeaks(t)
	events := testkit.NewRecorder(func(e executor.Event) executor.EventKind { return e.Kind })
	o := executor.Options{Name: uniqueName("keeps"), MaxWorkers: 2, Events: events.Record}
	first := lease(t, o)
	tasks := []*future.Future[string]{submit(t, misbehave, first.Executor, "wait"), submit(t, misbehave, first.Executor, "wait")}
	old := []int{events.Wait(t, executor.EventStarted).Pid, events.Wait(t, executor.EventStarted).Pid}
	until(t, first.Executor, "both run", func(s executor.Stats) bool { return s.Running == 2 })

	o.MaxWorkers = 1
	smaller := lease(t, o)
	require.Equal(t, executor.ReasonResized, smaller.Reason(), "reason")
	require.Equal(t, 2, smaller.Stats().Running, "tasks that run on")
	tasks[0].Cancel()
	events.Wait(t, executor.EventLeft)
	require.Equal(t, 1, smaller.Stats().Workers.Now, "workers")
	require.NoError(t, tasks[1].Err(), "the other task")
	tasks[1].Cancel()
	kept := value(t, submit(t, getpid, smaller.Executor, 0))
	require.Contains(t, old, kept, "the process that stays")
	again := lease(t, o)
	require.Equal(t, executor.ReasonReused, again.Reason(), "the same size")
	require.Equal(t, kept, value(t, submit(t, getpid, again.Executor, 0)), "its process")

	o.MaxWorkers = 2
	larger := lease(t, o)
	require.Same(t, first.Executor, larger.Executor, "executor")
	submit(t, misbehave, larger.Executor, "wait")
	submit(t, misbehave, larger.Executor, "wait")
	events.Wait(t, executor.EventStarted)
	until(t, larger.Executor, "both run", func(s executor.Stats) bool { return s.Running == 2 })
	require.Contains(t, childPids(larger.Executor), kept, "processes of the larger one")
}

// childPids are the processes of an executor's workers.
func childPids(x *executor.Executor) (pids []int) {
	shot := x.Snapshot().(executor.Snapshot)
	for _, c := range shot.Workers.Children {
		pids = append(pids, c.Pid)
	}
	return pids
}

// Sizes change while there is work, of one executor or of one after the other.
func TestL31SizesUnderLoad(t *testing.T) {
	for _, kind := range kinds() {
		for _, reuse := range []executor.ReuseMode{executor.ReuseAuto, executor.ReuseNever} {
			for _, killed := range []bool{false, true} {
				if kind == supervisor.Process && killed != (reuse == executor.ReuseNever) {
					continue // many processes at once, which say no more than one after the other
				}
				t.Run(fmt.Sprintf("%v/%v/killed %v", kind, reuse, killed), func(t *testing.T) {
					testkit.NoLeaks(t)
					sizesUnderLoad(t, executor.Options{Name: uniqueName("sizes"), Reuse: reuse, Workers: ofKind(kind)}, killed)
				})
			}
		}
	}
}

func sizesUnderLoad(t *testing.T, o executor.Options, killed bool) {
	var old *executor.Lease
	var tasks []*future.Future[int]
	for _, o.MaxWorkers = range []int{12, 2, 1, 12, 6, 1, 8, 5} {
		l := lease(t, o)
		if killed && old != nil && old.Executor != l.Executor {
			require.NoError(t, old.KillWorkers(), "KillWorkers of the old one")
		}
		for i := range 6 {
			tasks = append(tasks, submit(t, square, l.Executor, i))
		}
		old = l
	}
	for i, f := range tasks {
		n, err := f.Result(testkit.Context(t))
		if killed && o.Reuse == executor.ReuseNever && err != nil {
			require.ErrorIs(t, err, supervisor.ErrClosed, "task %d", i)
			continue
		}
		require.NoError(t, err, "task %d", i)
		require.Equal(t, i%6*(i%6), n, "task %d", i)
	}
}

// L26, L32: a worker that is killed by another one's task while the executor is resized, or ends.
func TestL32ResizeWhileAWorkerDies(t *testing.T) {
	if !processes(t) {
		return
	}
	for name, end := range map[string]func(t *testing.T, x *executor.Executor){
		"resize": func(t *testing.T, x *executor.Executor) {
			require.NoError(t, x.Resize(1), "Resize")
			require.Equal(t, 36, value(t, submit(t, square, x, 6)), "the next task")
		},
		"shutdown": func(t *testing.T, x *executor.Executor) { shutdown(t, x) },
	} {
		t.Run(name, func(t *testing.T) {
			x := newExecutor(t, executor.Options{MaxWorkers: 2, IdleTimeout: -1})
			both := []*future.Future[string]{submit(t, misbehave, x, "wait"), submit(t, misbehave, x, "wait")}
			until(t, x, "both run", func(s executor.Stats) bool { return s.Running == 2 })
			pids := childPids(x)
			require.Len(t, pids, 2, "processes")
			for _, f := range both {
				f.Cancel()
			}
			until(t, x, "both are idle", func(s executor.Stats) bool { return s.Workers.Idle == 2 })
			killers := []*future.Future[int]{submit(t, killOf, x, pids[0]), submit(t, killOf, x, pids[1])}
			end(t, x)
			for _, f := range killers {
				if _, err := f.Result(testkit.Context(t)); err != nil {
					exited(-1, syscall.SIGKILL)(t, err)
				}
			}
			shutdown(t, x)
		})
	}
}

// L33, L90: workers that leave at once when they are idle, one size after the other.
func TestL33ShortIdleTimeouts(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			testkit.NoLeaks(t)
			o := executor.Options{Name: uniqueName("idle"), IdleTimeout: time.Millisecond, Workers: ofKind(kind)}
			var x *executor.Executor
			for i, size := range []int{2, 8, 2} {
				o.MaxWorkers = size
				l := lease(t, o)
				require.Equal(t, i == 0, !l.Reused(), "size %d: a new one", size)
				x = l.Executor
				require.Equal(t, 36, value(t, submit(t, square, x, 6)), "size %d: a task", size)
				until(t, x, "no worker is left", func(s executor.Stats) bool { return s.Workers.Now == 0 })
			}
			require.Zero(t, x.Stats().Workers.Crashed, "workers that died")
		})
	}
}

// Many ask at once, also when the executor that is there is broken: each gets one that works.
func TestL43ManyAskAtOnce(t *testing.T) {
	for _, broken := range []bool{false, true} {
		for _, sizes := range []int{1, 4} {
			t.Run(fmt.Sprintf("broken %v/%d sizes", broken, sizes), func(t *testing.T) {
				o := executor.Options{
					Name: uniqueName("threads"), MaxWorkers: 2, Workers: ofKind(supervisor.Goroutine),
					Breaker: executor.Breaker{Max: 1, Backoff: quick},
				}
				if broken {
					x := lease(t, o).Executor
					for range 2 {
						require.Error(t, failure(t, submit(t, fatal, x, 1)), "a task that ends its worker")
					}
					testkit.Until(t, "broken", func() bool { return x.Health(t.Context()) != nil })
				}
				var askers sync.WaitGroup
				for a := range 10 {
					askers.Go(func() {
						o := o
						if sizes > 1 {
							o.MaxWorkers = 1 + a%sizes
						}
						for range 5 {
							squaresOf(t, o, 10)
						}
					})
				}
				askers.Wait()
				lease(t, o) // so that it ends with the test
			})
		}
	}
}

// squaresOf maps over n numbers on whatever Reusable gives for o.
func squaresOf(t *testing.T, o executor.Options, n int) {
	l, err := executor.Reusable(context.Background(), o)
	if err != nil {
		t.Errorf("Reusable: %v", err)
		return
	}
	defer l.Release()
	at := 0
	for item := range executor.Map(context.Background(), l.Executor, square, upTo(n, nil)) {
		if item.Err != nil || item.Out != at*at {
			t.Errorf("item %d: %+v", at, item)
		}
		at++
	}
	if at != n {
		t.Errorf("%d items of %d", at, n)
	}
}

// Each of many tasks that are submitted at once runs with the environment that was asked for.
func TestL45EnvironmentOfEach(t *testing.T) {
	if !processes(t) {
		return
	}
	testkit.NoLeaks(t)
	name := uniqueName("environments")
	var askers sync.WaitGroup
	for a := range 10 {
		askers.Go(func() {
			for i := range 2 {
				want := fmt.Sprint(2*a + i)
				l, err := executor.Reusable(context.Background(), executor.Options{
					Name: name, MaxWorkers: 1, Workers: []supervisor.ChildOption{supervisor.Proc{Env: []string{"EACH=" + want}}},
				})
				if err != nil {
					t.Errorf("Reusable: %v", err)
					return
				}
				f, err := getenv.Submit(context.Background(), l.Executor, "EACH")
				if err == nil {
					var got string
					if got, err = f.Result(context.Background()); got != want {
						t.Errorf("got %q, want %q, %v", got, want, err)
					}
				}
				if err != nil {
					t.Errorf("task %s: %v", want, err)
				}
				l.Release()
			}
		})
	}
	askers.Wait()
	last := lease(t, executor.Options{Name: name, Reuse: executor.ReuseAlways})
	require.NoError(t, last.KillWorkers(), "KillWorkers")
}

// A worker has its host's environment as it is when it starts, with what Proc.Env says above it.
func TestL129EnvironmentIsInherited(t *testing.T) {
	if !processes(t) {
		return
	}
	t.Setenv("INHERITED", "from the host")
	t.Setenv("OVERRIDDEN", "from the host")
	x := newExecutor(t, executor.Options{MaxWorkers: 1, Workers: []supervisor.ChildOption{supervisor.Proc{Env: []string{"OVERRIDDEN=by an option"}}}})
	require.Equal(t, "from the host", value(t, submit(t, getenv, x, "INHERITED")), "a variable")
	require.Equal(t, "by an option", value(t, submit(t, getenv, x, "OVERRIDDEN")), "an overridden variable")
	shutdown(t, x)
}
