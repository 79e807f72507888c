package main

import (
	"context"
	"io"
	"math"
	"regexp"
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
	got := played(t, "-chaos", "-time", "6s")
	require.Positive(t, got["restarts"], "restarts, of %v", got)
	require.Positive(t, got["abnormal"], "abnormal steps, of %v", got)
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
