package bench

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Load is a closed loop: each caller has one call in flight.
type Load struct {
	Name             string
	Callers, Workers int
}

// Loads returns the loads of the table.
func Loads() []Load {
	return []Load{
		{Name: "1 caller", Callers: 1, Workers: 1},
		{Name: "64 callers", Callers: 64, Workers: 1},
		{Name: "1000 callers, 2 workers", Callers: 1000, Workers: 2},
	}
}

// A Sample is one run of a load.
type Sample struct {
	Calls    int
	Elapsed  time.Duration
	P50, P99 time.Duration // of one call; only with a single caller
	Allocs   uint64        // in this process
	CPU      time.Duration // of this process and its workers; 0 where it is not known
}

// Rate returns calls in a second.
func (s Sample) Rate() float64 { return float64(s.Calls) / s.Elapsed.Seconds() }

// AllocsPerCall returns how often a call allocated in this process.
func (s Sample) AllocsPerCall() float64 { return float64(s.Allocs) / float64(max(1, s.Calls)) }

// CPUPerCall returns the processor time of a call on both sides, in µs.
func (s Sample) CPUPerCall() float64 { return s.CPU.Seconds() * 1e6 / float64(max(1, s.Calls)) }

// Spread makes so many calls in all, spread over the callers, and waits for
// them. The error joins those of the callers; each stops at its first.
func (l Load) Spread(p Pool, calls int) error {
	var left atomic.Int64
	left.Store(int64(calls))
	return l.run(p, func() bool { return left.Add(-1) >= 0 })
}

func (l Load) run(p Pool, another func() bool) error {
	errs := make([]error, l.Callers)
	var callers sync.WaitGroup
	for i := range l.Callers {
		call := p.Caller(i % l.Workers)
		callers.Go(func() {
			for another() {
				if _, err := call(1); err != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	callers.Wait()
	return errors.Join(errs...)
}

// Run keeps the load up for about d, after some calls that do not count.
func (l Load) Run(p Pool, d time.Duration) (Sample, error) {
	if err := l.Spread(p, 20*l.Callers); err != nil { // warm
		return Sample{}, err
	}
	runtime.GC()
	var before, after runtime.MemStats
	cpu := cpuTime()
	runtime.ReadMemStats(&before)
	start := time.Now()
	s, err := l.sample(p, d)
	s.Elapsed = time.Since(start)
	runtime.ReadMemStats(&after)
	s.CPU = cpuTime() - cpu
	s.Allocs = after.Mallocs - before.Mallocs
	return s, err
}

func (l Load) sample(p Pool, d time.Duration) (Sample, error) {
	if l.Callers == 1 {
		return single(p, d)
	}
	var over atomic.Bool
	end := time.AfterFunc(d, func() { over.Store(true) })
	defer end.Stop()
	var calls atomic.Int64
	err := l.run(p, func() bool {
		if over.Load() {
			return false
		}
		calls.Add(1)
		return true
	})
	return Sample{Calls: int(calls.Load())}, err
}

// single times every call by itself.
func single(p Pool, d time.Duration) (Sample, error) {
	call := p.Caller(0)
	times := make([]time.Duration, 0, 1<<20)
	start := time.Now()
	for last := start; last.Sub(start) < d && len(times) < cap(times); {
		if _, err := call(1); err != nil {
			return Sample{}, err
		}
		now := time.Now()
		times = append(times, now.Sub(last))
		last = now
	}
	slices.Sort(times)
	n := len(times)
	return Sample{Calls: n, P50: times[n/2], P99: times[n*99/100]}, nil
}
