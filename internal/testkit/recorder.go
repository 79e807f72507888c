package testkit

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Recorder keeps what a callback is told, such as the events of a supervisor, and lets a test wait for it. Its methods
// may be called concurrently.
type Recorder[E any, K comparable] struct {
	kind func(E) K

	mu      sync.Mutex
	all     []E
	taken   []bool        // by a Wait, parallel to all
	changed chan struct{} // closed at the next Record
}

// NewRecorder returns an empty recorder; kind says what [Recorder.Wait] tells events by.
func NewRecorder[E any, K comparable](kind func(E) K) *Recorder[E, K] {
	return &Recorder[E, K]{kind: kind, changed: make(chan struct{})}
}

// Record is the callback.
func (r *Recorder[E, K]) Record(e E) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, e)
	r.taken = append(r.taken, false)
	close(r.changed)
	r.changed = make(chan struct{})
}

// Wait returns the earliest event of a kind that no Wait or WaitFor has returned before, and waits for it up to [Limit].
func (r *Recorder[E, K]) Wait(t testing.TB, kind K) E {
	t.Helper()
	return r.WaitFor(t, fmt.Sprint("event ", kind), func(e E) bool { return r.kind(e) == kind })
}

// WaitFor is [Recorder.Wait] for the earliest event that matches.
func (r *Recorder[E, K]) WaitFor(t testing.TB, what string, matches func(E) bool) E {
	t.Helper()
	limit := time.NewTimer(Limit)
	defer limit.Stop()
	for {
		e, ok, changed := r.take(matches)
		if ok {
			return e
		}
		select {
		case <-changed:
		case <-limit.C:
			t.Fatalf("no %s after %v, only:\n%s", what, Limit, r)
		}
	}
}

func (r *Recorder[E, K]) take(matches func(E) bool) (e E, ok bool, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, e := range r.all {
		if !r.taken[i] && matches(e) {
			r.taken[i] = true
			return e, true, nil
		}
	}
	return e, false, r.changed
}

// All returns what was recorded so far, in order.
func (r *Recorder[E, K]) All() []E {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]E(nil), r.all...)
}

// Kinds returns the kinds of what was recorded so far, in order.
func (r *Recorder[E, K]) Kinds() []K {
	var kinds []K
	for _, e := range r.All() {
		kinds = append(kinds, r.kind(e))
	}
	return kinds
}

// String lists what was recorded, one event a line.
func (r *Recorder[E, K]) String() string {
	var b strings.Builder
	for _, e := range r.All() {
		fmt.Fprintf(&b, "%+v\n", e)
	}
	return b.String()
}
