package executor

import (
	"slices"
	"time"

	"github.com/workerlink/supervisor"
)

// Stats is what an executor knows of itself at one moment.
type Stats struct {
	Queued  int   `json:"queued"`  // tasks that wait for a worker, or to be tried again
	Running int   `json:"running"` // tasks that a worker has, of which it executes one
	Done    int64 `json:"done"`    // tasks with a value
	Failed  int64 `json:"failed"`  // tasks with an error
	Retried int64 `json:"retried"` // executions after the first one of a task

	Workers WorkerStats `json:"workers"`

	Wait supervisor.Percentiles `json:"wait"` // in the queue, of the last tasks, one of 16
	Run  supervisor.Percentiles `json:"run"`  // of a task, the way to the worker and back included, of the last chunks
}

// WorkerStats counts workers.
type WorkerStats struct {
	Max      int   `json:"max"`      // at once
	Now      int   `json:"now"`      // those that are starting included
	Idle     int   `json:"idle"`     // of them, without work
	Crashed  int64 `json:"crashed"`  // died without being told to
	Recycled int64 `json:"recycled"` // were replaced although they were well
}

// Stats returns what there is to count. It does not wait for any worker.
func (x *Executor) Stats() Stats {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := &x.state
	return Stats{
		Queued: s.queue.n + len(s.delayed), Running: s.stats.running,
		Done: s.stats.done, Failed: s.stats.failed, Retried: s.stats.retried,
		Workers: WorkerStats{
			Max: s.crew.max, Now: len(s.crew.lanes), Idle: len(s.crew.idle),
			Crashed: s.stats.crashed, Recycled: s.stats.recycled,
		},
		Wait: s.stats.waits.percentiles(), Run: s.stats.runs.percentiles(),
	}
}

// Snapshot is an executor as a supervisor's [supervisor.Snapshot] shows it.
type Snapshot struct {
	Name    string              `json:"name,omitempty"`
	Broken  string              `json:"broken,omitempty"` // why, if it is
	Stats   Stats               `json:"stats"`
	Workers supervisor.Snapshot `json:"workers"`
}

// Snapshot returns a [Snapshot]. It is the hook by which an executor that is the object of a child shows itself.
func (x *Executor) Snapshot() any {
	s := Snapshot{Name: x.cfg.Name, Stats: x.Stats(), Workers: x.sup.Snapshot()}
	x.mu.Lock()
	broken := x.state.broken
	x.mu.Unlock()
	if broken != nil {
		s.Broken = broken.Error()
	}
	return s
}

// counts are kept for Stats; the executor's mutex guards them.
type counts struct {
	running      int
	done, failed int64
	retried      int64
	crashed      int64
	recycled     int64
	accepted     uint64
	waits, runs  samples
}

const sampleEvery = 16 // one task of so many has its wait measured

func (c *counts) sampled() bool {
	c.accepted++
	return c.accepted%sampleEvery == 1
}

// samples are the last durations of something.
type samples struct {
	all []time.Duration
	at  int
}

const keptSamples = 256

func (s *samples) add(d time.Duration) {
	if len(s.all) < keptSamples {
		s.all = append(s.all, d)
		return
	}
	s.all[s.at] = d
	s.at = (s.at + 1) % keptSamples
}

func (s *samples) percentiles() (p supervisor.Percentiles) {
	if len(s.all) == 0 {
		return p
	}
	sorted := slices.Sorted(slices.Values(s.all))
	at := func(percent int) time.Duration { return sorted[(len(sorted)*percent+99)/100-1] }
	return supervisor.Percentiles{P50: at(50), P90: at(90), P99: at(99)}
}
