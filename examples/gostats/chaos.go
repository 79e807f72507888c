package main

import (
	"math/rand/v2"
	"os"
	"slices"

	"github.com/workerlink/supervisor"
)

// chaos kills worker processes at work: it decides by how many files are done, not by time, so that it hits the same
// stretch of the work on any machine.
type chaos struct {
	random *rand.Rand
	due    []int           // numbers of finished files after which a worker is killed, ascending
	lives  map[uint64]bool // incarnations that it ended
	hits   map[int]int     // kills of each child
	kills  int
}

// newChaos plans n kills. They fall into the first three quarters of the files, so that there is work left to lose.
func newChaos(n, files int, seed uint64) *chaos {
	c := &chaos{random: rand.New(rand.NewPCG(seed, 0)), lives: make(map[uint64]bool), hits: make(map[int]int)}
	for range n {
		c.due = append(c.due, c.random.IntN(files*3/4+1))
	}
	slices.Sort(c.due)
	return c
}

// strike makes the kills that are due after so many files. If no child can be killed usefully they stay due.
func (c *chaos) strike(sup *supervisor.Supervisor, done int) {
	for len(c.due) > 0 && c.due[0] <= done {
		victim, ok := c.victim(sup.Snapshot().Children)
		if !ok {
			return
		}
		process, err := os.FindProcess(victim.Pid)
		if err != nil {
			return
		}
		err = process.Kill() // SIGKILL, to the process alone: its group is the supervisor's affair
		_ = process.Release()
		if err != nil { // it has just died by itself
			return
		}
		c.lives[victim.Incarnation] = true
		c.hits[victim.ProcID]++
		c.kills++
		c.due = c.due[1:]
	}
}

// victim picks one of the children with the fewest hits among those that are at work, in a life not hit before: of a
// child that was killed the supervisor may not yet know.
func (c *chaos) victim(children []supervisor.ChildSnapshot) (supervisor.ChildSnapshot, bool) {
	children = slices.DeleteFunc(children, func(child supervisor.ChildSnapshot) bool {
		return child.State != supervisor.StateUp || child.Load.InFlight == 0 || c.lives[child.Incarnation]
	})
	if len(children) == 0 {
		return supervisor.ChildSnapshot{}, false
	}
	c.random.Shuffle(len(children), func(i, j int) { children[i], children[j] = children[j], children[i] })
	return slices.MinFunc(children, func(a, b supervisor.ChildSnapshot) int {
		return c.hits[a.ProcID] - c.hits[b.ProcID]
	}), true
}

// did reports whether a life was ended by chaos.
func (c *chaos) did(life uint64) bool { return c.lives[life] }
