package executor_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/executor"
	"github.com/workerlink/supervisor/future"
	"github.com/workerlink/supervisor/internal/testkit"
)

func TestShutdownFinishesWhatWasAccepted(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			x := newExecutor(t, executor.Options{MaxWorkers: 2, Workers: ofKind(kind)})
			var results []*future.Future[int]
			for i := range 500 {
				results = append(results, submit(t, square, x, i))
			}
			shutdown(t, x)
			for i, f := range results {
				select {
				case <-f.Done():
				default:
					t.Fatalf("task %d has no verdict after Shutdown", i)
				}
				require.Equal(t, i*i, value(t, f), "task %d", i)
			}
		})
	}
}

func TestShutdownThatIsOverBeforeTheTasks(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			x := newExecutor(t, executor.Options{MaxWorkers: 1, Workers: ofKind(kind)})
			running := submit(t, misbehave, x, "wait")
			until(t, x, "it runs", func(s executor.Stats) bool { return s.Running == 1 })
			queued := submit(t, misbehave, x, "never")
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			begin := time.Now()
			require.ErrorIs(t, x.Shutdown(ctx), supervisor.ErrTimeout, "Shutdown")
			require.Less(t, time.Since(begin), time.Second*testkit.Slowdown, "time of Shutdown")
			require.ErrorIs(t, failure(t, running), supervisor.ErrClosed, "the running task")
			failed := failure(t, queued)
			require.ErrorIs(t, failed, supervisor.ErrClosed, "the queued task")
			require.True(t, failed.Unexecuted, "the queued task never ran")
			require.NoError(t, x.Shutdown(t.Context()), "Shutdown again")
		})
	}
}

func TestKillWorkers(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			x := newExecutor(t, executor.Options{MaxWorkers: 2, Workers: ofKind(kind)})
			var results []*future.Future[string]
			for range 20 {
				results = append(results, submit(t, misbehave, x, "wait"))
			}
			until(t, x, "two run", func(s executor.Stats) bool { return s.Running >= 2 })
			cancelled := results[15]
			cancelled.Cancel()
			testkit.Within(t, time.Second, func() {
				var killers sync.WaitGroup
				for range 4 {
					killers.Go(func() { _ = x.KillWorkers() })
				}
				killers.Wait()
			})
			for i, f := range results {
				err := failure(t, f)
				if f == cancelled {
					require.ErrorIs(t, err, supervisor.ErrCanceled, "task %d", i)
				} else {
					require.ErrorIs(t, err, supervisor.ErrClosed, "task %d", i)
				}
			}
			_, err := square.Submit(t.Context(), x, 1)
			require.ErrorIs(t, err, supervisor.ErrClosed, "Submit")
		})
	}
}

// Submits that wait for room are told at once.
func TestShutdownWhileSubmitWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := goroutines(t, executor.Options{MaxWorkers: 1, Queue: 1})
		g := newGate(t, "busy")
		submit(t, pass, x, "busy")
		<-g.begun
		submit(t, pass, x, "queued")
		refused := make(chan error, 1)
		go func() {
			_, err := pass.Submit(t.Context(), x, "waits")
			refused <- err
		}()
		synctest.Wait()
		ended := make(chan error, 1)
		go func() { ended <- x.Shutdown(t.Context()) }()
		require.ErrorIs(t, <-refused, supervisor.ErrClosed, "Submit")
		close(g.open)
		require.NoError(t, <-ended, "Shutdown")
	})
}

// A goroutine worker that ignores its context is named.
func TestShutdownOfADeafTask(t *testing.T) {
	x := goroutines(t, executor.Options{MaxWorkers: 1})
	g := newGate(t, "deaf")
	f := submit(t, deaf, x, "deaf")
	<-g.begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := x.Shutdown(ctx)
	require.ErrorIs(t, err, supervisor.ErrTimeout, "Shutdown")
	var stuck *supervisor.StuckError
	require.ErrorAs(t, err, &stuck, "Shutdown")
	require.Contains(t, stuck.Stack, "fixtures_test.go", "its stack")
	require.ErrorIs(t, failure(t, f), supervisor.ErrClosed, "its task")
	close(g.open)
}

