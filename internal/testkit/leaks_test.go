package testkit_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

func TestNothingIsLeft(t *testing.T) {
	require.Empty(t, runFake(t, func(t testing.TB) {
		testkit.NoLeaks(t)
		f, err := os.CreateTemp("", "x") //nolint:usetesting // the folder that NoLeaks watches is meant
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.NoError(t, os.Remove(f.Name()))
		ending := make(chan struct{})
		task.Go(func(context.Context) { <-ending })
		t.Cleanup(func() { close(ending) }) // it is on its way when the check begins
	}))
}

func TestGoroutineIsLeft(t *testing.T) {
	ending := make(chan struct{})
	var left *task.Task
	complaints := runFake(t, func(t testing.TB) {
		testkit.NoLeaks(t)
		left = task.Go(func(context.Context) { <-ending })
	})
	close(ending)
	left.Wait()
	require.Len(t, complaints, 1)
	require.Contains(t, complaints[0], "goroutine ")
	require.Contains(t, complaints[0], "TestGoroutineIsLeft", "the stack")
}

func TestTemporaryFileIsLeft(t *testing.T) {
	name := filepath.Join(os.TempDir(), "forgotten")
	complaints := runFake(t, func(t testing.TB) {
		testkit.NoLeaks(t)
		require.NoError(t, os.WriteFile(name, nil, 0o600))
	})
	require.NoError(t, os.Remove(name))
	require.Len(t, complaints, 1)
	require.Contains(t, complaints[0], "temporary file "+name)
}

func TestTemporaryDirectoryIsOurOwn(t *testing.T) {
	entries, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Empty(t, entries, "what others left is not here")
}
