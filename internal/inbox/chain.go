package inbox

// A chain is a list of entries that are linked through themselves. An entry is in one chain at most, so it costs nothing
// to be in one.
type chain[V any] struct {
	front, back *Entry[V]
	length      int
}

func (c *chain[V]) push(e *Entry[V]) {
	e.prev, e.next = c.back, nil
	if c.back != nil {
		c.back.next = e
	} else {
		c.front = e
	}
	c.back = e
	c.length++
}

func (c *chain[V]) remove(e *Entry[V]) {
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		c.front = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		c.back = e.prev
	}
	e.prev, e.next = nil, nil
	c.length--
}

// replace puts another entry at the place of e.
func (c *chain[V]) replace(e, by *Entry[V]) {
	by.prev, by.next = e.prev, e.next
	if by.prev != nil {
		by.prev.next = by
	} else {
		c.front = by
	}
	if by.next != nil {
		by.next.prev = by
	} else {
		c.back = by
	}
	e.prev, e.next = nil, nil
}
