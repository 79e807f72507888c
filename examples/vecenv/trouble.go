package main

import (
	"math/rand/v2"
	"os"
	"runtime"
)

// Trouble is what real environments meet with now and then.
type Trouble int

// The kinds of trouble.
const (
	none  Trouble = iota
	leaks         // memory, of which the supervisor allows only so much
	crashes
	hangs
)

// lost is how many bytes a leak takes, and most how many a cart may have. This machine is not ours alone.
const (
	lost = 48 << 20
	most = 48 << 20
)

// meet may not return. It must run in a process of its own.
func (c *CartPole) meet(t Trouble) {
	switch t {
	case leaks:
		c.lost = make([]byte, lost)
		for i := 0; i < len(c.lost); i += os.Getpagesize() { // memory counts once it is written to
			c.lost[i] = 1
		}
	case crashes:
		os.Exit(1)
	case hangs:
		select {} // whatever its context says
	}
}

// chaos says which step meets with trouble: soon with one of each kind, so that each run has all of them, then at random. The
// same seed and the same carts that are asked have the same trouble.
type chaos struct {
	random  *rand.Rand
	due     []Trouble   // that each run has
	wait    int         // steps until the next
	leaking map[int]int // carts that leak, and how often they had been replaced when they began to
}

// Steps between one trouble and the next: at first, and then on average.
const (
	soon = 20
	rare = 3000
)

func newChaos(seed int64) *chaos {
	c := &chaos{random: rand.New(rand.NewPCG(uint64(seed), 2)), wait: soon, leaking: make(map[int]int)}
	for _, t := range []Trouble{leaks, crashes, hangs} {
		if t != leaks || runtime.GOOS == "linux" { // elsewhere nobody sees it
			c.due = append(c.due, t)
		}
	}
	return c
}

// draw returns the trouble of the next step, which is that of a cart that was replaced so many times. One that leaks is left
// in peace until it is replaced; if that was for another reason, and no leak was seen yet, another one follows.
func (c *chaos) draw(id, replaced int, seen func() bool) Trouble {
	if c == nil {
		return none
	}
	c.wait--
	at, leaking := c.leaking[id]
	switch {
	case leaking && at == replaced:
		return none
	case leaking:
		delete(c.leaking, id)
		if !seen() {
			c.due = append(c.due, leaks)
		}
	}
	if c.wait > 0 {
		return none
	}
	kinds := []Trouble{crashes, hangs}
	if runtime.GOOS == "linux" {
		kinds = append(kinds, leaks)
	}
	t := kinds[c.random.IntN(len(kinds))]
	if c.wait = soon; len(c.due) > 0 {
		t, c.due = c.due[0], c.due[1:]
	} else {
		c.wait = 1 + c.random.IntN(2*rare)
	}
	if t == leaks {
		c.leaking[id] = replaced
	}
	return t
}
