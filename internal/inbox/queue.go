package inbox

import (
	"container/heap"
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
	heap.Push(&q.arrived, e)
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
	if len(q.arrived) > 0 {
		c := b.claimLocked(heap.Pop(&q.arrived).(*Entry[V]))
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

// arrived is a heap of entries by arrival number: cheap at the end, where new ones come, and in the middle, where a
// gather takes them out and puts them back.
type arrived[V any] []*Entry[V]

func (a arrived[V]) Len() int           { return len(a) }
func (a arrived[V]) Less(i, j int) bool { return a[i].arrival < a[j].arrival }
func (a arrived[V]) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].index, a[j].index = i, j
}

func (a *arrived[V]) Push(x any) {
	e := x.(*Entry[V])
	e.index = len(*a)
	*a = append(*a, e)
}

func (a *arrived[V]) Pop() any {
	last := len(*a) - 1
	e := (*a)[last]
	(*a)[last] = nil
	*a = (*a)[:last]
	return e
}
