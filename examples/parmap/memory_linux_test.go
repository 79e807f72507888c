package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A worker that has more memory than it may is replaced between files, and none of them notices.
func TestMemory(t *testing.T) {
	dir := write(t, map[string]string{"a.go": "package a\n", "b.go": "package b\n"})
	got := parmapWith(t, "-dir", dir, "-memory", "1") // less than any Go program has
	require.Zero(t, got.status, "status: %s", got.stderr)
	require.Equal(t, 2, strings.Count(got.stdout, "; 0 failed\n"), "runs without a failure in\n%s", got.stdout)
	require.NotContains(t, got.stdout, ", 0 replaced for their memory", "the last line")
}
