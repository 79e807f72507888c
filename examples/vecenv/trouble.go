package main

import (
	"math/rand/v2"
	"os"
)

// One in so many steps meets with trouble of each kind.
const (
	crashes = 500
	hangs   = 1500
	leaks   = 20
)

// leak is how many bytes are lost with each leak, and how many leaks there are at most: this machine is not ours alone.
const (
	leak     = 8 << 20
	maxLeaks = 12
)

// trouble makes an environment what real ones are now and then.
type trouble struct{ lost [][]byte }

// strike may not return. It must run in a process of its own.
func (t *trouble) strike() {
	if t == nil {
		return
	}
	if rand.IntN(leaks) == 0 && len(t.lost) < maxLeaks {
		lost := make([]byte, leak)
		for i := 0; i < len(lost); i += 512 { // memory counts once it is written to
			lost[i] = 1
		}
		t.lost = append(t.lost, lost)
	}
	if rand.IntN(hangs) == 0 {
		select {} // whatever its context says
	}
	if rand.IntN(crashes) == 0 {
		os.Exit(1)
	}
}
