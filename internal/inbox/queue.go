package inbox

import (
	"container/list"
	"context"
)

// A queue brings replies and those who wait for them together. At most one of the two is there at any time.
type queue[V any] struct {
	arrived arrived[V]
	waiters list.List // of *waiter[V], longest waiting first
}

// A waiter is one call that is blocked.
type waiter[V any] struct {
	got chan claimed[V] // holds one, so that who serves the waiter never waits; sent to at most once
}

// claimed is a reply that has left the box, or why there is none.
type claimed[V any] struct {
	id    string
	value V
	err   error
}

// putLocked hands an arrived entry to who waits longest, or keeps it at its place in arrival order.
func (b *Box[V]) putLocked(q *queue[V], e *Entry[V]) {
	if front := q.waiters.Front(); front != nil {
		q.waiters.Remove(front).(*waiter[V]).got <- b.claimLocked(e)
		return
	}
	q.arrived.put(e)
}

// claimLocked frees the place of an arrived entry that lies in no queue.
func (b *Box[V]) claimLocked(e *Entry[V]) claimed[V] {
	c := claimed[V]{id: e.id, value: e.value}
	var zero V
	e.value = zero
	e.goneLocked()
	b.unclaimed--
	return c
}

// takeLocked claims the first entry of the queue or waits for one. It is entered with the mutex held and leaves without.
// idle says why nothing can come any more, if that is so; it is asked when the queue is empty.
func (b *Box[V]) takeLocked(ctx context.Context, q *queue[V], idle func() error) claimed[V] {
	if !q.arrived.empty() {
		c := b.claimLocked(q.arrived.pop())
		b.mu.Unlock()
		return c
	}
	if err := idle(); err != nil {
		b.mu.Unlock()
		return claimed[V]{err: err}
	}
	w := &waiter[V]{got: make(chan claimed[V], 1)}
	place := q.waiters.PushBack(w)
	b.mu.Unlock()

	var err error
	select {
	case c := <-w.got:
		return c
	case <-ctx.Done():
		err = ctx.Err()
	case <-b.closing:
		err = ErrClosed
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case c := <-w.got: // handed over at the same moment: it is ours, nobody else would get it
		return c
	default:
		q.waiters.Remove(place)
		return claimed[V]{err: err}
	}
}

// failLocked ends all waiting in the queue.
func (q *queue[V]) failLocked(err error) {
	for front := q.waiters.Front(); front != nil; front = q.waiters.Front() {
		q.waiters.Remove(front).(*waiter[V]).got <- claimed[V]{err: err}
	}
}
