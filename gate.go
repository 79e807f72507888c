package supervisor

import (
	"container/list"
	"context"
	"sync"

	"github.com/workerlink/supervisor/future"
)

// gate is the room in a child's queue: a weighted semaphore over requests and
// bytes that grants in the order of asking.
type gate struct {
	limit      int   // requests
	bytesLimit int64 // of their arguments

	mu      sync.Mutex
	n       int
	bytes   int64
	waiters list.List // of *entrant
	err     error     // why nobody enters any more
}

// entrant waits to enter. Its channel is closed by whoever decides, under the mutex.
type entrant struct {
	size    int64
	decided chan struct{}
	err     error // valid once decided
}

func newGate(l Limits) *gate { return &gate{limit: l.Queue, bytesLimit: l.QueueBytes} }

func (g *gate) fitsLocked(size int64) bool {
	return g.n < g.limit && (g.bytes == 0 || g.bytes+size <= g.bytesLimit)
}

// admit enters, at once or not at all unless wait is set.
func (g *gate) admit(ctx context.Context, size int64, wait bool) error {
	if wait {
		return g.enter(ctx, size)
	}
	return g.tryEnter(size)
}

// tryEnter enters at once or returns [ErrBusy].
func (g *gate) tryEnter(size int64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.err != nil:
		return g.err
	case g.waiters.Len() > 0 || !g.fitsLocked(size):
		return ErrBusy
	}
	g.n++
	g.bytes += size
	return nil
}

// enter waits for room until ctx ends.
func (g *gate) enter(ctx context.Context, size int64) error {
	if err := g.tryEnter(size); err != ErrBusy { //nolint:errorlint // tryEnter returns the very value
		return err
	}
	w := &entrant{size: size, decided: make(chan struct{})}
	g.mu.Lock()
	if g.err != nil {
		defer g.mu.Unlock()
		return g.err
	}
	place := g.waiters.PushBack(w)
	g.grantLocked()
	g.mu.Unlock()
	select {
	case <-w.decided:
		return w.err
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-w.decided:
		return w.err
	default:
	}
	g.waiters.Remove(place)
	g.grantLocked() // the one behind may be smaller
	return future.Cause(ctx)
}

// leave gives the room of one request back.
func (g *gate) leave(size int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n--
	g.bytes -= size
	if g.waiters.Len() > 0 {
		g.grantLocked()
	}
}

func (g *gate) grantLocked() {
	for e := g.waiters.Front(); e != nil; e = g.waiters.Front() {
		w := e.Value.(*entrant)
		if !g.fitsLocked(w.size) {
			return
		}
		g.waiters.Remove(e)
		g.n++
		g.bytes += w.size
		close(w.decided)
	}
}

// shut refuses everybody with err, those who wait included, until open.
func (g *gate) shut(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.err = err
	for e := g.waiters.Front(); e != nil; e = g.waiters.Front() {
		w := e.Value.(*entrant)
		g.waiters.Remove(e)
		w.err = err
		close(w.decided)
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.err = nil
}

// held is how many requests are inside.
func (g *gate) held() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.n
}
