package inbox

// OpenFor is [Box.Open] for an owner, whom [Box.Owner] finds while the request is open.
func (b *Box[V]) OpenFor(id string, owner any) (*Entry[V], error) {
	e, err := b.Open(id)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	e.owner = owner
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
