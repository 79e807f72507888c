// Package inbox keeps the replies of accepted requests until somebody takes them.
//
// A [Box] knows three things: the requests that are open, the replies that have arrived and were not claimed, and who
// waits. A reply goes to the [Gather] that awaits its id, else into the queue that [Box.Next] reads in arrival order, so
// no caller ever holds the reply of another. Claiming a reply frees the place that its request took.
//
// Whoever brings replies never waits here, and no operation looks through all ids: the dearest are logarithmic in the
// number of replies that nobody has claimed.
package inbox

import (
	"context"
	"sync"
)

// A Box is the inbox of one supervisor. [New] is the only way to make one. Its methods, and those of its entries and
// gathers, may be called concurrently. It owns a delivered value until it hands it out.
type Box[V any] struct {
	limit   int
	closing chan struct{} // closed by Close

	mu        sync.Mutex // guards all below, and every Entry and Gather of this box
	closed    bool
	entries   map[string]*Entry[V] // all that are not gone
	open      int                  // entries in state open
	quiet     chan struct{}        // closed when none is; nil unless somebody asked
	unclaimed int                  // entries in state arrived, awaited or not
	arrivals  uint64               // number of the latest arrival
	replies   queue[V]             // arrived and awaited by no gather
}

// Stats is what a snapshot shows of a box.
type Stats struct {
	Open      int // requests that have no reply yet
	Unclaimed int // replies that nobody has taken yet, whether a gather awaits them or not
}

// New returns a box with room for limit requests, from Open to the claim of the reply. It panics if limit is under one.
func New[V any](limit int) *Box[V] {
	if limit < 1 {
		panic("inbox: limit is under one")
	}
	return &Box[V]{
		limit:   limit,
		closing: make(chan struct{}),
		entries: make(map[string]*Entry[V]),
	}
}

// Open takes a place for a request that is about to be sent. It never waits. The error is an [*IDError] with
// [ErrDuplicate] if the id is open or its reply unclaimed, [ErrFull] if there is no place, or [ErrClosed].
// An id that a gather awaits although it was not sent is attached to that gather.
func (b *Box[V]) Open(id string) (*Entry[V], error) {
	e := b.Prepare(id, nil)
	if err := e.Open(); err != nil {
		return nil, err
	}
	return e, nil
}

// Next claims the unclaimed reply that arrived first, and waits for one if there is none; who waits longest is served
// first. What has arrived is handed out even if ctx has ended or the box was closed; otherwise the error is that of ctx,
// or [ErrClosed].
func (b *Box[V]) Next(ctx context.Context) (V, error) {
	b.mu.Lock()
	c := b.takeLocked(ctx, &b.replies, b.idleLocked)
	return c.value, c.err
}

func (b *Box[V]) idleLocked() error {
	if b.closed {
		return ErrClosed
	}
	return nil
}

// Await starts a gather of the given ids; one that stands twice in the list is awaited once. Replies that arrived
// before are the gather's from now on. The error is an [*IDError] with [ErrUnknown] if an id is neither open nor
// unclaimed, or [ErrAwaited] if another gather has it; nothing is awaited then. Release the gather after use.
func (b *Box[V]) Await(ids []string) (*Gather[V], error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range ids {
		switch e := b.entries[id]; {
		case e == nil:
			return nil, &IDError{id, ErrUnknown}
		case e.gather != nil:
			return nil, &IDError{id, ErrAwaited}
		}
	}
	g := &Gather[V]{box: b}
	for _, id := range ids {
		g.attachLocked(b.entries[id])
	}
	return g, nil
}

// Len returns how many places are taken: open requests and unclaimed replies.
func (b *Box[V]) Len() int {
	s := b.Stats()
	return s.Open + s.Unclaimed
}

// Stats returns the numbers of this moment.
func (b *Box[V]) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Stats{Open: b.open, Unclaimed: b.unclaimed}
}

// Quiet returns a channel that is closed once no request is open.
func (b *Box[V]) Quiet() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.quiet == nil {
		b.quiet = make(chan struct{})
	}
	quiet := b.quiet
	b.quietLocked()
	return quiet
}

// quietLocked tells those who wait for it that no request is open, if that is so.
func (b *Box[V]) quietLocked() {
	if b.open == 0 && b.quiet != nil {
		close(b.quiet)
		b.quiet = nil
	}
}

// Close refuses new requests and ends all waiting with [ErrClosed]. Replies that have arrived, and those that open
// requests still get, can be claimed as before. It does not wait and may be called again.
func (b *Box[V]) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.closed = true
		close(b.closing)
	}
}
