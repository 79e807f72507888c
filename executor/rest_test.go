package executor_test

// What becomes of the rest of a chunk, and of inputs and callers that stand in their own way.

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/executor"
)

// paces are what the tasks of stroll have done, in the test that runs.
var paces struct {
	sync.Mutex
	begun []int
}

// stroll notes that it has begun; the fourth waits for the end of its context, or an hour.
var stroll = executor.Define("test.stroll", func(ctx context.Context, n int) (int, error) {
	paces.Lock()
	paces.begun = append(paces.begun, n)
	paces.Unlock()
	if n == 3 {
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-time.After(time.Hour):
		}
	}
	return n, nil
})

// Of a chunk that is cancelled nothing begins any more, whatever it was at.
func TestRestOfACancelledChunk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		paces.begun = nil
		x := goroutines(t, executor.Options{MaxWorkers: 1})
		ctx, cancel := context.WithCancel(t.Context())
		defer time.AfterFunc(time.Second, cancel).Stop()
		for item := range executor.Map(ctx, x, stroll, slices.Values([]int{0, 1, 2, 3, 4, 5, 6, 7}), executor.Chunk(8)) {
			if item.Index < 3 {
				require.NoError(t, item.Err, "item %d", item.Index)
			} else {
				require.ErrorIs(t, item.Err, supervisor.ErrCanceled, "item %d", item.Index)
			}
		}
		shutdown(t, x)
		require.Equal(t, []int{0, 1, 2, 3}, paces.begun, "tasks that began")
	})
}

// A chunk that does not fill, because what is read has errors, is sent before the reading stops for want of room.
func TestChunkBehindErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := goroutines(t, executor.Options{MaxWorkers: 1})
		bad := errors.New("bad input")
		input := func(yield func(int, error) bool) {
			for i := range 300 {
				var err error
				if i%30 != 0 {
					err = bad
				}
				if !yield(i, err) {
					return
				}
			}
		}
		next := 0
		for item := range executor.Map(t.Context(), x, square, input, executor.Chunk(10)) {
			require.Equal(t, next, item.Index, "place")
			if next++; item.Index%30 == 0 {
				require.NoError(t, item.Err, "item %d", item.Index)
				require.Equal(t, item.In*item.In, item.Out, "item %d", item.Index)
			} else {
				require.ErrorIs(t, item.Err, bad, "item %d", item.Index)
			}
		}
		require.Equal(t, 300, next, "items")
		shutdown(t, x)
	})
}

// doomedExecutor is what the task endMine shuts down.
var doomedExecutor struct {
	sync.Mutex
	x *executor.Executor
}

var endMine = executor.Define("test.endMine", func(ctx context.Context, _ int) (int, error) {
	doomedExecutor.Lock()
	x := doomedExecutor.x
	doomedExecutor.Unlock()
	return 0, x.Shutdown(ctx)
})

// A task may shut its own executor down: that does not wait for itself, and the end comes.
func TestShutdownByATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := goroutines(t, executor.Options{MaxWorkers: 1})
		doomedExecutor.x = x
		served := make(chan error, 1)
		go func() { served <- x.Serve(context.WithoutCancel(t.Context())) }()
		require.Zero(t, value(t, submit(t, endMine, x, 0)), "the task")
		require.NoError(t, <-served, "Serve")
	})
}

// Options are the same if they mean the same, wherever they were written.
func TestReusableComparesWhatOptionsMean(t *testing.T) {
	if !processes(t) {
		return
	}
	options := func() executor.Options {
		return executor.Options{Name: uniqueName("alike"), Workers: []supervisor.ChildOption{alikeProc()}}
	}
	o := options()
	first := lease(t, o)
	o.Workers = []supervisor.ChildOption{alikeProc()}
	second := lease(t, o)
	require.Equal(t, executor.ReasonReused, second.Reason(), "the same, written again")
	require.Same(t, first.Executor, second.Executor, "the executor")
	other := alikeProc()
	other.Env = []string{"A=B"}
	o.Workers = []supervisor.ChildOption{other}
	require.Equal(t, executor.ReasonOptions, lease(t, o).Reason(), "another environment")
}
