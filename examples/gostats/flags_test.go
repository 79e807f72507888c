package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
)

func TestFlags(t *testing.T) {
	var out strings.Builder
	c, err := parseFlags(strings.Fields("-dir d -workers 3 -type process -chaos 4 -seed 5 -json"), &out)
	require.NoError(t, err, "parsing flags: %s", &out)
	require.Equal(t, config{dir: "d", workers: 3, kind: supervisor.Process, chaos: 4, seed: 5, json: true}, c, "what the flags say")

	c, err = parseFlags(nil, &out)
	require.NoError(t, err, "no flags: %s", &out)
	require.Equal(t, supervisor.Process, c.kind, "kind by default")
	require.Positive(t, c.workers, "workers by default")
	require.NotZero(t, c.seed, "seed by default")
}

func TestBadFlags(t *testing.T) {
	tests := []struct{ name, args, want string }{
		{"unknown flag", "-none", "not defined: -none"},
		{"argument", "folder", `unexpected argument "folder"`},
		{"no worker", "-workers 0", "-workers 0: at least one"},
		{"unknown kind", "-type thread", "must be goroutine or process"},
		{"negative chaos", "-chaos -1", "-chaos -1 is negative"},
		{"chaos among goroutines", "-type goroutine -chaos 1", "needs -type process"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := gostatsWith(t, strings.Fields(tt.args)...)
			require.Equal(t, exitUsage, got.status, "status of gostats %s", tt.args)
			require.Contains(t, got.stderr, tt.want, "what gostats %s prints", tt.args)
			require.Contains(t, got.stderr, "-workers int", "the usage")
			require.Empty(t, got.stdout, "standard output of gostats %s", tt.args)
		})
	}
	got := gostatsWith(t, "-help")
	require.Zero(t, got.status, "status of -help: %s", got.stderr)
}
