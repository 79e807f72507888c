package main

import (
	"context"
	"io"
	"math"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// program is the program, played by the test binary.
var program = testkit.Helper("vecenv", main)

func TestMain(m *testing.M) { testkit.Main(m, supervisor.Init) }

// played runs the program in this process and returns the numbers in its line by the word that follows them.
func played(t *testing.T, args ...string) map[string]float64 {
	t.Helper()
	testkit.NoLeaks(t)
	var stdout, stderr strings.Builder
	require.Zero(t, run(t.Context(), args, &stdout, &stderr), "status of %q, which says %q", args, stderr.String())
	numbers := map[string]float64{}
	for _, m := range regexp.MustCompile(`([\d.]+) ([a-z/]+)`).FindAllStringSubmatch(stdout.String(), -1) {
		n, err := strconv.ParseFloat(m[1], 64)
		require.NoError(t, err, "reading %q", m[0])
		numbers[m[2]] = n
	}
	return numbers
}

func TestPlay(t *testing.T) {
	for _, kind := range []string{"goroutine", "process"} {
		t.Run(kind, func(t *testing.T) {
			got := played(t, "-type", kind, "-envs", "2", "-steps", "500", "-time", "20s")
			require.InDelta(t, 500, got["steps"], 0, "steps, of %v", got)
			require.Positive(t, got["episodes"], "episodes, of %v", got)
			require.Positive(t, got["steps/s"], "steps per second, of %v", got)
			require.Zero(t, got["restarts"]+got["abnormal"], "restarts and abnormal steps, of %v", got)
		})
	}
}

func TestChaos(t *testing.T) {
	for name, args := range map[string][]string{"four carts": nil, "one, in a short time": {"-envs", "1", "-time", "1ms", "-seed", "7"}} {
		t.Run(name, func(t *testing.T) {
			got := played(t, append(args, "-chaos")...)
			require.Positive(t, got["crashes"], "crashes, of %v", got)
			require.Positive(t, got["hangs"], "hangs, of %v", got)
			if runtime.GOOS == "linux" {
				require.Positive(t, got["leaks"], "leaks, of %v", got)
			}
			require.InDelta(t, got["restarts"], got["crashes"]+got["hangs"]+got["leaks"], 0, "restarts, of %v", got)
			require.InDelta(t, got["abnormal"], got["crashed"]+got["timeouts"]+got["replaced"]+got["other"], 0, "abnormal steps, of %v", got)
			require.GreaterOrEqual(t, got["timeouts"], got["hangs"], "timeouts, of %v", got)
		})
	}
}

// The same seed draws the same trouble, and first one of each kind.
func TestChaosIsSeeded(t *testing.T) {
	yes := func() bool { return true }
	drawn := func(seed int64) (all []Trouble) {
		c, replaced := newChaos(seed), 0
		for len(all) < 30 {
			trouble := c.draw(0, replaced, yes)
			if trouble != none {
				all = append(all, trouble)
				replaced++
			}
		}
		return all
	}
	one := drawn(1)
	require.Equal(t, one, drawn(1), "trouble of the same seed")
	require.NotEqual(t, one, drawn(2), "trouble of another one")
	require.Subset(t, one[:3], []Trouble{crashes, hangs}, "the first ones")
	c := newChaos(1)
	c.due, c.wait = []Trouble{leaks, crashes}, 1
	require.Equal(t, leaks, c.draw(0, 0, yes), "the first trouble")
	for range 10 * soon {
		require.Equal(t, none, c.draw(0, 0, yes), "trouble of a cart that leaks")
	}
	require.Equal(t, crashes, c.draw(1, 0, yes), "trouble of another one")
	require.Equal(t, none, c.draw(0, 1, func() bool { return false }), "trouble of the one that leaked, as it was replaced for another reason")
	require.Equal(t, []Trouble{leaks}, c.due, "trouble that is still to come")
}

// What happens is told, one line for each event.
func TestChaosTellsWhatHappens(t *testing.T) {
	testkit.NoLeaks(t)
	var stdout, stderr strings.Builder
	require.Zero(t, run(t.Context(), []string{"-chaos", "-time", "1ms"}, &stdout, &stderr), "status")
	require.Regexp(t, `(?m)^vecenv: child \d+, life \d+, pid \d+: exited: worker \d+ exited with code 1`, stderr.String(), "standard error")
	require.Regexp(t, `(?m)^vecenv: child \d+, life \d+, pid \d+: hung: Step ran for longer`, stderr.String(), "standard error")
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{
		{"-envs", "0"},
		{"-steps", "-1"},
		{"-time", "0s"},
		{"-type", "thread"},
		{"-type", "goroutine", "-chaos"},
		{"more"},
	} {
		var stderr strings.Builder
		require.Equal(t, exitUsage, run(t.Context(), args, io.Discard, &stderr), "status of %q", args)
		require.Contains(t, stderr.String(), "-envs", "usage after %q", args)
	}
}

func TestInterruptBeforeTheStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, exitInterrupted, run(ctx, nil, io.Discard, io.Discard), "exit status")
}

// TestMove holds one step against numbers that were worked out by hand.
func TestMove(t *testing.T) {
	right := move(Position{}, pushRight)
	require.InDeltaSlice(t, []float64{0, 0.02 * 400.0 / 41, 0, -0.02 * 600.0 / 41}, right[:], 1e-12, "a push out of rest")
	left := move(Position{}, pushLeft)
	for i := range left {
		require.InDelta(t, -right[i], left[i], 1e-12, "a push to the left mirrors one to the right")
	}
	leaning := move(Position{2: 0.1, 1: 1, 3: -1}, pushRight)
	require.InDelta(t, 0.02, leaning[0], 1e-12, "the place follows the speed")
	require.InDelta(t, 0.1-0.02, leaning[2], 1e-12, "the angle follows the angular speed")
	require.False(t, math.IsNaN(leaning[1]+leaning[3]), "speeds are numbers")
}
