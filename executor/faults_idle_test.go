package executor_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/executor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// A worker whose idle time is over at the moment at which a task comes for it is neither lost nor counted twice.
func TestTaskAsTheIdleTimeEnds(t *testing.T) {
	x := newExecutor(t, executor.Options{MaxWorkers: 3, IdleTimeout: 20 * time.Microsecond, Workers: ofKind(supervisor.Goroutine)})
	n := often(3_000, 1_000_000)
	var submitters sync.WaitGroup
	for s := range 3 {
		submitters.Go(func() {
			for i := range n {
				f, err := square.Submit(context.Background(), x, i)
				if err == nil {
					_, err = f.Result(testkit.Context(t))
				}
				if err != nil {
					t.Errorf("task %d of %d: %v", i, s, err)
					return
				}
				for range i % 50 {
					runtime.Gosched()
				}
			}
		})
	}
	submitters.Wait()
	until(t, x, "no worker is left", func(s executor.Stats) bool { return s.Workers.Now == 0 })
	shutdown(t, x)
	require.EqualValues(t, 3*n, x.Stats().Done, "tasks with a value")
}

// lateContext is a context whose timer has not yet noticed that its deadline is over.
type lateContext struct{ context.Context }

func (lateContext) Deadline() (time.Time, bool) { return time.Now().Add(-time.Nanosecond), true }

// A task whose deadline has passed is not accepted, however late the timers of a busy machine are.
func TestSubmitBehindALateTimer(t *testing.T) {
	x := newExecutor(t, executor.Options{MaxWorkers: 1, Workers: ofKind(supervisor.Goroutine)})
	_, err := square.Submit(lateContext{t.Context()}, x, 2)
	require.ErrorIs(t, err, supervisor.ErrTimeout, "Submit")
	shutdown(t, x)
}
