package supervisor

import "sync"

// abandoned are the lives of a child that could not be ended, for as long as
// they are there.
type abandoned struct {
	mu    sync.Mutex
	lives []abandonedLife
}

type abandonedLife struct {
	stuck   *StuckError
	remains func() bool // false once it has ended after all
}

func (a *abandoned) add(stuck *StuckError, remains func() bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lives = append(a.leftLocked(), abandonedLife{stuck, remains})
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
		if l.remains() {
			left = append(left, l)
		}
	}
	clear(a.lives[len(left):])
	return left
}

// remnant is a link that knows whether what it abandoned is still there.
type remnant interface{ remains() bool }

// remainsOf is how to ask a link; of one made elsewhere it is not known.
func remainsOf(l Link) func() bool {
	if r, ok := l.(remnant); ok {
		return r.remains
	}
	return func() bool { return true }
}
