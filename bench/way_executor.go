package bench

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/executor"
)

var (
	echo = executor.Define("supervisor/bench.echo", func(_ context.Context, n int) (int, error) { return n, nil })
	exit = executor.Define("supervisor/bench.exit", func(context.Context, int) (int, error) {
		os.Exit(1)
		return 0, nil
	})
)

// openExecutor is what the others are compared with.
func openExecutor(kind supervisor.ChildType, workers int) (*TaskPool, error) {
	ctx := context.Background()
	x, err := executor.New(executor.Options{
		MaxWorkers: workers, IdleTimeout: -1, Workers: []supervisor.ChildOption{supervisor.WithType(kind)},
	})
	if err != nil {
		return nil, err
	}
	p := &TaskPool{
		Submit: func(n int) (func() (int, error), error) {
			f, err := echo.Submit(ctx, x, n)
			return func() (int, error) { return f.Result(ctx) }, err
		},
		Map:    func(more func() bool) (int, error) { return mapWith(ctx, x, more) },
		Resize: x.Resize,
		Close:  func() error { return x.Shutdown(ctx) },
	}
	if kind == supervisor.Process {
		p.Crash = func() error { return crash(ctx, x) }
	}
	return p, nil
}

// mapWith leaves it to the executor how many tasks travel together.
func mapWith(ctx context.Context, x *executor.Executor, more func() bool) (count int, err error) {
	input := func(yield func(int) bool) {
		for n := 0; more() && yield(n); n++ {
		}
	}
	for item := range executor.Map(ctx, x, echo, input) {
		if item.Err != nil {
			return count, item.Err
		}
		count++
	}
	return count, nil
}

// crash returns nil if the worker has ended, which is the task's error.
func crash(ctx context.Context, x *executor.Executor) error {
	f, err := exit.Submit(ctx, x, 0)
	if err != nil {
		return err
	}
	_, err = f.Result(ctx)
	var failed *executor.TaskError
	if !errors.As(err, &failed) || failed.Exit() == nil {
		return fmt.Errorf("bench: a task that ends its worker: %w", err)
	}
	return nil
}
