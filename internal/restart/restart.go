// Package restart decides whether and when a child that has ended is started again.
//
// It is arithmetic only: no clock, no random numbers, no goroutine. The owner of a child keeps a [History], notes in it
// when a life became ready, and asks [Decide] at its end.
package restart

import (
	"errors"
	"math"
	"time"
)

// Type says after which ends a child comes back.
type Type uint8

// The types of restart.
const (
	Permanent Type = iota // after every end
	Transient             // after every end but an orderly one
	Temporary             // never
)

// What the zero values of [Policy] stand for.
const (
	DefaultMax    = 5
	DefaultWithin = 10 * time.Second
	DefaultMin    = 100 * time.Millisecond
	DefaultCap    = 30 * time.Second
)

// jitter is how far a delay is moved at most, up or down, so that children that died together do not come back together.
const jitter = 0.2

// A Policy says how often and how fast a child is restarted. The zero value is the default: at most 5 times in 10
// seconds; at once, then after 100 ms, and twice as long each time up to 30 s.
type Policy struct {
	Type   Type
	Max    int           // restarts within the window; the next end is the last. 0 means DefaultMax
	Within time.Duration // length of the window. 0 means DefaultWithin
	First  time.Duration // delay of the first restart; 0 means at once
	Min    time.Duration // delay of the second one, which is doubled from then on. 0 means DefaultMin
	Cap    time.Duration // the longest delay, before jitter. 0 means DefaultCap, or First or Min if longer
}

// Validate returns an error if a value is out of range.
func (p Policy) Validate() error {
	switch {
	case p.Type > Temporary:
		return errors.New("supervisor: unknown restart type")
	case p.Max < 0:
		return errors.New("supervisor: the number of restarts is negative")
	case p.Within < 0:
		return errors.New("supervisor: the window for restarts is negative")
	case p.First < 0 || p.Min < 0 || p.Cap < 0:
		return errors.New("supervisor: a restart delay is negative")
	case p.Cap > 0 && (p.Cap < p.Min || p.Cap < p.First):
		return errors.New("supervisor: the longest restart delay is shorter than another one")
	}
	return nil
}

func (p Policy) withDefaults() Policy {
	if p.Max == 0 {
		p.Max = DefaultMax
	}
	if p.Within == 0 {
		p.Within = DefaultWithin
	}
	if p.Min == 0 {
		p.Min = DefaultMin
		if p.Cap > 0 {
			p.Min = min(p.Min, p.Cap)
		}
	}
	if p.Cap == 0 {
		p.Cap = max(DefaultCap, p.Min, p.First)
	}
	return p
}

// A History is what has to be remembered of a child's lives. The zero value is that of a new child. It is a value:
// nothing that is done with a copy changes the other.
type History struct {
	ended  []time.Time // ends that were followed by a restart, within the window; never written to, only replaced
	streak int         // restarts since the last quiet time
	ready  time.Time   // when the current life became ready; zero if it has not
}

// Started notes that a life is ready. Without it, a life counts as one that has never been ready, however long it took.
func (h History) Started(now time.Time) History {
	h.ready = now
	return h
}

// Ended notes that a life has ended now. One that was ready for as long as the window of p is a quiet time: delays begin
// anew after it, whatever follows and why.
func (h History) Ended(now time.Time, p Policy) History {
	if !h.ready.IsZero() && now.Sub(h.ready) >= p.withDefaults().Within {
		h.streak = 0
	}
	h.ready = time.Time{}
	return h
}

// Decision is what follows the end of a life.
type Decision struct {
	Again bool          // another life follows
	Wait  time.Duration // before it
	Limit bool          // none follows because too many did already; otherwise because the type says so
}

// Decide says whether a child whose life has ended now is started again and after what delay, and returns the history
// to go on with. An orderly end is one that the child itself has chosen, without an error.
//
// It is started again if its type wants that and fewer than Max ends in the window before now were followed by a
// restart; an end that lies exactly Within ago is out of the window. [History.Ended] is part of it. The jitter of the
// delay comes from rnd, a number in [0, 1); 0.5 means none. Times should have their monotonic part; without it, a clock
// that is set back makes earlier ends count as having just happened.
func Decide(p Policy, h History, now time.Time, orderly bool, rnd float64) (d Decision, next History) {
	h = h.Ended(now, p)
	p = p.withDefaults()
	next.streak = h.streak
	for _, end := range h.ended {
		if end.After(now) {
			end = now
		}
		if now.Sub(end) < p.Within {
			next.ended = append(next.ended, end)
		}
	}
	switch {
	case p.Type == Temporary || p.Type == Transient && orderly:
		return Decision{}, next
	case len(next.ended) >= p.Max:
		return Decision{Limit: true}, next
	}
	d = Decision{Again: true, Wait: delay(p, next.streak, rnd)}
	next.ended = append(next.ended, now)
	next.streak++
	return d, next
}

// delay is that of the restart after so many others.
func delay(p Policy, others int, rnd float64) time.Duration {
	base := float64(p.First)
	if others > 0 {
		// In floating point a streak of any length is just a large number, and ends at the cap.
		base = min(math.Ldexp(float64(p.Min), others-1), float64(p.Cap))
	}
	d := base * (1 + jitter*(2*rnd-1))
	if d >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(d)
}
