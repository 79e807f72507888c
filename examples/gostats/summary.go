package main

import (
	"fmt"
	"time"
)

// tally is what happened on the way to the table.
type tally struct {
	files    int // that have their place in the table
	killed   int // workers, by -chaos
	restarts int // workers that were started again
	lost     int // calls whose worker died
	repeated int // calls that were sent again
}

// summary is one line.
func (t tally) summary(c config, took time.Duration) string {
	line := fmt.Sprintf("gostats: %d files in %.2f s, %d %v workers", t.files, took.Seconds(), c.workers, c.kind)
	if c.chaos > 0 {
		line += fmt.Sprintf(", %d of %d killed (seed %d)", t.killed, c.chaos, c.seed)
	}
	return line + fmt.Sprintf(", %d restarts, %d calls lost, %d repeated", t.restarts, t.lost, t.repeated)
}
