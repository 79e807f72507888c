package bench

import (
	"fmt"
	"slices"
	"strings"
)

// Markdown returns one table for each load, with one row for each way. Times
// of a call are compared with those of the first way, throughputs with the
// second's; brackets hold the least and the greatest. Allocations are those of
// the calling process, processor time includes the workers'.
func (r Results) Markdown() string {
	var out strings.Builder
	for l, load := range r.Loads {
		if l > 0 {
			out.WriteByte('\n')
		}
		columns := r.columns(load)
		head := []string{load.Name}
		for _, c := range columns {
			head = append(head, c.name)
		}
		row(&out, head)
		row(&out, slices.Repeat([]string{"---"}, len(head)))
		for w, way := range r.Ways {
			cells := []string{way.Name}
			for _, c := range columns {
				cells = append(cells, c.figure(w, l).String())
			}
			row(&out, cells)
		}
	}
	return out.String()
}

type column struct {
	name   string
	figure func(way, load int) Figure
}

func (r Results) columns(load Load) []column {
	of := func(name string, quantity func(Sample) float64) column {
		return column{name, func(way, load int) Figure { return r.Of(way, load, quantity) }}
	}
	ratio := func(to int, quantity func(Sample) float64) column {
		return column{"× " + r.Ways[to].Name, func(way, load int) Figure { return r.Ratio(way, to, load, quantity) }}
	}
	costs := []column{of("allocs/call", Sample.AllocsPerCall), of("CPU µs/call", Sample.CPUPerCall)}
	if load.Callers > 1 {
		return append([]column{of("calls/s", Sample.Rate), ratio(1, Sample.Rate)}, costs...)
	}
	p50 := func(s Sample) float64 { return s.P50.Seconds() * 1e6 }
	p99 := func(s Sample) float64 { return s.P99.Seconds() * 1e6 }
	return append([]column{of("p50 µs", p50), ratio(0, p50), ratio(1, p50), of("p99 µs", p99)}, costs...)
}

func row(out *strings.Builder, cells []string) {
	fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | "))
}

// String returns the figure with three digits.
func (f Figure) String() string {
	return fmt.Sprintf("%s [%s–%s]", digits(f.Median), digits(f.Min), digits(f.Max))
}

func digits(v float64) string {
	switch {
	case v >= 999_500:
		return fmt.Sprintf("%.3gM", v/1e6)
	case v >= 999.5:
		return fmt.Sprintf("%.0fk", v/1e3)
	case v < 0.001:
		return "0"
	default:
		return fmt.Sprintf("%.3g", v)
	}
}
