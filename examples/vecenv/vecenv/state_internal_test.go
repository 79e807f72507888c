package vecenv

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStates walks through the table of states, which no caller sees.
func TestStates(t *testing.T) {
	require.Len(t, stateNames, len(follow), "names of states")
	reached := map[State]bool{Void: true}
	for walk := []State{Void}; len(walk) > 0; walk = walk[1:] {
		require.NotEmpty(t, follow[walk[0]], "ways out of %v", walk[0])
		for _, next := range follow[walk[0]] {
			require.Equal(t, next, walk[0].to(next), "from %v to %v", walk[0], next)
			if !reached[next] {
				reached[next] = true
				walk = append(walk, next)
			}
		}
	}
	require.Len(t, reached, len(follow), "states that can be reached")
	require.PanicsWithValue(t, "vecenv: an environment goes from done to stepping", func() { Done.to(Stepping) }, "a step that is not allowed")
	for s := range State(len(follow)) {
		require.Equal(t, s == Run, s.takes(StepResult), "a step in %v", s)
	}
	require.Equal(t, "State(-1) State(9) Kind(0)", State(-1).String()+" "+State(9).String()+" "+Kind(0).String(), "what there is not")
}
