package bench

import (
	"fmt"
	"strings"
)

// Markdown returns the results as a table of Markdown, one row for each way.
// The time of a call is given with its ratio to the first way's, a throughput
// with its ratio to the second's; brackets hold the least and the greatest.
func (r Results) Markdown() string {
	var out strings.Builder
	head := []string{"way"}
	for _, l := range r.Loads {
		if l.Callers == 1 {
			head = append(head, l.Name+": p50 µs", "× "+r.Ways[0].Name, "p99 µs", "allocs/call", "CPU µs/call")
		} else {
			head = append(head, l.Name+": calls/s", "× "+r.Ways[1].Name, "allocs/call", "CPU µs/call")
		}
	}
	row(&out, head)
	row(&out, slicesOf("---", len(head)))
	for w, way := range r.Ways {
		cells := []string{way.Name}
		for l, load := range r.Loads {
			cells = append(cells, r.cells(w, l, load)...)
		}
		row(&out, cells)
	}
	return out.String()
}

func (r Results) cells(way, load int, l Load) []string {
	var cells []string
	if l.Callers == 1 {
		p50 := func(s Sample) float64 { return s.P50.Seconds() * 1e6 }
		p99 := func(s Sample) float64 { return s.P99.Seconds() * 1e6 }
		cells = append(cells, r.Of(way, load, p50).String(), r.Ratio(way, 0, load, p50).String(), r.Of(way, load, p99).String())
	} else {
		cells = append(cells, r.Of(way, load, Sample.Rate).String(), r.Ratio(way, 1, load, Sample.Rate).String())
	}
	allocs := func(s Sample) float64 { return s.each(float64(s.Allocs)) }
	cpu := func(s Sample) float64 { return s.each(s.CPU.Seconds() * 1e6) }
	return append(cells, r.Of(way, load, allocs).String(), r.Of(way, load, cpu).String())
}

func row(out *strings.Builder, cells []string) {
	fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | "))
}

func slicesOf(cell string, n int) []string {
	cells := make([]string, n)
	for i := range cells {
		cells[i] = cell
	}
	return cells
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
	default:
		return fmt.Sprintf("%.3g", v)
	}
}
