package bench

import (
	"context"
	"errors"

	"github.com/workerlink/supervisor"
)

// supervised is what the others are compared with.
type supervised struct{ sup *supervisor.Supervisor }

func openSupervisor(kind supervisor.ChildType, workers int) (Pool, error) {
	ctx := context.Background()
	sup, err := supervisor.New(kind)
	if err != nil {
		return nil, err
	}
	for range workers { // their ids are 0, 1, ...
		if _, err := sup.Register(ctx, newCounter); err != nil {
			return nil, errors.Join(err, sup.Close())
		}
	}
	if err := sup.StartLink(ctx); err != nil {
		return nil, err
	}
	return supervised{sup}, nil
}

func (p supervised) Caller(worker int) func(d int) (int, error) {
	return func(d int) (int, error) {
		return supervisor.Call[int](context.Background(), p.sup, worker, "Add", d)
	}
}

func (p supervised) Close() error { return p.sup.Shutdown(context.Background()) }
