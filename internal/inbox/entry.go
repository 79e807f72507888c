package inbox

// The states of an id:
//
//	                 Gather.Add
//	(not known) ─────────────────▶ unsent ──┐ Open
//	     │                           ▲      │
//	     │ Open                 Drop │      ▼
//	     └─────────────────────────▶ open ──────────▶ arrived
//	                                   Deliver
//
// From everywhere it goes to gone: unsent by Forget and Release, open by Drop (if no gather awaits it) and Forget,
// arrived by a claim. An entry that is gone does nothing any more, so a late reply cannot reach the next request that
// has the same id.
const (
	stateUnsent  = iota // awaited by a gather, takes no place
	stateOpen           // takes a place, no verdict yet
	stateArrived        // takes a place until claimed
	stateGone           // not in the box any more
)

// An Entry is the place of one request, from its Open to its verdict. Who opened it calls either [Entry.Deliver] or
// [Entry.Drop].
type Entry[V any] struct {
	box *Box[V]
	id  string

	// Guarded by the mutex of the box.
	owner   any // who opened it, if that was said
	state   int
	gather  *Gather[V] // that awaits it; nil if none
	prev    *Entry[V]  // in gather.pending while unsent or open, then in the queue that it lies in
	next    *Entry[V]
	value   V      // while arrived
	arrival uint64 // number of the arrival
	index   int    // where it lies in a queue, while arrived
}

// Deliver is the verdict. It never waits. It returns false, and drops v, if there was a verdict before, or nobody is
// entitled to one any more: the entry was dropped, or its gather has forgotten it.
func (e *Entry[V]) Deliver(v V) bool {
	b := e.box
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.state != stateOpen {
		return false
	}
	b.open--
	b.quietLocked()
	b.unclaimed++
	b.arrivals++
	e.state, e.value, e.arrival = stateArrived, v, b.arrivals
	e.owner = nil // it holds the request, which is not needed any more
	if g := e.gather; g != nil {
		g.pending.remove(e)
		b.putLocked(&g.replies, e)
		g.settleLocked()
	} else {
		b.putLocked(&b.replies, e)
	}
	return true
}

// Drop gives the place back, because the request was not accepted after all. If a gather awaits the id, it goes on
// doing so as if nothing had been sent, and its [Gather.Next] says so once. After the verdict Drop does nothing.
func (e *Entry[V]) Drop() {
	b := e.box
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.state != stateOpen {
		return
	}
	b.open--
	b.quietLocked()
	if e.gather == nil {
		e.goneLocked()
		return
	}
	// A fresh entry, so that this handle cannot speak for a later request with the same id.
	unsent := &Entry[V]{box: b, id: e.id, state: stateUnsent}
	g := e.gather
	e.replaceLocked(unsent)
	b.entries[e.id] = unsent
	g.droppedLocked()
}

// replaceLocked hands the place in the gather from e, which is gone then, to another entry of the same id.
func (e *Entry[V]) replaceLocked(by *Entry[V]) {
	e.gather.pending.replace(e, by)
	by.gather = e.gather
	e.state, e.gather = stateGone, nil
}

// goneLocked takes the entry out of the box. The counters and lists are up to the caller.
func (e *Entry[V]) goneLocked() {
	delete(e.box.entries, e.id)
	e.state, e.gather = stateGone, nil
}
