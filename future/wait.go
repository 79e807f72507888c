package future

import (
	"context"
	"fmt"
	"iter"
)

// WaitMode says what [Wait] waits for.
type WaitMode int

// The modes of [Wait].
const (
	All        WaitMode = iota // every future has ended
	First                      // at least one has
	FirstError                 // one has ended with an error, or all have ended
)

// String returns the name of the mode.
func (m WaitMode) String() string {
	if m < All || m > FirstError {
		return fmt.Sprintf("WaitMode(%d)", int(m))
	}
	return [...]string{"All", "First", "FirstError"}[m]
}

// Wait waits until mode is satisfied or ctx ends, whose error in the form of [Cause] it then returns. In either case
// it says which futures had ended and which had not, each once and in the order given. Of no futures all have ended.
// It changes nothing about them, and panics if mode is none of the three.
func Wait(ctx context.Context, mode WaitMode, futures ...Any) (done, pending []Any, err error) {
	if mode < All || mode > FirstError {
		panic("future: Wait with " + mode.String())
	}
	w := watchAll(futures)
	defer w.stop()
	for w.left > 0 {
		if f, ok := w.next(ctx); !ok {
			err = Cause(ctx)
			break
		} else if mode == First || mode == FirstError && f.Err() != nil {
			break
		}
	}
	for {
		if _, ok := w.more(); !ok {
			break
		}
	}
	for i, f := range w.futures {
		if w.seen[i] {
			done = append(done, f)
		} else {
			pending = append(pending, f)
		}
	}
	return done, pending, err
}

// AsCompleted yields each future when it has ended, those that had ended first, and a future that is given twice once.
// The sequence ends with the last one, or when ctx ends: those that have ended by then are still yielded.
func AsCompleted(ctx context.Context, futures ...Any) iter.Seq[Any] {
	return func(yield func(Any) bool) {
		w := watchAll(futures)
		defer w.stop()
		for w.left > 0 {
			f, ok := w.next(ctx)
			if !ok || !yield(f) {
				return
			}
		}
	}
}

// watcher is told of the end of several futures.
type watcher struct {
	futures []Any    // each once
	ended   chan int // has room for all of them, so that nobody waits
	seen    []bool   // by number
	left    int      // not seen yet
}

func watchAll(futures []Any) *watcher {
	w := &watcher{}
	known := make(map[Any]bool, len(futures))
	for _, f := range futures {
		if !known[f] {
			known[f] = true
			w.futures = append(w.futures, f)
		}
	}
	w.left = len(w.futures)
	w.ended, w.seen = make(chan int, w.left), make([]bool, w.left)
	for i, f := range w.futures {
		f.watch(w, i)
	}
	return w
}

// next waits for the next end; false if ctx ends before there is one.
func (w *watcher) next(ctx context.Context) (Any, bool) {
	if f, ok := w.more(); ok {
		return f, true
	}
	select {
	case at := <-w.ended:
		return w.see(at), true
	case <-ctx.Done():
		return w.more()
	}
}

// more is next without waiting.
func (w *watcher) more() (Any, bool) {
	select {
	case at := <-w.ended:
		return w.see(at), true
	default:
		return nil, false
	}
}

func (w *watcher) see(at int) Any {
	w.seen[at] = true
	w.left--
	return w.futures[at]
}

func (w *watcher) stop() {
	for i, f := range w.futures {
		if !w.seen[i] {
			f.unwatch(w)
		}
	}
}

// watch tells w of the end, once, which may have come already.
func (f *Future[T]) watch(w *watcher, at int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		w.ended <- at
		return
	}
	if f.watchers == nil {
		f.watchers = make(map[*watcher]int)
	}
	f.watchers[w] = at
}

func (f *Future[T]) unwatch(w *watcher) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.watchers, w)
}