// A callback may shut down the executor, or submit to it; so may a task of a goroutine worker.
func TestShutdownFromWithin(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			x := newExecutor(t, executor.Options{MaxWorkers: 1, Workers: ofKind(kind)})
			ended := make(chan error, 1)
			submit(t, square, x, 1).Then(func(int, error) {
				f, err := square.Submit(context.Background(), x, 2)
				if err == nil {
					_, err = f.Result(context.Background())
				}
				if err == nil {
					err = x.Shutdown(context.Background())
				}
				ended <- err
			})
			require.NoError(t, testkit.Receive(t, ended, "end of the callback"), "callback")
		})
	}
	x := goroutines(t, executor.Options{MaxWorkers: 1})
	current.Store(x)
	require.Equal(t, 1, value(t, submit(t, shutsDown, x, 1)), "a task that shuts down its executor")
	require.NoError(t, x.Shutdown(testkit.Context(t)), "Shutdown")
}

// Cycles of submitting, cancelling and shutting down at any moment lose no verdict.
func TestShutdownAtAnyMoment(t *testing.T) {
	rounds := 300
	for round := range rounds {
		x := goroutines(t, executor.Options{MaxWorkers: 2})
		results := make(chan *future.Future[int], 100)
		var submitters sync.WaitGroup
		for s := range 2 {
			submitters.Go(func() {
				for i := range 50 {
					f, err := square.Submit(context.Background(), x, i)
					if err != nil {
						return
					}
					if i%3 == s {
						f.Cancel()
					}
					results <- f
				}
			})
		}
		if round%2 == 0 {
			_ = x.KillWorkers()
		} else {
			shutdown(t, x)
		}
		submitters.Wait()
		close(results)
		for f := range results {
			select {
			case <-f.Done():
			case <-time.After(testkit.Limit):
				t.Fatalf("round %d: a task has no verdict", round)
			}
		}
	}
}

func TestServe(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			testkit.NoLeaks(t)
			pools := make(chan *executor.Executor, 10)
			newPool = func(context.Context) (*executor.Executor, error) {
				x, err := executor.New(executor.Options{Name: "pool", MaxWorkers: 1, Workers: ofKind(kind), Breaker: executor.Breaker{Max: 1, Backoff: quick}})
				pools <- x
				return x, err
			}
			sup, err := supervisor.New(supervisor.Goroutine)
			require.NoError(t, err, "New")
			_, err = sup.Register(t.Context(), poolSpec, supervisor.WithName("pool"))
			require.NoError(t, err, "Register")
			require.NoError(t, sup.StartLink(context.Background()), "StartLink")
			x := <-pools
			require.Equal(t, 4, value(t, submit(t, square, x, 2)), "a task")

			shot, ok := sup.Snapshot().Children[0].Object.(executor.Snapshot)
			require.True(t, ok, "the executor in the snapshot")
			require.Equal(t, "pool", shot.Name, "its name")
			require.EqualValues(t, 1, shot.Stats.Done, "its tasks")
			require.Len(t, shot.Workers.Children, 1, "its workers")

			for range 2 { // it breaks, and the supervisor has another one made
				f, err := fatal.Submit(t.Context(), x, 1)
				if err == nil {
					_, _ = f.Result(testkit.Context(t))
				}
			}
			x = testkit.Receive(t, pools, "the next life's executor")
			require.Equal(t, 9, value(t, submit(t, square, x, 3)), "a task")
			require.NoError(t, sup.Shutdown(testkit.Context(t)), "Shutdown")
			_, err = square.Submit(t.Context(), x, 1)
			require.ErrorIs(t, err, supervisor.ErrClosed, "Submit after the supervisor's end")
		})
	}
}

func TestServeAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := goroutines(t, executor.Options{MaxWorkers: 1})
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- x.Serve(ctx) }()
		g := newGate(t, "serve")
		f := submit(t, pass, x, "serve")
		<-g.begun
		cancel()
		synctest.Wait()
		close(g.open)
		require.Equal(t, "serve", value(t, f), "what was running at the end")
		require.NoError(t, <-served, "Serve")
		require.NoError(t, x.Serve(t.Context()), "Serve after the end")
	})
}
