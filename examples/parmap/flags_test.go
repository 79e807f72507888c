package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/executor"
)

func TestFlags(t *testing.T) {
	var out strings.Builder
	c, err := parseFlags(strings.Fields("-dir d -job count -poison a -poison b/c -ordered -list -workers 3 -resize 5 -memory 64 -deadline 2s -idle 3s"), &out)
	require.NoError(t, err, "parsing flags: %s", &out)
	require.Equal(t, config{
		dir: "d", job: "count", poison: []string{"a", "b/c"}, ordered: true, list: true, workers: 3, resize: 5, memory: 64,
		deadline: 2 * time.Second, idle: 3 * time.Second,
	}, c, "what the flags say")

	c, err = parseFlags(nil, &out)
	require.NoError(t, err, "no flags: %s", &out)
	require.Equal(t, "hash", c.job, "job by default")
	require.Equal(t, executor.CPUs(), c.workers, "workers by default")
	require.Equal(t, executor.CPUs()+1, c.resize, "workers of the second run by default")
}

func TestBadFlags(t *testing.T) {
	tests := []struct{ name, args, want string }{
		{"unknown flag", "-none", "not defined: -none"},
		{"argument", "folder", `unexpected argument "folder"`},
		{"unknown job", "-job burn", "-job burn: must be one of compress, count, hash"},
		{"no worker", "-workers 0", "-workers 0: at least one"},
		{"negative resize", "-resize -1", "-resize -1 is negative"},
		{"no memory", "-memory 0", "-memory 0: at least 1 MiB"},
		{"no time", "-deadline 0s", "-deadline 0s: must be positive"},
		{"more time than a worker has", "-deadline 1h", "at most 20s"},
		{"always idle", "-idle 0s", "-idle 0s: must be positive"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := parmapWith(t, strings.Fields(tt.args)...)
			require.Equal(t, exitUsage, got.status, "status of parmap %s", tt.args)
			require.Contains(t, got.stderr, tt.want, "what parmap %s prints", tt.args)
			require.Contains(t, got.stderr, "-workers int", "the usage")
			require.Empty(t, got.stdout, "standard output of parmap %s", tt.args)
		})
	}
	got := parmapWith(t, "-help")
	require.Zero(t, got.status, "status of -help: %s", got.stderr)
}
