package executor_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/executor"
	"github.com/workerlink/supervisor/future"
)

func benchExecutor(b *testing.B, kind supervisor.ChildType, workers int) *executor.Executor {
	b.Helper()
	x := bare(b, executor.Options{MaxWorkers: workers, MinIdle: workers, Workers: ofKind(kind)})
	for range 100 {
		value(b, submit(b, square, x, 1))
	}
	return x
}

func eachBenchKind(b *testing.B, f func(b *testing.B, kind supervisor.ChildType)) {
	for _, kind := range kinds() {
		b.Run(kind.String(), func(b *testing.B) { f(b, kind) })
	}
}

// One task after the other: the way to a worker and back.
func BenchmarkSubmitAndWait(b *testing.B) {
	eachBenchKind(b, func(b *testing.B, kind supervisor.ChildType) {
		x := benchExecutor(b, kind, 1)
		ctx := context.Background()
		b.ReportAllocs()
		for b.Loop() {
			f, err := square.Submit(ctx, x, 3)
			if err == nil {
				_, err = f.Result(ctx)
			}
			require.NoError(b, err)
		}
	})
}

// Many tasks at once by Submit, with a thousand futures open.
func BenchmarkSubmitMany(b *testing.B) {
	eachBenchKind(b, func(b *testing.B, kind supervisor.ChildType) {
		x := benchExecutor(b, kind, 2)
		ctx := context.Background()
		open := make([]*future.Future[int], 1000)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			f, err := square.Submit(ctx, x, i)
			if err == nil && open[i%1000] != nil {
				_, err = open[i%1000].Result(ctx)
			}
			require.NoError(b, err)
			open[i%1000] = f
		}
	})
}

func BenchmarkMap(b *testing.B) {
	eachBenchKind(b, func(b *testing.B, kind supervisor.ChildType) {
		x := benchExecutor(b, kind, 2)
		b.ReportAllocs()
		b.ResetTimer()
		for item := range executor.Map(context.Background(), x, square, upTo(b.N, nil)) {
			require.NoError(b, item.Err)
		}
	})
}

func BenchmarkMapOfStructs(b *testing.B) {
	eachBenchKind(b, func(b *testing.B, kind supervisor.ChildType) {
		x := benchExecutor(b, kind, 2)
		b.ReportAllocs()
		b.ResetTimer()
		for item := range executor.Map(context.Background(), x, moved, func(yield func(point) bool) {
			for i := 0; i < b.N && yield(point{i, i, "point"}); i++ {
			}
		}) {
			require.NoError(b, item.Err)
		}
	})
}

// From nothing to the first result.
func BenchmarkColdStart(b *testing.B) {
	eachBenchKind(b, func(b *testing.B, kind supervisor.ChildType) {
		for b.Loop() {
			x, err := executor.New(executor.Options{MaxWorkers: 1, Workers: ofKind(kind)})
			require.NoError(b, err)
			value(b, submit(b, square, x, 1))
			b.StopTimer()
			_ = x.KillWorkers()
			b.StartTimer()
		}
	})
}

// From the end of a worker by a task to the next result.
func BenchmarkCrashRecovery(b *testing.B) {
	if len(kinds()) < 2 {
		return
	}
	x := benchExecutor(b, supervisor.Process, 1)
	for b.Loop() {
		require.NotNil(b, failure(b, submit(b, misbehave, x, "exit bench")).Exit())
		value(b, submit(b, square, x, 1))
	}
}

// From two busy workers to four.
func BenchmarkResize(b *testing.B) {
	eachBenchKind(b, func(b *testing.B, kind supervisor.ChildType) {
		x := benchExecutor(b, kind, 2)
		for b.Loop() {
			require.NoError(b, x.Resize(4))
			require.NoError(b, x.Resize(2))
		}
	})
}
