//go:build linux || darwin

package proc_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/proc"
)

func TestPathIsLookedUp(t *testing.T) {
	checkLeaks(t)
	dir := t.TempDir()
	script := []byte("#!/bin/sh\necho found\n")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "program"), script, 0o700))
	sub := filepath.Join(dir, "sub")
	require.NoError(t, os.Mkdir(sub, 0o700))
	t.Chdir(dir)
	var s proc.Starter

	t.Run("in PATH", func(t *testing.T) {
		t.Setenv("PATH", dir)
		c := start(t, &s, proc.Config{Path: "program"})
		require.Equal(t, "found\n", readAll(t, c.Stdout))
	})
	t.Run("relative to the host's directory", func(t *testing.T) {
		c := start(t, &s, proc.Config{Path: "./program", Dir: sub})
		require.Equal(t, "found\n", readAll(t, c.Stdout))
	})
	t.Run("in the working directory by PATH", func(t *testing.T) {
		t.Setenv("PATH", ".")
		_, err := s.Start(proc.Config{Path: "program"})
		require.ErrorIs(t, err, exec.ErrDot)
	})
	t.Run("nowhere", func(t *testing.T) {
		_, err := s.Start(proc.Config{Path: "no-such-program"})
		require.ErrorIs(t, err, exec.ErrNotFound)
	})
}
