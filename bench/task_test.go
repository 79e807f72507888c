package bench_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/bench"
)

// Every way runs tasks, in all the manners that it has.
func TestTaskWays(t *testing.T) {
	for _, way := range bench.TaskWays() {
		t.Run(way.Name, func(t *testing.T) {
			pool, err := way.Open(2)
			require.NoError(t, err, "Open")
			for i := range 3 {
				wait, err := pool.Submit(i)
				require.NoError(t, err, "Submit(%d)", i)
				n, err := wait()
				require.NoError(t, err, "the task with %d", i)
				require.Equal(t, i, n, "its value")
			}
			left := 100
			n, err := pool.Map(func() bool { left--; return left >= 0 })
			require.NoError(t, err, "Map")
			require.Equal(t, 100, n, "values of Map")
			if pool.Resize != nil {
				require.NoError(t, pool.Resize(3), "Resize")
			}
			if pool.Crash != nil {
				require.NoError(t, pool.Crash(), "Crash")
				_, err := pool.Submit(1)
				require.NoError(t, err, "Submit after a crash")
			}
			require.NoError(t, pool.Close(), "Close")
		})
	}
}

func TestMeasureTasks(t *testing.T) {
	ways, trials := bench.TaskWays(), bench.Trials()
	results, err := bench.MeasureTasks(ways, trials, 2, 5*time.Millisecond)
	require.NoError(t, err, "MeasureTasks")
	lacking := 0
	for w, way := range ways {
		for i, trial := range trials {
			f, ok := results.Of(w, i)
			if !ok {
				lacking++
				continue
			}
			require.Positive(t, f.Min, "least of %s, %s", way.Name, trial.Name)
			require.LessOrEqual(t, f.Min, f.Median, "least and median of %s, %s", way.Name, trial.Name)
			require.LessOrEqual(t, f.Median, f.Max, "median and greatest of %s, %s", way.Name, trial.Name)
		}
	}
	table := results.Markdown()
	require.Equal(t, 5, lacking, "figures that there cannot be: goroutines that resize, and that crash")
	require.Equal(t, lacking, strings.Count(strings.TrimSuffix(table, bench.Elsewhere), " – "), "cells without a figure in\n%s", table)
}

// What follows is for benchstat, and the same as the trials but for their own count.
func BenchmarkSubmit(b *testing.B) {
	eachTaskWay(b, func(b *testing.B, pool *bench.TaskPool) {
		for b.Loop() {
			wait, err := pool.Submit(1)
			require.NoError(b, err, "Submit")
			_, err = wait()
			require.NoError(b, err, "task")
		}
	})
}

func BenchmarkSubmitMany(b *testing.B) {
	eachTaskWay(b, func(b *testing.B, pool *bench.TaskPool) {
		waits := make([]func() (int, error), 1000)
		for n := 0; b.Loop(); n++ {
			if at := waits[n%len(waits)]; at != nil {
				_, err := at()
				require.NoError(b, err, "task")
			}
			var err error
			waits[n%len(waits)], err = pool.Submit(n)
			require.NoError(b, err, "Submit")
		}
	})
}

func BenchmarkMap(b *testing.B) {
	eachTaskWay(b, func(b *testing.B, pool *bench.TaskPool) {
		left := b.N
		n, err := pool.Map(func() bool { left--; return left >= 0 })
		require.NoError(b, err, "Map")
		require.Equal(b, b.N, n, "values")
	})
}

func eachTaskWay(b *testing.B, run func(b *testing.B, pool *bench.TaskPool)) {
	for _, way := range bench.TaskWays() {
		b.Run(way.Name, func(b *testing.B) {
			pool, err := way.Open(2)
			require.NoError(b, err, "Open")
			wait, err := pool.Submit(0)
			require.NoError(b, err, "first task")
			_, err = wait()
			require.NoError(b, err, "first task")
			b.ReportAllocs()
			b.ResetTimer()
			run(b, pool)
			b.StopTimer()
			require.NoError(b, pool.Close(), "Close")
		})
	}
}

// BenchmarkTrial runs the trials that count their own time, once for each b.N.
func BenchmarkTrial(b *testing.B) {
	for _, trial := range bench.Trials()[3:] {
		for _, way := range bench.TaskWays() {
			b.Run(trial.Name+"/"+way.Name, func(b *testing.B) {
				pool, err := way.Open(2)
				require.NoError(b, err, "Open")
				for b.Loop() {
					value, ok, err := trial.Run(way, pool, 0)
					require.NoError(b, err, "trial")
					if ok {
						b.ReportMetric(value, "of-the-trial")
					}
				}
				require.NoError(b, pool.Close(), "Close")
			})
		}
	}
}
