package inbox

// Prepare returns an entry for an owner, whom [Box.Owner] finds while the request is open. [Entry.Open] opens it: by then
// the owner can know its entry, which somebody who finds the owner at once may want it to use.
func (b *Box[V]) Prepare(id string, owner any) *Entry[V] {
	return &Entry[V]{box: b, id: id, owner: owner, state: stateGone}
}

// Open is [Box.Open] for an entry that [Box.Prepare] has made, and has the same errors. It is called once.
func (e *Entry[V]) Open() error {
	b := e.box
	b.mu.Lock()
	defer b.mu.Unlock()
	unsent := b.entries[e.id]
	switch {
	case b.closed:
		return ErrClosed
	case unsent != nil && unsent.state != stateUnsent:
		return &IDError{e.id, ErrDuplicate}
	case b.open+b.unclaimed >= b.limit:
		return ErrFull
	}
	e.state = stateOpen
	if unsent != nil {
		unsent.replaceLocked(e)
	}
	b.entries[e.id] = e
	b.open++
	return nil
}

// Owner returns who opened the request of this id, or nil unless it is open, and whether the id is open or its reply
// unclaimed.
func (b *Box[V]) Owner(id string) (owner any, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[id]
	if e == nil || e.state == stateUnsent {
		return nil, false
	}
	if e.state == stateOpen {
		owner = e.owner
	}
	return owner, true
}
