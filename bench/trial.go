package bench

import (
	"fmt"
	"slices"
	"time"
)

// A Trial is one thing to measure of a [TaskWay].
type Trial struct {
	Name string

	// Run measures it for about d; pool is one of the way with two workers that
	// has run tasks before. ok is false where the way has no such thing.
	Run func(way TaskWay, pool *TaskPool, d time.Duration) (value float64, ok bool, err error)
}

// open is how many tasks are open at once where many are.
const open = 1000

// Trials returns the trials of the table.
func Trials() []Trial {
	return []Trial{
		{"submit to result, p50 µs", submitAndWait},
		{fmt.Sprintf("Submit, %d open, tasks/s", open), submitMany},
		{"Map, tasks/s", mapMany},
		{"cold start to first result, µs", coldStart},
		{"resize 2→4, µs", resize},
		{"crash to its error, ms", noticed},
		{"from there to the next result, ms", recovery},
	}
}

func submitAndWait(_ TaskWay, p *TaskPool, d time.Duration) (float64, bool, error) {
	took, err := median(d, func() (time.Duration, error) {
		start := time.Now()
		err := p.runOne()
		return time.Since(start), err
	})
	return took.Seconds() * 1e6, true, err
}

// runOne runs a task and looks at its value.
func (p *TaskPool) runOne() error {
	wait, err := p.Submit(1)
	if err != nil {
		return err
	}
	return check(wait, 1)
}

func check(wait func() (int, error), want int) error {
	n, err := wait()
	if err == nil && n != want {
		err = fmt.Errorf("bench: a task with %d has the value %d", want, n)
	}
	return err
}

func submitMany(_ TaskWay, p *TaskPool, d time.Duration) (float64, bool, error) {
	var waits [open]func() (int, error) // a ring
	start := time.Now()
	n := 0
	for ; n == 0 || time.Since(start) < d; n++ {
		if at := n % open; n >= open {
			if err := check(waits[at], n-open); err != nil {
				return 0, false, err
			}
		}
		var err error
		if waits[n%open], err = p.Submit(n); err != nil {
			return 0, false, err
		}
	}
	for i := max(0, n-open); i < n; i++ {
		if err := check(waits[i%open], i); err != nil {
			return 0, false, err
		}
	}
	return float64(n) / time.Since(start).Seconds(), true, nil
}

func mapMany(_ TaskWay, p *TaskPool, d time.Duration) (float64, bool, error) {
	start := time.Now()
	asked := 0
	n, err := p.Map(func() bool { asked++; return asked == 1 || time.Since(start) < d })
	return float64(n) / time.Since(start).Seconds(), true, err
}

// coldStart does not count the end of what it starts.
func coldStart(way TaskWay, _ *TaskPool, d time.Duration) (float64, bool, error) {
	took, err := median(d, func() (time.Duration, error) {
		start := time.Now()
		p, err := way.Open(1)
		if err != nil {
			return 0, err
		}
		err = p.runOne()
		took := time.Since(start)
		return took, closers(func() error { return err }, p.Close)
	})
	return took.Seconds() * 1e6, true, err
}

// resize does not count the way back.
func resize(_ TaskWay, p *TaskPool, d time.Duration) (float64, bool, error) {
	if p.Resize == nil {
		return 0, false, nil
	}
	took, err := median(d, func() (time.Duration, error) {
		start := time.Now()
		if err := p.Resize(4); err != nil {
			return 0, err
		}
		took := time.Since(start)
		return took, p.Resize(2)
	})
	return took.Seconds() * 1e6, true, err
}

func noticed(way TaskWay, p *TaskPool, d time.Duration) (float64, bool, error) {
	return crashes(way, p, d, func(alone *TaskPool) (time.Duration, error) {
		start := time.Now()
		err := alone.Crash()
		took := time.Since(start)
		return took, closers(func() error { return err }, alone.runOne) // the executor breaks if no task succeeds in between
	})
}

func recovery(way TaskWay, p *TaskPool, d time.Duration) (float64, bool, error) {
	return crashes(way, p, d, func(alone *TaskPool) (time.Duration, error) {
		if err := alone.Crash(); err != nil {
			return 0, err
		}
		start := time.Now()
		err := alone.runOne()
		return time.Since(start), err
	})
}

// crashes does something with a pool of one worker, so that nobody else can
// take the next task.
func crashes(way TaskWay, p *TaskPool, d time.Duration, something func(alone *TaskPool) (time.Duration, error)) (float64, bool, error) {
	if p.Crash == nil {
		return 0, false, nil
	}
	alone, err := way.Open(1)
	if err == nil {
		err = alone.runOne()
	}
	if err != nil {
		return 0, false, err
	}
	took, err := median(d, func() (time.Duration, error) { return something(alone) })
	return took.Seconds() * 1e3, true, closers(func() error { return err }, alone.Close)
}

// median does something again and again for d, at least once.
func median(d time.Duration, something func() (time.Duration, error)) (time.Duration, error) {
	var all []time.Duration
	for start := time.Now(); len(all) == 0 || time.Since(start) < d; {
		took, err := something()
		if err != nil {
			return 0, err
		}
		all = append(all, took)
	}
	slices.Sort(all)
	return all[len(all)/2], nil
}
