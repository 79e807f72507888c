//go:build linux || darwin

package faulttest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

// witness calls a child's method, which echoes a number, again and again until the test is over: it must answer throughout, each
// time within patience, and once more at the end.
func witness(t *testing.T, sup *supervisor.Supervisor, id int, method string, patience time.Duration) {
	t.Helper()
	over, answers := make(chan struct{}), 0
	var failure error
	calls := task.Go(func(ctx context.Context) {
		pace := time.NewTicker(time.Millisecond)
		defer pace.Stop()
		for failure == nil {
			select {
			case <-over:
				return
			case <-pace.C:
			}
			ctx, cancel := context.WithTimeout(ctx, patience*testkit.Slowdown)
			_, failure = supervisor.Call[int](ctx, sup, id, method, answers)
			cancel()
			answers++
		}
	})
	t.Cleanup(func() {
		close(over)
		calls.Wait()
		require.NoError(t, failure, "call %d of the witness", answers)
		n, err := supervisor.Call[int](context.Background(), sup, id, method, 7)
		require.NoError(t, err, "the last call of the witness")
		require.Equal(t, 7, n, "its result")
	})
}
