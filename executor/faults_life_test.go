package executor_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/executor"
	"github.com/workerlink/supervisor/future"
	"github.com/workerlink/supervisor/internal/proc"
	"github.com/workerlink/supervisor/internal/testkit"
)

// From 8 workers to 2 and back under load: nothing is lost or executed twice, and those that are too many leave after
// the tasks that they have.
func TestE03ResizeUnderLoad(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			ledger, open := testkit.NewLedger(t), filepath.Join(t.TempDir(), "open")
			x := newExecutor(t, executor.Options{MaxWorkers: 8, Workers: ofKind(kind)})
			var results []*future.Future[int]
			for i := range 8 {
				results = append(results, submit(t, obey, x, order{Ledger: ledger.Path, ID: fmt.Sprint("long ", i), Until: open}))
			}
			until(t, x, "eight run", func(s executor.Stats) bool { return s.Running == 8 && s.Queued == 0 })
			const n = 400
			for i := range n {
				results = append(results, submit(t, obey, x, order{Ledger: ledger.Path, ID: fmt.Sprint(i)}))
			}
			require.NoError(t, x.Resize(2), "Resize down")
			require.NoError(t, x.Resize(2), "Resize to the same")
			require.Equal(t, 8, x.Stats().Workers.Now, "workers that have a task stay until it ends")
			create(t, open)
			until(t, x, "two are left", func(s executor.Stats) bool { return s.Workers.Now <= 2 })
			require.NoError(t, x.Resize(8), "Resize up")
			for _, size := range []int{0, -1} {
				require.ErrorIs(t, x.Resize(size), supervisor.ErrBadArgs, "Resize(%d)", size)
			}
			for _, f := range results {
				value(t, f)
			}
			require.Equal(t, 8, x.Stats().Workers.Max, "size")
			shutdown(t, x)
			require.EqualValues(t, len(results), x.Stats().Done, "values")
		})
	}
}

// A worker that has been idle for long enough is gone, and the next task has another one.
func TestE04IdleTimeout(t *testing.T) {
	if !processes(t) {
		return
	}
	x := newExecutor(t, executor.Options{MaxWorkers: 2, IdleTimeout: 50 * time.Millisecond})
	last := 0
	for range often(3, 100) {
		pid := value(t, submit(t, getpid, x, 0))
		require.NotEqual(t, last, pid, "process of a task after the idle timeout")
		allEnded(t, time.Second, pid)
		until(t, x, "no worker is left", func(s executor.Stats) bool { return s.Workers.Now == 0 })
		last = pid
	}
	shutdown(t, x)
	require.Zero(t, x.Stats().Workers.Crashed, "crashes")
}

// leak is a task that keeps ten megabytes, all of whose pages are its own.
var (
	kept [][]byte
	leak = executor.Define("test.leak", func(_ context.Context, n int) (int, error) {
		b := make([]byte, 10<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		kept = append(kept, b)
		return n, nil
	})
)

// A worker that grows is replaced between two tasks. Nobody notices.
func TestE11MemoryRecycling(t *testing.T) {
	if !proc.Measurable {
		return
	}
	x := newExecutor(t, executor.Options{MaxWorkers: 1, Workers: []supervisor.ChildOption{supervisor.Recycle{MaxMemory: 100 << 20}}})
	n := 0
	for life := range int64(often(1, 10)) {
		for range 12 { // memory is looked at about once a second
			require.Equal(t, n, value(t, submit(t, leak, x, n)), "a task")
			n++
		}
		testkit.Until(t, "a worker was recycled", func() bool {
			require.Equal(t, 4, value(t, submit(t, square, x, 2)), "a task that keeps nothing")
			return x.Stats().Workers.Recycled > life
		})
	}
	shutdown(t, x)
	require.Zero(t, x.Stats().Failed, "tasks that failed")
	require.Zero(t, x.Stats().Workers.Crashed, "crashes")
}

// Workers that leave because they are idle, old or have had enough, all at once, cost no task and no crash.
func TestC44WorkersLeaveUnderLoad(t *testing.T) {
	for _, kind := range kinds() {
		for _, rolling := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v/rolling %v", kind, rolling), func(t *testing.T) {
				ledger := testkit.NewLedger(t)
				x := newExecutor(t, executor.Options{MaxWorkers: 3, IdleTimeout: time.Millisecond, Workers: ofKind(kind,
					supervisor.Recycle{MaxRequests: 7, MaxAge: 20 * time.Millisecond, Rolling: rolling})})
				n := often(40, 10_000)
				var submitters sync.WaitGroup
				var failed atomic.Int64
				for s := range 2 {
					submitters.Go(func() {
						for i := range n {
							f, err := obey.Submit(t.Context(), x, order{Ledger: ledger.Path, ID: fmt.Sprint(s, "-", i)})
							if err == nil && i%3 > 0 { // so that some come in a row
								_, err = f.Result(testkit.Context(t))
							}
							if err != nil {
								failed.Add(1)
								t.Errorf("task %d of %d: %v", i, s, err)
							}
						}
					})
				}
				submitters.Wait()
				shutdown(t, x)
				require.Zero(t, x.Stats().Failed+failed.Load(), "tasks that failed")
				require.Zero(t, x.Stats().Workers.Crashed, "crashes")
				onceEach(t, ledger, 2*n, 0)
			})
		}
	}
}

