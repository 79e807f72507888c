package pipe

// Flush waits until nothing waits to be written, or nothing can be any more.
func (w *Writer) Flush() {
	w.mu.Lock()
	if w.err != nil {
		w.mu.Unlock()
		return
	}
	w.restUnlock()
}

// restUnlock waits until nobody writes. It unlocks first.
func (w *Writer) restUnlock() {
	if !w.busy {
		w.mu.Unlock()
		return
	}
	if w.idle == nil {
		w.idle = make(chan struct{})
	}
	idle := w.idle
	w.mu.Unlock()
	<-idle
}

// restLocked is called when nobody writes any more.
func (w *Writer) restLocked() {
	w.busy = false
	if w.idle != nil {
		close(w.idle)
		w.idle = nil
	}
}

// Broken returns a channel that is closed when a write has failed, which ends
// the Writer. Close does not close it.
func (w *Writer) Broken() <-chan struct{} { return w.broken }

// Err returns why nothing can be sent any more, or nil.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// failed ends the Writer in the middle of it and puts back what of it never
// left, so that [Writer.Unsent] is true to the byte.
func (w *Writer) failed(err error, it item, begun bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.restLocked()
	if w.err == nil {
		w.err = err
		close(w.broken)
	}
	if it.body != nil {
		if !begun {
			w.queue = append([]item{it}, w.queue...)
		}
		return
	}
	for i, m := range it.marks {
		if m.begin >= it.written {
			w.queue = append([]item{{marks: it.marks[i:]}}, w.queue...)
			return
		}
	}
}

// Close ends the Writer and the file under it. What waits is not written any
// more; a write that waits for room returns. After Close nothing of the Writer
// runs, and every Send fails with [ErrClosed] or with the error that came first.
func (w *Writer) Close() {
	w.mu.Lock()
	if w.err == nil {
		w.err = ErrClosed
	}
	w.mu.Unlock()
	_ = w.file.Close() // wakes a blocked write; nobody is left to tell of its error
	w.mu.Lock()
	w.restUnlock() // a sender may be between taking frames and finding the file closed
	w.mu.Lock()
	drain := w.drain
	w.mu.Unlock()
	if drain != nil {
		drain.Wait()
	}
}

// Unsent calls yield for each request of which no byte left this side. It is
// meant for after Close.
func (w *Writer) Unsent(yield func(request uint64)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, it := range w.queue {
		if it.body != nil && it.header.Request != 0 {
			yield(it.header.Request)
		}
		for _, m := range it.marks {
			yield(m.request)
		}
	}
}
