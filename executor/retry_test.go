package executor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/executor"
	"github.com/workerlink/supervisor/internal/testkit"
)

var tries, made, closed atomic.Int64

// flaky fails until it was tried so often in this process.
var (
	flaky = executor.Define("test.flaky", func(_ context.Context, n int64) (int64, error) {
		if now := tries.Add(1); now < n {
			return 0, fmt.Errorf("%w: try %d", errRefused, now)
		}
		return n, nil
	}, executor.Retries{Max: 4, Errors: true, Backoff: supervisor.Backoff{First: time.Second, Min: 2 * time.Second, Max: 5 * time.Second}})

	flakyFatal = executor.Define("test.flakyFatal", func(_ context.Context, n int64) (int64, error) {
		if now := tries.Add(1); now < n {
			return 0, supervisor.Fatal(errRefused)
		}
		return n, nil
	}, executor.Retries{Max: 4})

	// again exits with its attempt's number until the ledger has so many entries.
	again = executor.Define("test.again", func(_ context.Context, in entry) (int, error) {
		if err := (testkit.Ledger{Path: in.Ledger}).Enter(in.ID); err != nil {
			return 0, err
		}
		text, err := os.ReadFile(in.Ledger)
		if err != nil {
			return 0, err
		}
		lines := len(text) / (len(in.ID) + 1)
		if fmt.Sprint(lines) != in.Do {
			os.Exit(lines)
		}
		return lines, nil
	}, executor.Retries{Max: 9, Backoff: supervisor.Backoff{Min: time.Millisecond}})
)

func TestRetryOfErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries.Store(0)
		x := goroutines(t, executor.Options{MaxWorkers: 1})
		begin := time.Now()
		require.EqualValues(t, 3, value(t, submit(t, flaky, x, 3)), "value of the third attempt")
		require.InDelta(t, 3*time.Second, time.Since(begin), float64(time.Second), "delays of 1 s and 2 s, moved by a fifth at most")
		require.EqualValues(t, 2, x.Stats().Retried, "retries")

		tries.Store(0)
		begin = time.Now()
		failed := failure(t, submit(t, flaky, x, 100))
		require.ErrorIs(t, failed, errRefused, "the last error")
		require.Equal(t, 5, failed.Attempts, "attempts")
		require.InDelta(t, 12*time.Second, time.Since(begin), float64(3*time.Second), "delays of 1, 2, 4 and 5 s")
		shutdown(t, x)
	})
}

// A retry that is waited for holds up nobody, ends with its task's context, and is finished by Shutdown.
func TestDelayedRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries.Store(0)
		x := goroutines(t, executor.Options{MaxWorkers: 1})
		f := submit(t, flaky, x, 2)
		synctest.Wait()
		require.Equal(t, 1, x.Stats().Queued, "tasks that wait to be tried again")
		require.Equal(t, 4, value(t, submit(t, square, x, 2)), "another task meanwhile")
		f.Cancel()
		failed := failure(t, f)
		require.ErrorIs(t, failed, supervisor.ErrCanceled, "verdict")
		require.False(t, failed.Unexecuted, "it was executed once")

		tries.Store(0)
		f = submit(t, flaky, x, 2)
		synctest.Wait()
		shutdown(t, x)
		require.EqualValues(t, 2, value(t, f), "a retry that Shutdown waited for")

		x = goroutines(t, executor.Options{MaxWorkers: 1})
		tries.Store(0)
		f = submit(t, flaky, x, 2)
		synctest.Wait()
		require.NoError(t, x.KillWorkers(), "KillWorkers")
		require.ErrorIs(t, failure(t, f), supervisor.ErrClosed, "a retry that KillWorkers does not wait for")
	})
}

func TestRetryOfCrashes(t *testing.T) {
	if !processes(t) {
		return
	}
	ledger := testkit.NewLedger(t)
	x := newExecutor(t, executor.Options{MaxWorkers: 1})
	require.Equal(t, 3, value(t, submit(t, again, x, entry{ledger.Path, "task", "3"})), "value of the third attempt")
	require.Equal(t, 3, ledger.Counts(t)["task"], "executions")
	require.Equal(t, "5", value(t, submit(t, misbehave, x, "5")), "another task")
	shutdown(t, x)
}

func TestPoison(t *testing.T) {
	for _, tt := range []struct {
		after, executions int
		poison            bool
	}{{0, 3, true}, {1, 1, true}, {5, 5, true}, {-1, 10, false}} {
		t.Run(fmt.Sprint("after ", tt.after), func(t *testing.T) {
			if !processes(t) {
				return
			}
			ledger := testkit.NewLedger(t)
			x := newExecutor(t, executor.Options{MaxWorkers: 2, PoisonAfter: tt.after, Breaker: executor.Breaker{Max: -1, Backoff: supervisor.Backoff{Min: 1, Max: 1}}})
			failed := failure(t, submit(t, again, x, entry{ledger.Path, "task", "never"}))
			require.Equal(t, tt.poison, errors.Is(failed, executor.ErrPoison), "verdict: %v", failed)
			require.NotNil(t, failed.Exit(), "how the last worker ended")
			require.Equal(t, tt.executions, failed.Exit().Code, "the last execution")
			require.Equal(t, tt.executions, failed.Attempts, "attempts")
			require.Equal(t, tt.executions, ledger.Counts(t)["task"], "executions")
			require.Equal(t, 4, value(t, submit(t, square, x, 2)), "another task")
			shutdown(t, x)
		})
	}
}

func TestRetryOfTheEndOfGoroutineWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries.Store(0)
		x := goroutines(t, executor.Options{MaxWorkers: 1})
		failed := failure(t, submit(t, flakyFatal, x, 3))
		require.ErrorIs(t, failed, errRefused, "an error that ends the worker is an error, which this function does not retry")
		require.Equal(t, 1, failed.Attempts, "attempts")
		shutdown(t, x)
	})
}
