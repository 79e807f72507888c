package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
)

func TestChaosPlan(t *testing.T) {
	c := newChaos(50, 100, 7)
	require.Len(t, c.due, 50, "kills that are planned")
	require.IsNonDecreasing(t, c.due, "the plan")
	require.GreaterOrEqual(t, c.due[0], 0, "the first kill")
	require.LessOrEqual(t, c.due[49], 75, "the last kill, of 100 files")
	require.Equal(t, c.due, newChaos(50, 100, 7).due, "a plan with the same seed")
	require.NotEqual(t, c.due, newChaos(50, 100, 8).due, "a plan with another seed")
}

func TestChaosVictim(t *testing.T) {
	child := func(id int, life uint64, state supervisor.State, inFlight int) supervisor.ChildSnapshot {
		return supervisor.ChildSnapshot{ProcID: id, Incarnation: life, State: state, Load: supervisor.Load{InFlight: inFlight}}
	}
	const up = supervisor.StateUp
	tests := []struct {
		name     string
		children []supervisor.ChildSnapshot
		want     int // -1: nobody
	}{
		{"no children", nil, -1},
		{"between two lives", []supervisor.ChildSnapshot{child(0, 10, supervisor.StateWaiting, 0)}, -1},
		{"starting", []supervisor.ChildSnapshot{child(0, 10, supervisor.StateStarting, 1)}, -1},
		{"idle", []supervisor.ChildSnapshot{child(0, 10, up, 0)}, -1},
		{"killed already", []supervisor.ChildSnapshot{child(1, 2, up, 1)}, -1},
		{"killed in an earlier life", []supervisor.ChildSnapshot{child(1, 10, up, 1)}, 1},
		{"fewest hits", []supervisor.ChildSnapshot{child(1, 10, up, 1), child(2, 11, up, 1), child(3, 12, up, 1)}, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newChaos(0, 0, 1)
			c.lives[2] = true
			c.hits = map[int]int{1: 1, 3: 2}
			victim, ok := c.victim(tt.children)
			require.Equal(t, tt.want >= 0, ok, "whether there is a victim")
			if ok {
				require.Equal(t, tt.want, victim.ProcID, "the victim")
			}
		})
	}
}
