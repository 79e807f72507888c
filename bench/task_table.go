package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// TaskResults holds what the trials found of each way, in the order of the
// repeats: the values of one turn were measured side by side.
type TaskResults struct {
	Ways   []TaskWay
	Trials []Trial
	values [][][]float64 // by way, trial, repeat; none where there is no such thing
}

// MeasureTasks runs all trials of all ways in turns, for d each, so many times.
func MeasureTasks(ways []TaskWay, trials []Trial, repeats int, d time.Duration) (r TaskResults, err error) {
	r = TaskResults{Ways: ways, Trials: trials, values: make([][][]float64, len(ways))}
	pools := make([]*TaskPool, len(ways))
	for w, way := range ways {
		r.values[w] = make([][]float64, len(trials))
		if pools[w], err = way.Open(2); err != nil {
			return r, fmt.Errorf("bench: open %s: %w", way.Name, err)
		}
		defer func() {
			if end := pools[w].Close(); end != nil && err == nil {
				err = fmt.Errorf("bench: close %s: %w", way.Name, end)
			}
		}()
		if _, _, err := submitMany(way, pools[w], d/4); err != nil { // warm
			return r, fmt.Errorf("bench: %s, first tasks: %w", way.Name, err)
		}
	}
	for range repeats {
		for t, trial := range trials {
			for w, way := range ways {
				value, ok, err := trial.Run(way, pools[w], d)
				if err != nil {
					return r, fmt.Errorf("bench: %s, %s: %w", way.Name, trial.Name, err)
				}
				if ok {
					r.values[w][t] = append(r.values[w][t], value)
				}
			}
		}
	}
	return r, nil
}

// Of returns what a trial found of a way; ok is false where there is no such
// thing.
func (r TaskResults) Of(way, trial int) (f Figure, ok bool) {
	if len(r.values[way][trial]) == 0 {
		return Figure{}, false
	}
	return figure(r.values[way][trial]), true
}

// Markdown returns a table with one row for each trial and one column for each
// way; brackets hold the least and the greatest. Below it stands what others
// reach.
func (r TaskResults) Markdown() string {
	var out strings.Builder
	head := []string{"empty tasks, 2 workers"}
	for _, way := range r.Ways {
		head = append(head, way.Name)
	}
	row(&out, head)
	row(&out, slices.Repeat([]string{"---"}, len(head)))
	for t, trial := range r.Trials {
		cells := []string{trial.Name}
		for w := range r.Ways {
			cell := "–"
			if f, ok := r.Of(w, t); ok {
				cell = f.String()
			}
			cells = append(cells, cell)
		}
		row(&out, cells)
	}
	return out.String() + "\n" + Elsewhere
}

// Elsewhere is what the same costs in Python. It is not measured here.
const Elsewhere = `For comparison, not measured in this run: Python's pools of processes with two workers, on a machine with two virtual
processors (Xeon under KVM, Linux 6.18, Python 3.11.7), empty tasks, medians [least–greatest] of 5 repeats in one run.
loky is the reusable executor at commit b153e01 with cloudpickle f5199fe; Python is ProcessPoolExecutor started by fork.
Tasks/s are those of a closed loop with so many futures open at once; a map of 10000 tasks had chunks of 100, chosen by
hand. The crash is a task that calls os._exit, after which loky needs another executor; both do. A cell without a figure
was not measured.

| | loky | Python |
| --- | --- | --- |
| submit to result, p50 µs | 672 [487–690] | 335 [320–369] |
| submit, 64 open, tasks/s | 3.8k [3.6k–4.7k] | 5.3k [5.0k–6.2k] |
| submit, 1000 open, tasks/s | 5.2k [4.5k–5.4k] | 6.3k [5.2k–6.5k] |
| map of 1000, chunks of 1, tasks/s | 4.7k [3.9k–5.1k] | 6.1k [4.8k–7.6k] |
| map of 10000, chunks of 100, tasks/s | 328k [314k–336k] | 467k [316k–510k] |
| cold start to first result, µs | 189k [159k–257k] | 8.25k [6.17k–8.43k] |
| resize 2→4, µs | 5440 [2820–5510] | – |
| crash to its error, ms | 103 [2.6–104] | 2.3 [1.3–3.3] |
| after it to the next result, ms | 144 [106–171] | – |
`
