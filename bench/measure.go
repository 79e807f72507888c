package bench

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Results holds the samples of each way under each load, in the order of the
// repeats: sample i of all of them ran in the same turn.
type Results struct {
	Ways    []Way
	Loads   []Load
	samples [][][]Sample // by way, load, repeat
}

// Measure runs all ways under all loads in turns, for d each, so many times.
// The workers are started before the first and ended behind the last.
func Measure(ways []Way, loads []Load, repeats int, d time.Duration) (r Results, err error) {
	r = Results{Ways: ways, Loads: loads, samples: make([][][]Sample, len(ways))}
	workers := 0
	for _, l := range loads {
		workers = max(workers, l.Workers)
	}
	pools := make([]Pool, len(ways))
	for w, way := range ways {
		r.samples[w] = make([][]Sample, len(loads))
		pool, err := way.Open(workers)
		if err != nil {
			return r, fmt.Errorf("bench: open %s: %w", way.Name, err)
		}
		defer func() {
			if end := pool.Close(); end != nil && err == nil {
				err = fmt.Errorf("bench: close %s: %w", way.Name, end)
			}
		}()
		pools[w] = pool
	}
	for range repeats {
		for l, load := range loads {
			for w, way := range ways {
				s, err := load.Run(pools[w], d)
				if err != nil {
					return r, fmt.Errorf("bench: %s, %s: %w", way.Name, load.Name, err)
				}
				r.samples[w][l] = append(r.samples[w][l], s)
			}
		}
	}
	return r, nil
}

// A Figure is the median of the repeats with the least and the greatest.
type Figure struct{ Median, Min, Max float64 }

// figure sums up values, of which there is at least one.
func figure(values []float64) Figure {
	v := slices.SortedFunc(slices.Values(values), cmp.Compare[float64])
	return Figure{Median: v[len(v)/2], Min: v[0], Max: v[len(v)-1]}
}

// Of returns a quantity of one way under one load.
func (r Results) Of(way, load int, quantity func(Sample) float64) Figure {
	values := make([]float64, 0, len(r.samples[way][load]))
	for _, s := range r.samples[way][load] {
		values = append(values, quantity(s))
	}
	return figure(values)
}

// Ratio returns a quantity of one way divided by that of another. Each
// division is within one turn, so that what slowed both down cancels out.
func (r Results) Ratio(way, to, load int, quantity func(Sample) float64) Figure {
	values := make([]float64, 0, len(r.samples[way][load]))
	for i, s := range r.samples[way][load] {
		values = append(values, quantity(s)/quantity(r.samples[to][load][i]))
	}
	return figure(values)
}
