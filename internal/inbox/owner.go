package inbox

// OpenFor is [Box.Open] for an owner, whom [Box.Owner] finds while the request is open.
func (b *Box[V]) OpenFor(id string, owner any) (*Entry[V], error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	unsent := b.entries[id]
	switch {
	case b.closed:
		return nil, ErrClosed
	case unsent != nil && unsent.state != stateUnsent:
		return nil, &IDError{id, ErrDuplicate}
	case b.open+b.unclaimed >= b.limit:
		return nil, ErrFull
	}
	e := &Entry[V]{box: b, id: id, owner: owner, state: stateOpen}
	if unsent != nil {
		unsent.replaceLocked(e)
	}
	b.entries[id] = e
	b.open++
	return e, nil
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
