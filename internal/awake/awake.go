// Package awake measures time in which this process has been running.
//
// Whoever watches others must not take the time in which it was itself stopped, frozen or starved for theirs: after a
// SIGSTOP of seconds, or a machine that stood still, all limits would seem passed at once. A [Clock] is told the time every
// so often, and what is missing between two tellings is not counted.
//
// It is arithmetic only: no clock, no goroutine.
package awake

import "time"

// A Clock counts. The zero value has not begun.
type Clock struct {
	last  time.Time
	total time.Duration
}

// slack is how many steps may pass between two tellings before the process counts as having stood still.
const slack = 4

// Tell says that it is now, and that the previous telling should have been a step ago. It reports whether the process
// stood still in between; then only one step of the time counts. The first telling starts the clock.
func (c *Clock) Tell(now time.Time, step time.Duration) (stood bool) {
	passed := now.Sub(c.last)
	switch {
	case c.last.IsZero():
		passed = 0
	case passed > slack*step:
		passed, stood = step, true
	}
	c.last = now
	c.total += max(0, passed)
	return stood
}

// Total is the time counted so far.
func (c *Clock) Total() time.Duration { return c.total }
