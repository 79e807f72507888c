package inbox

import "context"

// A Gather awaits chosen ids. [Box.Await] makes one, [Gather.Release] ends it.
type Gather[V any] struct {
	box *Box[V]

	// Guarded by the mutex of the box.
	released bool
	dropped  bool     // a request was dropped since the last Next
	pending  chain[V] // unsent and open, in the order in which they were awaited
	replies  queue[V] // arrived and not taken
}

// Add awaits further ids, also such that were not sent yet; what the gather awaits already is skipped. The error is an
// [*IDError] with [ErrAwaited] if another gather has one of them, or [ErrClosed] after Release; nothing is added then.
func (g *Gather[V]) Add(ids ...string) error {
	b := g.box
	b.mu.Lock()
	defer b.mu.Unlock()
	if g.released {
		return ErrClosed
	}
	for _, id := range ids {
		if e := b.entries[id]; e != nil && e.gather != nil && e.gather != g {
			return &IDError{id, ErrAwaited}
		}
	}
	for _, id := range ids {
		e := b.entries[id]
		if e == nil {
			e = &Entry[V]{box: b, id: id, state: stateUnsent}
			b.entries[id] = e
		}
		g.attachLocked(e)
	}
	return nil
}

// attachLocked makes the gather the one that awaits e, which no other gather does.
func (g *Gather[V]) attachLocked(e *Entry[V]) {
	if e.gather == g {
		return
	}
	e.gather = g
	if e.state != stateArrived {
		g.pending.push(e)
		return
	}
	b := g.box
	b.replies.arrived.remove(e)
	b.putLocked(&g.replies, e)
}

// Next claims the awaited reply that arrived first, and waits for one if there is none. What has arrived is handed out
// even if ctx has ended or the box was closed; otherwise the error is [ErrNone], at once, if nothing is awaited (any
// more), that of ctx, [ErrClosed] after Close and Release, or [ErrDropped], once, after an awaited request turned out
// not to be accepted: it is awaited still, and whoever counted on its verdict can now [Gather.Forget] it.
func (g *Gather[V]) Next(ctx context.Context) (id string, v V, err error) {
	g.box.mu.Lock()
	c := g.box.takeLocked(ctx, &g.replies, g.idleLocked)
	return c.id, c.value, c.err
}

func (g *Gather[V]) idleLocked() error {
	switch {
	case g.released:
		return ErrClosed
	case g.pending.length == 0:
		return ErrNone
	case g.dropped:
		g.dropped = false
		return ErrDropped
	}
	return g.box.idleLocked()
}

// droppedLocked tells one who waits, now or next, that a request was dropped.
func (g *Gather[V]) droppedLocked() {
	if g.replies.waiters.Len() == 0 {
		g.dropped = true
		return
	}
	g.replies.failLocked(ErrDropped)
}

// settleLocked tells those who wait that nothing will come, if that is so.
func (g *Gather[V]) settleLocked() {
	if g.pending.length == 0 {
		g.replies.failLocked(ErrNone)
	}
}

// Pending returns the ids that are awaited and have no reply, sent or not, in the order in which they were awaited.
func (g *Gather[V]) Pending() []string {
	return g.list(func(*Entry[V]) bool { return true })
}

// Unsent returns those of [Gather.Pending] for which nothing was sent: only [Gather.Forget] can end their being awaited
// before something is.
func (g *Gather[V]) Unsent() []string {
	return g.list(func(e *Entry[V]) bool { return e.state == stateUnsent })
}

func (g *Gather[V]) list(want func(*Entry[V]) bool) []string {
	g.box.mu.Lock()
	defer g.box.mu.Unlock()
	var ids []string
	for e := g.pending.front; e != nil; e = e.next {
		if want(e) {
			ids = append(ids, e.id)
		}
	}
	return ids
}

// Forget stops awaiting an id that has no reply. If the request is open, its place is free and a reply that comes late
// is refused by [Entry.Deliver]. It returns false, and changes nothing, if the id is not awaited here or its reply has
// arrived: Next has it then.
func (g *Gather[V]) Forget(id string) bool {
	return g.forget(id, func(e *Entry[V]) bool { return e.state != stateArrived })
}

// ForgetUnsent is [Gather.Forget] for an id for which nothing was sent, and nothing else: it cannot take away a request
// that is sent at this moment.
func (g *Gather[V]) ForgetUnsent(id string) bool {
	return g.forget(id, func(e *Entry[V]) bool { return e.state == stateUnsent })
}

func (g *Gather[V]) forget(id string, may func(*Entry[V]) bool) bool {
	b := g.box
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[id]
	if e == nil || e.gather != g || !may(e) {
		return false
	}
	if e.state == stateOpen {
		b.open--
		b.quietLocked()
	}
	g.pending.remove(e)
	e.goneLocked()
	g.settleLocked()
	return true
}

// Release ends the gather. Replies that arrived and were not taken go to [Box.Next], at their place in arrival order;
// requests that are open are answered there, too; ids that were not sent are forgotten. It may be called again.
func (g *Gather[V]) Release() {
	b := g.box
	b.mu.Lock()
	defer b.mu.Unlock()
	if g.released {
		return
	}
	g.released = true
	g.replies.failLocked(ErrClosed)
	for g.pending.front != nil {
		e := g.pending.front
		g.pending.remove(e)
		e.gather = nil
		if e.state == stateUnsent {
			e.goneLocked()
		}
	}
	for !g.replies.arrived.empty() {
		e := g.replies.arrived.pop()
		e.gather = nil
		b.putLocked(&b.replies, e)
	}
}
