package executor_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/executor"
	"github.com/workerlink/supervisor/future"
	"github.com/workerlink/supervisor/internal/testkit"
)

type point struct {
	X, Y int
	Name string
}

var (
	square  = executor.Define("test.square", func(_ context.Context, n int) (int, error) { return n * n, nil })
	structs = executor.Define("test.struct", func(_ context.Context, p point) (point, error) { p.X++; return p, nil })
	crash   = executor.Define("test.crash", func(_ context.Context, n int) (int, error) {
		if n == 13 {
			os.Exit(3)
		}
		return n, nil
	})
	refuse = executor.Define("test.refuse", func(_ context.Context, n int) (int, error) { return 0, errors.New("no") })
)

func TestSmoke(t *testing.T) {
	for _, kind := range []supervisor.ChildType{supervisor.Goroutine, supervisor.Process} {
		t.Run(kind.String(), func(t *testing.T) {
			testkit.NoLeaks(t)
			x, err := executor.New(executor.Options{MaxWorkers: 2, Workers: []supervisor.ChildOption{supervisor.WithType(kind)}})
			require.NoError(t, err)
			ctx := context.Background()
			f, err := square.Submit(ctx, x, 7)
			require.NoError(t, err)
			n, err := f.Result(testkit.Context(t))
			require.NoError(t, err)
			require.Equal(t, 49, n)
			for range 3 {
				const N = 100000
				begin := time.Now()
				fs := make([]*future.Future[int], N)
				for i := range N {
					fs[i], err = square.Submit(ctx, x, i)
					require.NoError(t, err)
				}
				for i, f := range fs {
					n, err := f.Result(ctx)
					if err != nil || n != i*i {
						require.NoError(t, err)
						require.Equal(t, i*i, n)
					}
				}
				t.Logf("%v %d/s %+v", kind, int(N/time.Since(begin).Seconds()), x.Stats())
			}
			if kind == supervisor.Process {
				var fs []*future.Future[int]
				for i := range 100 {
					f, err := crash.Submit(ctx, x, i)
					require.NoError(t, err)
					fs = append(fs, f)
				}
				for i, f := range fs {
					n, err := f.Result(testkit.Context(t))
					if i == 13 {
						require.Error(t, err)
						t.Log(err)
						continue
					}
					require.NoError(t, err, i)
					require.Equal(t, i, n)
				}
			}
			f, err = refuse.Submit(ctx, x, 1)
			_, err = f.Result(ctx)
			require.Error(t, err)
			t.Log(err)
			require.NoError(t, x.Shutdown(testkit.Context(t)))
		})
	}
}
