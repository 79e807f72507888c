package executor

// queue is a first-in-first-out queue of tasks from which any of them can be taken. The zero value is empty.
type queue struct {
	head, tail *job
	n          int
}

func (q *queue) pushBack(t *job) {
	t.state, t.prev, t.next = queued, q.tail, nil
	if q.tail == nil {
		q.head = t
	} else {
		q.tail.next = t
	}
	q.tail = t
	q.n++
}

func (q *queue) pushFront(t *job) {
	t.state, t.prev, t.next = queued, nil, q.head
	if q.head == nil {
		q.tail = t
	} else {
		q.head.prev = t
	}
	q.head = t
	q.n++
}

func (q *queue) remove(t *job) {
	if t.prev == nil {
		q.head = t.next
	} else {
		t.prev.next = t.next
	}
	if t.next == nil {
		q.tail = t.prev
	} else {
		t.next.prev = t.prev
	}
	t.prev, t.next = nil, nil
	q.n--
}
