package main

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/examples/vecenv/vecenv"
)

// tally counts why environments were restarted and why steps were abnormal. It prints the events that say so.
type tally struct {
	out io.Writer

	mu       sync.Mutex
	ended    map[supervisor.EventKind]int // lives that were followed by another one
	hung     map[uint64]bool              // lives that hung, whose end follows
	abnormal map[string]int
}

func newTally(out io.Writer) *tally {
	return &tally{out: out, ended: make(map[supervisor.EventKind]int), hung: make(map[uint64]bool), abnormal: make(map[string]int)}
}

// note takes an event.
func (t *tally) note(e supervisor.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e.Kind {
	case supervisor.EventExited:
		if !t.hung[e.Incarnation] {
			t.ended[e.Kind]++
		}
	case supervisor.EventHung:
		t.hung[e.Incarnation] = true
		t.ended[e.Kind]++
	case supervisor.EventRecycled:
		t.ended[e.Kind]++
	case supervisor.EventStartFailed, supervisor.EventStuck, supervisor.EventGivenUp:
	default:
		return
	}
	_, _ = fmt.Fprintln(t.out, "vecenv:", e)
}

// all reports whether each of these has happened.
func (t *tally) all(kinds []supervisor.EventKind) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range kinds {
		if t.ended[k] == 0 {
			return false
		}
	}
	return true
}

// The reasons of abnormal steps.
const (
	atCrash    = "crashed"  // the process ended
	atTimeout  = "timeouts" // it was late, or hung
	atReplaced = "replaced" // another environment answered
	atOther    = "other"    // such as Ctrl-C
)

// add counts timesteps.
func (t *tally) add(steps []vecenv.Timestep[Position]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range steps {
		var exit *supervisor.ExitError
		switch err := s.Info.Err; {
		case !s.Info.Abnormal:
		case errors.Is(err, supervisor.ErrTimeout):
			t.abnormal[atTimeout]++
		case errors.As(err, &exit):
			t.abnormal[atCrash]++
		case errors.Is(err, vecenv.ErrReplaced):
			t.abnormal[atReplaced]++
		default:
			t.abnormal[atOther]++
		}
	}
}

// summary says what there is to say at the end.
func (t *tally) summary(c config, stats []vecenv.Stats, took time.Duration) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var sum vecenv.Stats
	for _, s := range stats {
		sum.Steps += s.Steps
		sum.Episodes += s.Episodes
		sum.Abnormal += s.Abnormal
		sum.FailedResets += s.FailedResets
	}
	crashes, hangs, leaks := t.ended[supervisor.EventExited], t.ended[supervisor.EventHung], t.ended[supervisor.EventRecycled]
	text := fmt.Sprintf("%d %v environments, %d steps in %.1f s: %.0f steps/s, %d episodes",
		c.envs, c.kind, sum.Steps, took.Seconds(), float64(sum.Steps)/took.Seconds(), sum.Episodes)
	text += fmt.Sprintf("\n%d restarts", crashes+hangs+leaks)
	if crashes+hangs+leaks > 0 {
		text += fmt.Sprintf(": %d crashes, %d hangs, %d leaks", crashes, hangs, leaks)
	}
	text += fmt.Sprintf("\n%d abnormal steps", sum.Abnormal)
	if sum.Abnormal > 0 {
		text += fmt.Sprintf(": %d crashed, %d timeouts, %d replaced, %d other",
			t.abnormal[atCrash], t.abnormal[atTimeout], t.abnormal[atReplaced], t.abnormal[atOther])
	}
	return text + fmt.Sprintf("\n%d failed resets", sum.FailedResets)
}

// locked is a writer of several goroutines.
type locked struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
