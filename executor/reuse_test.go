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
	"github.com/workerlink/supervisor/internal/testkit"
)

// lease returns a lease that is released at the end of the test, when its executor is killed as well.
func lease(t testing.TB, o executor.Options) *executor.Lease {
	t.Helper()
	l, err := executor.Reusable(t.Context(), o)
	require.NoError(t, err, "Reusable")
	t.Cleanup(func() {
		_ = l.KillWorkers()
		l.Release()
	})
	return l
}

func TestReusable(t *testing.T) {
	goroutine := ofKind(supervisor.Goroutine)
	base := executor.Options{Name: "reusable", MaxWorkers: 2, Workers: goroutine}
	with := func(change func(o *executor.Options)) executor.Options {
		o := base
		change(&o)
		return o
	}
	for _, tt := range []struct {
		name   string
		before func(t *testing.T, x *executor.Executor)
		next   executor.Options
		reason executor.Reason
		size   int
	}{
		{"the same", nil, base, executor.ReasonReused, 2},
		{"another size", nil, with(func(o *executor.Options) { o.MaxWorkers = 3 }), executor.ReasonResized, 3},
		{"the default size", nil, with(func(o *executor.Options) { o.MaxWorkers = 0 }), reasonOf(executor.CPUs() == 2), executor.CPUs()},
		{"another idle timeout", nil, with(func(o *executor.Options) { o.IdleTimeout = time.Second }), executor.ReasonOptions, 2},
		{"the default idle timeout, said", nil, with(func(o *executor.Options) { o.IdleTimeout = 10 * time.Second }), executor.ReasonReused, 2},
		{"other workers", nil, with(func(o *executor.Options) {
			o.Workers = ofKind(supervisor.Goroutine, supervisor.WithStartTimeout(time.Second))
		}), executor.ReasonOptions, 2},
		{"equal options, made anew", nil, with(func(o *executor.Options) { o.Workers = ofKind(supervisor.Goroutine, supervisor.Stop{}) }), executor.ReasonReused, 2},
		{"another listener", nil, with(func(o *executor.Options) { o.Events = func(executor.Event) {} }), executor.ReasonReused, 2},
		{"always", nil, with(func(o *executor.Options) { *o = executor.Options{Name: o.Name, Reuse: executor.ReuseAlways} }), executor.ReasonReused, 2},
		{"always, with a size", nil, with(func(o *executor.Options) { o.Reuse, o.MaxWorkers, o.MinIdle = executor.ReuseAlways, 5, 1 }), executor.ReasonResized, 5},
		{"never", nil, with(func(o *executor.Options) { o.Reuse = executor.ReuseNever }), executor.ReasonNever, 2},
		{"shut down", func(t *testing.T, x *executor.Executor) { shutdown(t, x) }, base, executor.ReasonClosed, 2},
		{"killed, always", func(t *testing.T, x *executor.Executor) { require.NoError(t, x.KillWorkers()) }, with(func(o *executor.Options) {
			o.Reuse = executor.ReuseAlways
		}), executor.ReasonClosed, 2},
		{"broken", func(t *testing.T, x *executor.Executor) {
			for range 6 {
				f, err := fatal.Submit(t.Context(), x, 1)
				if err == nil {
					_, _ = f.Result(t.Context())
				}
			}
			testkit.Until(t, "broken", func() bool { return x.Health(t.Context()) != nil })
		}, base, executor.ReasonBroken, 2},
		{"another name", nil, with(func(o *executor.Options) { o.Name += ", other" }), executor.ReasonNew, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := base
			o.Breaker.Backoff = quick
			unique := uniqueName(tt.name)
			o.Name, tt.next.Name, tt.next.Breaker.Backoff = o.Name+unique, tt.next.Name+unique, quick
			first := lease(t, o)
			require.Equal(t, executor.ReasonNew, first.Reason(), "reason of the first")
			require.False(t, first.Reused(), "the first is reused")
			if tt.before != nil {
				tt.before(t, first.Executor)
			}
			second := lease(t, tt.next)
			require.Equal(t, tt.reason, second.Reason(), "reason of the second")
			same := tt.reason == executor.ReasonReused || tt.reason == executor.ReasonResized
			require.Equal(t, same, first.Executor == second.Executor, "it is the same executor")
			require.Equal(t, same, second.Reused(), "the second is reused")
			require.Equal(t, tt.size, second.Stats().Workers.Max, "size")
			require.Equal(t, 4, value(t, submit(t, square, second.Executor, 2)), "a task")
		})
	}
	_, err := executor.Reusable(t.Context(), executor.Options{MaxWorkers: -1})
	require.ErrorIs(t, err, supervisor.ErrBadArgs, "Reusable with bad options")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = executor.Reusable(ended, base)
	require.ErrorIs(t, err, supervisor.ErrCanceled, "Reusable with an ended context")
}