// Workers stay for the next who asks, until they have been idle for long enough, or somebody ends them.
func TestC45WorkersAfterRelease(t *testing.T) {
	if !processes(t) {
		return
	}
	testkit.NoLeaks(t)
	o := executor.Options{Name: uniqueName("stay"), MaxWorkers: 1}
	first := lease(t, o)
	pid := value(t, submit(t, getpid, first.Executor, 0))
	first.Release()
	second := lease(t, o)
	require.Equal(t, executor.ReasonReused, second.Reason(), "reason of the second")
	require.Equal(t, pid, value(t, submit(t, getpid, second.Executor, 0)), "its worker")
	second.Release()
	testkit.Within(t, time.Second, func() { require.NoError(t, second.KillWorkers(), "KillWorkers") })
	require.True(t, ended(pid), "the worker after KillWorkers")

	o.IdleTimeout = 20 * time.Millisecond
	third := lease(t, o)
	require.Equal(t, executor.ReasonClosed, third.Reason(), "reason after KillWorkers")
	pid = value(t, submit(t, getpid, third.Executor, 0))
	third.Release()
	allEnded(t, time.Second, pid)
}

// A cancelled task that waits never runs; one that runs is told, and Shutdown returns.
func TestE06CancelPendingAndRunning(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			ledger := testkit.NewLedger(t)
			x := newExecutor(t, executor.Options{MaxWorkers: 1, Workers: ofKind(kind)})
			running := submit(t, obey, x, order{Ledger: ledger.Path, ID: "running", Do: "wait"})
			var pending []*future.Future[int]
			for i := range 10 {
				pending = append(pending, submit(t, obey, x, order{Ledger: ledger.Path, ID: fmt.Sprint("pending ", i)}))
			}
			pidIn(t, ledger, "running")
			for _, f := range pending {
				f.Cancel()
				failed := failure(t, f)
				require.ErrorIs(t, failed, supervisor.ErrCanceled, "a task that waited")
				require.True(t, failed.Unexecuted, "a task that waited was not executed")
			}
			running.Cancel()
			require.ErrorIs(t, failure(t, running), supervisor.ErrCanceled, "the running one")
			testkit.Within(t, 2*time.Second, func() { shutdown(t, x) })
			onceEach(t, ledger, 1, 0)
		})
	}
}

// A Submit that waits for room hears at once that there will be none.
func TestE09SubmitWaitsAsTheExecutorEnds(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(x *executor.Executor)
		want error
	}{
		{"Shutdown", func(x *executor.Executor) { go func() { _ = x.Shutdown(context.Background()) }() }, supervisor.ErrClosed},
		{"KillWorkers", func(x *executor.Executor) { go func() { _ = x.KillWorkers() }() }, supervisor.ErrClosed},
		{"broken", nil, executor.ErrBroken},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := goroutines(t, executor.Options{MaxWorkers: 1, Queue: 3, Breaker: executor.Breaker{Max: 1, Backoff: quick}})
				g := newGate(t, "busy")
				submit(t, pass, x, "busy")
				<-g.begun
				for range 3 {
					submit(t, fatal, x, 1)
				}
				refused := make(chan error, 5)
				for range cap(refused) {
					go func() {
						_, err := square.Submit(context.Background(), x, 1)
						refused <- err
					}()
				}
				synctest.Wait()
				require.Empty(t, refused, "those that wait")
				begin := time.Now()
				if tt.end != nil {
					tt.end(x)
				} else {
					close(g.open)
				}
				ended := 0
				for range cap(refused) {
					if err := <-refused; err != nil {
						require.ErrorIs(t, err, tt.want, "Submit")
						ended++
					}
				}
				require.Positive(t, ended, "Submits that were refused")
				require.Less(t, time.Since(begin), 100*time.Millisecond, "time until then")
				if tt.end != nil {
					close(g.open)
				}
			})
		})
	}
}
