package inbox

import "container/heap"

// arrived holds entries in the order of their arrival. Replies come in that order, so nearly all of them lie in a chain
// and cost a few pointers. Those that a gather took or gave back after later ones had come lie in a heap beside it.
type arrived[V any] struct {
	inOrder chain[V]
	belated byArrival[V]
}

// inChain is the index of an entry that is not in a heap.
const inChain = -1

func (a *arrived[V]) empty() bool { return a.inOrder.length == 0 && len(a.belated) == 0 }

func (a *arrived[V]) put(e *Entry[V]) {
	if back := a.inOrder.back; back != nil && back.arrival > e.arrival {
		heap.Push(&a.belated, e)
		return
	}
	e.index = inChain
	a.inOrder.push(e)
}

func (a *arrived[V]) remove(e *Entry[V]) {
	if e.index == inChain {
		a.inOrder.remove(e)
	} else {
		heap.Remove(&a.belated, e.index)
	}
}

// pop takes out the entry that arrived first; there must be one.
func (a *arrived[V]) pop() *Entry[V] {
	first := a.inOrder.front
	if len(a.belated) > 0 && (first == nil || a.belated[0].arrival < first.arrival) {
		first = a.belated[0]
	}
	a.remove(first)
	return first
}

// byArrival implements [heap.Interface].
type byArrival[V any] []*Entry[V]

func (h byArrival[V]) Len() int           { return len(h) }
func (h byArrival[V]) Less(i, j int) bool { return h[i].arrival < h[j].arrival }
func (h byArrival[V]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *byArrival[V]) Push(x any) {
	e := x.(*Entry[V])
	e.index = len(*h)
	*h = append(*h, e)
}

func (h *byArrival[V]) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}
