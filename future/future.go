// Package future holds results that are not there yet.
//
// [New] makes a [Future] and its [Resolver]. Whoever waits keeps the Future, whoever does the work keeps the Resolver,
// and the first verdict wins:
//
//	f, r := future.New[int]()
//	go func() { r.Resolve(answer()) }()
//	n, err := f.Result(ctx)
//
// A future costs no goroutine, and nothing has to be closed: one that nobody resolves is collected like any value.
package future

import (
	"context"
	"sync"
)

// Any is a [Future] without the type of its value, for those who only wait, watch or cancel. Nothing else is one.
type Any interface {
	Done() <-chan struct{}
	Err() error
	Cancel()

	watch(w *watcher, at int)
	unwatch(w *watcher)
}

// A Future is a value of type T or an error that arrives later. [New] is the only way to make one. Its methods may be
// called concurrently.
type Future[T any] struct {
	mu       sync.Mutex
	ended    bool
	canceled bool             // Cancel was called while pending
	value    T                // valid once ended
	err      error            // valid once ended
	done     chan struct{}    // made on first demand; closed by end, or at birth when ended already
	hook     func()           // what Cancel runs; nil once it was taken
	then     []func(T, error) // waiting for the end
	watchers map[*watcher]int // who is told of the end, and by which number; nil if nobody is
}

// New returns a pending future and the resolver that ends it.
func New[T any]() (*Future[T], Resolver[T]) {
	f := new(Future[T])
	return f, Resolver[T]{f}
}

// Result waits for the end of the future and returns its value or error. If ctx ends first it returns [ErrTimeout] or
// [ErrCanceled] in the form that [Cause] gives them; that changes nothing about the future, which can be asked again.
// Of a future that has ended, Result returns the verdict even if ctx has ended too.
func (f *Future[T]) Result(ctx context.Context) (T, error) {
	if value, err, ok := f.verdict(); ok {
		return value, err
	}
	select {
	case <-f.Done():
	case <-ctx.Done():
	}
	if value, err, ok := f.verdict(); ok {
		return value, err
	}
	var zero T
	return zero, Cause(ctx)
}

// Done returns a channel that is closed when the future has ended.
func (f *Future[T]) Done() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done == nil {
		f.done = make(chan struct{})
		if f.ended {
			close(f.done)
		}
	}
	return f.done
}

// Err returns the error that ended the future: nil while it is pending and after success. It does not block.
func (f *Future[T]) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// Cancel says that the result is no longer wanted. It runs the hook of [Resolver.OnCancel], once and on the caller's
// goroutine. It does not end the future: the resolver does, most often with [ErrCanceled], but a value that was on its
// way may still win. After the end Cancel does nothing.
func (f *Future[T]) Cancel() {
	f.mu.Lock()
	var hook func()
	if !f.ended {
		f.canceled = true
		hook, f.hook = f.hook, nil
	}
	f.mu.Unlock()
	if hook != nil {
		hook()
	}
}

// Then has fn called with the verdict, on a goroutine of its own that begins when the future ends, or at once if it
// has. Several functions run independently of each other, in no order. Nothing recovers a panic of fn.
func (f *Future[T]) Then(fn func(T, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		go fn(f.value, f.err)
		return
	}
	f.then = append(f.then, fn)
}

// verdict returns how the future ended; ok is false while it is pending.
func (f *Future[T]) verdict() (value T, err error, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.value, f.err, f.ended
}

// end is the one way out of pending. It reports whether this call was the one that ended the future.
func (f *Future[T]) end(value T, err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return false
	}
	f.ended, f.value, f.err = true, value, err
	if f.done != nil {
		close(f.done)
	}
	for _, fn := range f.then {
		go fn(value, err)
	}
	for w, at := range f.watchers {
		w.ended <- at
	}
	f.then, f.hook, f.watchers = nil, nil, nil // what they hold on to is not ours to keep alive
	return true
}
