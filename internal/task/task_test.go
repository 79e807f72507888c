package task_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/workerlink/supervisor/internal/task"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStopCancelsAndDoneFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leave := make(chan struct{})
		tk := task.Go(func(ctx context.Context) {
			<-ctx.Done()
			<-leave
		})
		tk.Stop()
		synctest.Wait()
		select {
		case <-tk.Done():
			t.Fatal("Done is closed although the function has not returned")
		default:
		}
		close(leave)
		tk.Wait()
		<-tk.Done()
	})
}

func TestStopFromManyGoroutines(t *testing.T) {
	tk := task.Go(func(ctx context.Context) { <-ctx.Done() })
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			tk.Stop()
			tk.Stop()
			tk.Wait()
		})
	}
	callers.Wait()
	tk.Stop() // after the end as well
}

func TestReturnEndsTheContext(t *testing.T) {
	var inner context.Context
	tk := task.Go(func(ctx context.Context) { inner = ctx })
	tk.Wait()
	require.ErrorIs(t, inner.Err(), context.Canceled, "the context after the function has returned")
}

func TestGoexitIsAnEnd(t *testing.T) {
	tk := task.Go(func(context.Context) { runtime.Goexit() })
	tk.Wait()
}

func TestGoContextDerives(t *testing.T) {
	type key struct{}
	parent, cancel := context.WithCancel(context.WithValue(context.Background(), key{}, "v"))
	values := make(chan any, 1)
	tk := task.GoContext(parent, func(ctx context.Context) {
		values <- ctx.Value(key{})
		<-ctx.Done()
	})
	require.Equal(t, "v", <-values, "a value of the parent seen by the task")
	cancel()
	tk.Wait()
}
