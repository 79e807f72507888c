package bench_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/bench"
)

func TestMain(m *testing.M) {
	bench.Init()
	os.Exit(m.Run())
}

// Every way adds, on the worker that is asked.
func TestWaysAdd(t *testing.T) {
	for _, way := range bench.Ways() {
		t.Run(way.Name, func(t *testing.T) {
			pool, err := way.Open(2)
			require.NoError(t, err, "Open")
			first, second := pool.Caller(0), pool.Caller(1)
			for _, c := range []struct {
				call    func(int) (int, error)
				d, want int
			}{{first, 5, 5}, {second, 3, 3}, {first, 2, 7}} {
				sum, err := c.call(c.d)
				require.NoError(t, err, "call")
				require.Equal(t, c.want, sum, "sum after adding %d", c.d)
			}
			require.NoError(t, pool.Close(), "Close")
		})
	}
}

func TestMeasure(t *testing.T) {
	ways, loads := bench.Ways()[:2], bench.Loads()
	results, err := bench.Measure(ways, loads, 3, 10*time.Millisecond)
	require.NoError(t, err, "Measure")
	for w, way := range ways {
		for l, load := range loads {
			rate := results.Of(w, l, bench.Sample.Rate)
			require.Positive(t, rate.Min, "least rate of %s under %s", way.Name, load.Name)
			require.LessOrEqual(t, rate.Min, rate.Median, "least and median of %s under %s", way.Name, load.Name)
			require.LessOrEqual(t, rate.Median, rate.Max, "median and greatest of %s under %s", way.Name, load.Name)
		}
		require.Equal(t, bench.Figure{Median: 1, Min: 1, Max: 1}, results.Ratio(w, w, 0, bench.Sample.Rate), "ratio to itself")
		require.Contains(t, results.Markdown(), "| "+way.Name+" | ", "table")
	}
}

func BenchmarkCall(b *testing.B) {
	for _, load := range bench.Loads() {
		b.Run(load.Name, func(b *testing.B) {
			for _, way := range bench.Ways() {
				b.Run(way.Name, func(b *testing.B) { call(b, way, load) })
			}
		})
	}
}

func call(b *testing.B, way bench.Way, load bench.Load) {
	pool, err := way.Open(load.Workers)
	require.NoError(b, err, "Open")
	require.NoError(b, load.Spread(pool, load.Callers), "first calls")
	b.ReportAllocs()
	b.ResetTimer()
	require.NoError(b, load.Spread(pool, b.N), "calls")
	b.StopTimer()
	require.NoError(b, pool.Close(), "Close")
}
