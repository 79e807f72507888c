package future

// A Resolver is the writing end of a [Future]. Copies speak for the same future, and its methods may be called
// concurrently. The zero value is not usable.
type Resolver[T any] struct{ future *Future[T] }

// Resolve ends the future with a value. It reports whether this was the first verdict; a later one changes nothing.
func (r Resolver[T]) Resolve(value T) bool { return r.future.end(value, nil) }

// Reject ends the future with an error, and reports likewise. It panics if err is nil.
func (r Resolver[T]) Reject(err error) bool {
	if err == nil {
		panic("future: Reject with a nil error")
	}
	var zero T
	return r.future.end(zero, err)
}

// OnCancel sets what [Future.Cancel] runs; a hook that was set before and has not run is replaced. If Cancel was called
// already, hook runs at once on this goroutine. It never runs after the end of the future was seen.
func (r Resolver[T]) OnCancel(hook func()) {
	f := r.future
	f.mu.Lock()
	run := f.canceled && !f.ended
	if !run && !f.ended {
		f.hook = hook
	}
	f.mu.Unlock()
	if run {
		hook()
	}
}
