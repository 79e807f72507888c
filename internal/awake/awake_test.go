package awake_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/awake"
)

func TestClock(t *testing.T) {
	const step = 100 * time.Millisecond
	for _, tt := range []struct {
		name   string
		passes []time.Duration // between tellings
		total  time.Duration
		stood  bool // at the last one
	}{
		{"nothing told", nil, 0, false},
		{"in step", []time.Duration{step, step, step}, 3 * step, false},
		{"a little late", []time.Duration{step, 4 * step}, 5 * step, false},
		{"stood still for a step too many", []time.Duration{step, 4*step + 1}, 2 * step, true},
		{"stood still for an hour", []time.Duration{step, time.Hour}, 2 * step, true},
		{"and went on", []time.Duration{step, time.Hour, step}, 3 * step, false},
		{"a clock that went back", []time.Duration{step, -time.Hour}, step, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c awake.Clock
			now := time.Unix(1_700_000_000, 0)
			require.False(t, c.Tell(now, step), "the first telling only starts the clock")
			stood := false
			for _, d := range tt.passes {
				now = now.Add(d)
				stood = c.Tell(now, step)
			}
			require.Equal(t, tt.total, c.Total(), "counted time")
			require.Equal(t, tt.stood, stood, "stood still at the last telling")
		})
	}
}