var names atomic.Int64

// uniqueName is one that no executor has had.
func uniqueName(name string) string { return fmt.Sprint(name, " ", names.Add(1)) }

func reasonOf(same bool) executor.Reason {
	if same {
		return executor.ReasonReused
	}
	return executor.ReasonResized
}

// A rotation waits for nothing, and what the old executor has is finished by it, with its own settings, as long as a
// lease of it is held.
func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := executor.Options{Name: uniqueName("rotation"), MaxWorkers: 1, Workers: ofKind(supervisor.Goroutine)}
		first := lease(t, o)
		g := newGate(t, "old")
		running := submit(t, pass, first.Executor, "old")
		<-g.begun

		begin := time.Now()
		o.IdleTimeout = time.Second
		second := lease(t, o)
		require.Equal(t, executor.ReasonOptions, second.Reason(), "reason")
		require.Zero(t, time.Since(begin), "time of the rotation")
		require.Equal(t, 9, value(t, submit(t, square, second.Executor, 3)), "a task of the new one")
		waiting := submit(t, square, first.Executor, 2)
		first.Release()
		first.Release()
		synctest.Wait()
		_, err := square.Submit(t.Context(), first.Executor, 2)
		require.ErrorIs(t, err, supervisor.ErrClosed, "a task of the old one after its last lease")
		close(g.open)
		require.Equal(t, "old", value(t, running), "what was running")
		require.Equal(t, 4, value(t, waiting), "what was waiting")
		synctest.Wait()
		require.Zero(t, first.Stats().Workers.Now, "workers of the old one")
		require.Equal(t, 1, second.Stats().Workers.Now, "workers of the new one")
	})
}

// Each task runs with the settings of the executor that it was given to.
func TestTasksStayWithTheirExecutor(t *testing.T) {
	if !processes(t) {
		return
	}
	testkit.NoLeaks(t)
	name := uniqueName("stay")
	of := func(env string) executor.Options {
		return executor.Options{Name: name, MaxWorkers: 1, Workers: []supervisor.ChildOption{supervisor.Proc{Env: []string{"STAY=" + env}}}}
	}
	first := lease(t, of("1"))
	second := lease(t, of("2"))
	require.Equal(t, executor.ReasonOptions, second.Reason(), "reason")
	require.Equal(t, "1", value(t, submit(t, getenv, first.Executor, "STAY")), "the old one, after the rotation")
	require.Equal(t, "2", value(t, submit(t, getenv, second.Executor, "STAY")), "the new one")
}

// Many ask for different sizes and settings at once: each gets one that works.
func TestManyAskForAnExecutor(t *testing.T) {
	name := uniqueName("many")
	var askers sync.WaitGroup
	var wrong atomic.Int64
	for a := range 16 {
		askers.Go(func() {
			for i := range 30 {
				o := executor.Options{Name: name, MaxWorkers: 1 + (a+i)%4, Workers: ofKind(supervisor.Goroutine)}
				if i%5 == 0 {
					o.IdleTimeout = time.Duration(1+a) * time.Second
				}
				l, err := executor.Reusable(context.Background(), o)
				if err != nil {
					t.Errorf("Reusable: %v", err)
					return
				}
				for item := range executor.Map(context.Background(), l.Executor, square, upTo(20, nil)) {
					if item.Err != nil || item.Out != item.In*item.In {
						wrong.Add(1)
						t.Errorf("item %+v", item)
					}
				}
				l.Release()
			}
		})
	}
	askers.Wait()
	require.Zero(t, wrong.Load(), "items without a value")
	_ = lease(t, executor.Options{Name: name, Workers: ofKind(supervisor.Goroutine), Reuse: executor.ReuseAlways}).KillWorkers()
}

func TestTexts(t *testing.T) {
	require.Equal(t, "auto always never ReuseMode(9)", fmt.Sprint(executor.ReuseAuto, executor.ReuseAlways, executor.ReuseNever, executor.ReuseMode(9)))
	require.Equal(t, "options differ", executor.ReasonOptions.String())
	require.Equal(t, "Reason(-1)", executor.Reason(-1).String())
	require.Equal(t, "start failed", executor.EventStartFailed.String())
	require.Equal(t, "EventKind(0)", executor.EventKind(0).String())
}
