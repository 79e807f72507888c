package supervisor

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// history is what a child has lately been through, for Snapshot.
type history struct {
	requests atomic.Uint64 // counted for sampling

	mu      sync.Mutex
	events  []pastEvent // the last ones, oldest first
	exit    error       // how the last life ended that was not asked to, or the child; nil if in order
	samples []sample
	at      int // where the next sample goes, once there are enough
}

// pastEvent is what is kept of an [Event].
type pastEvent struct {
	kind        EventKind
	time        time.Time
	incarnation uint64
	err         error
	text        string
}

// sample is the times of one request.
type sample struct{ queued, ran time.Duration }

const (
	keptEvents  = 8
	keptSamples = 256
	sampleEvery = 64 // one request of so many is timed
)

// sampled reports whether the next request is to be timed.
func (h *history) sampled() bool { return h.requests.Add(1)%sampleEvery == 1 }

func (h *history) addSample(s sample) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.samples) < keptSamples {
		h.samples = append(h.samples, s)
		return
	}
	h.samples[h.at] = s
	h.at = (h.at + 1) % keptSamples
}

// addEvent keeps an event; lines of output and late replies would push the rest out.
func (h *history) addEvent(e Event) {
	if e.Kind == EventOutput || e.Kind == EventLateReply {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.noteExitLocked(e)
	if len(h.events) == keptEvents {
		h.events = slices.Delete(h.events, 0, 1)
	}
	text := firstLine(e.Text)
	if e.Kind == EventRestarting {
		text = e.delay()
	}
	h.events = append(h.events, pastEvent{e.Kind, time.Now(), e.Incarnation, e.Err, text})
}

// noteExitLocked keeps how lives end. An end that was asked for, and went well,
// says nothing about how the child fares.
func (h *history) noteExitLocked(e Event) {
	switch e.Kind {
	case EventExited, EventStartFailed, EventGivenUp, EventStuck:
		h.exit = e.Err
	case EventStopped:
		if e.Err != nil {
			h.exit = e.Err
		}
	}
}

// lastExit is how the child last ended without being asked to; it outlives
// Shutdown.
func (h *history) lastExit() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.exit
}

// EventSnapshot is one of the last events of a child.
type EventSnapshot struct {
	Time        time.Time `json:"time"`
	Kind        string    `json:"kind"`
	Incarnation uint64    `json:"incarnation,omitempty"`
	Text        string    `json:"text,omitempty"` // its error, its first line or, of a restart, its delay
}

// lastEvents returns the events; their errors may be a user's.
func (h *history) lastEvents() (all []EventSnapshot) {
	h.mu.Lock()
	events := slices.Clone(h.events)
	h.mu.Unlock()
	for _, e := range events {
		text := e.text
		if e.err != nil {
			text = errorText(e.err)
		}
		all = append(all, EventSnapshot{e.time, e.kind.String(), e.incarnation, text})
	}
	return all
}

// Percentiles of durations.
type Percentiles struct {
	P50 time.Duration `json:"p50_ns"`
	P90 time.Duration `json:"p90_ns"`
	P99 time.Duration `json:"p99_ns"`
}

// percentiles are those of the samples, and how many there are.
func (h *history) percentiles() (queued, ran Percentiles, n int) {
	h.mu.Lock()
	samples := slices.Clone(h.samples)
	h.mu.Unlock()
	if len(samples) == 0 {
		return queued, ran, 0
	}
	of := func(get func(sample) time.Duration) Percentiles {
		all := make([]time.Duration, len(samples))
		for i, s := range samples {
			all[i] = get(s)
		}
		slices.Sort(all)
		at := func(p int) time.Duration { return all[(len(all)-1)*p/100] }
		return Percentiles{at(50), at(90), at(99)}
	}
	return of(func(s sample) time.Duration { return s.queued }), of(func(s sample) time.Duration { return s.ran }), len(samples)
}
