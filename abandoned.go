package supervisor

import "sync"

// abandoned are the lives of a child that could not be ended, for as long as
// they are there.
type abandoned struct {
	mu    sync.Mutex
	lives []abandonedLife
}

type abandonedLife struct {
	stuck *StuckError
	gone  <-chan struct{} // closed when it has ended after all; nil if that is not known
}

func (a *abandoned) add(stuck *StuckError, gone <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lives = append(a.leftLocked(), abandonedLife{stuck, gone})
}

// left returns those that are still there.
func (a *abandoned) left() []*StuckError {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lives = a.leftLocked()
	var stuck []*StuckError
	for _, l := range a.lives {
		stuck = append(stuck, l.stuck)
	}
	return stuck
}

func (a *abandoned) leftLocked() []abandonedLife {
	left := a.lives[:0]
	for _, l := range a.lives {
		select {
		case <-l.gone:
		default:
			left = append(left, l)
		}
	}
	clear(a.lives[len(left):])
	return left
}

// goneWhen returns a channel that is closed when what a link abandoned has
// ended after all, or nil.
func goneWhen(l Link) <-chan struct{} {
	if g, ok := l.(interface{ gone() <-chan struct{} }); ok {
		return g.gone()
	}
	return nil
}
