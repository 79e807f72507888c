package executor_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/executor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// poorHost is a host that has no descriptors left when it needs a worker, and then has some again.
var poorHost = testkit.Helper("poor host", func() {
	ctx := context.Background()
	o := executor.Options{Name: "poor", MaxWorkers: 2, Breaker: executor.Breaker{Max: 2, Backoff: quick}}
	l := must(executor.Reusable(ctx, o))
	fmt.Println("first", must(must(square.Submit(ctx, l.Executor, 3)).Result(ctx)))
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		panic(err)
	}
	poor := limit
	poor.Cur = 3 // those that are open stay open
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &poor); err != nil {
		panic(err)
	}
	// The worker that is there dies, and there is none for those who wait.
	_, err := must(obey.Submit(ctx, l.Executor, order{Do: "exit"})).Result(ctx)
	fmt.Println("crashed", errors.As(err, new(*supervisor.ExitError)))
	for range 5 {
		f, err := square.Submit(ctx, l.Executor, 3)
		if err == nil {
			_, err = f.Result(ctx)
		}
		fmt.Println("poor", errors.Is(err, executor.ErrBroken), errors.Is(err, syscall.EMFILE))
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		panic(err)
	}
	l.Release()
	l = must(executor.Reusable(ctx, o))
	fmt.Println("next", l.Reason(), must(must(square.Submit(ctx, l.Executor, 4)).Result(ctx)))
	if err := l.Shutdown(ctx); err != nil {
		panic(err)
	}
})

// Without descriptors no worker starts: the tasks hear why, and once there are some Reusable gives an executor that works.
func TestC48HostWithoutDescriptors(t *testing.T) {
	testkit.NoLeaks(t)
	h := startHost(t, poorHost)
	require.Equal(t, "9", h.line(t, "first"), "a task before")
	require.Equal(t, "true", h.line(t, "crashed"), "the task that was running")
	for range 5 {
		require.Equal(t, "true true", h.line(t, "poor"), "a task is refused because the executor is broken, and the cause is EMFILE")
	}
	require.Equal(t, "broken 16", h.line(t, "next"), "reason of the next executor, and a task of it")
	require.NoError(t, h.Wait(), "end of the host")
}
