package faulttest_test

// What becomes of a host whose program is replaced or deleted while it runs.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// binaryScript is what stands in place of a program: it leaves a mark and says that it is another version.
const binaryScript = "#!/bin/sh\ntouch \"$0.ran\"\necho another version\n"

// binaryHost runs from a file of its own, deletes it, puts something else in its place, and starts new lives in between.
var binaryHost = testkit.Helper("host without a program", func() {
	if err := binaryPlay(context.Background(), os.Args[1]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("fine")
})

func binaryPlay(ctx context.Context, program string) error {
	sup, err := supervisor.New(supervisor.Process)
	if err != nil {
		return err
	}
	defer sup.Close()
	if _, err := sup.Register(ctx, newValues.With("")); err != nil {
		return err
	}
	if err := sup.StartLink(ctx); err != nil {
		return err
	}
	before := sup.Snapshot().Children[0].Pid
	for _, change := range []func() error{
		func() error { return os.Remove(program) },
		func() error { return os.WriteFile(program, []byte(binaryScript), 0o700) }, //nolint:gosec // it is to be run
	} {
		if err := change(); err != nil {
			return err
		}
		if err := sup.Restart(ctx, 0); err != nil {
			return fmt.Errorf("restart: %w", err)
		}
		n, err := supervisor.Call[int](ctx, sup, 0, "Int", 5)
		after := sup.Snapshot().Children[0].Pid
		if err != nil || n != 5 || after == before {
			return fmt.Errorf("the next life answers %d, %w; process %d after %d", n, errors.Join(err), after, before)
		}
		before = after
	}
	if _, err := os.Stat(program + ".ran"); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("what stands in place of the program was run: %w", err)
	}
	return sup.Shutdown(ctx)
}

// binaryCopy makes a copy of this program.
func binaryCopy(t *testing.T) string {
	t.Helper()
	from, err := os.Open("/proc/self/exe")
	require.NoError(t, err, "open this program")
	defer from.Close()
	path := filepath.Join(t.TempDir(), "program")
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o700)
	require.NoError(t, err, "make a copy of it")
	_, err = io.Copy(to, from)
	require.NoError(t, err, "copy it")
	require.NoError(t, to.Close(), "close the copy")
	return path
}

func TestF20ProgramReplaced(t *testing.T) {
	testkit.NoLeaks(t)
	program := binaryCopy(t)
	cmd := testkit.Command(t, binaryHost, program)
	cmd.Path = program
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "the host: %s", out)
	require.Equal(t, "fine\n", string(out), "what the host says")
}

// A program that is named is run as it is found. If it is not there any more, or is another one, the start says so.
func TestF20NamedProgramReplaced(t *testing.T) {
	testkit.NoLeaks(t)
	program := binaryCopy(t)
	sup := newSupervisor(t, supervisor.Process)
	id := register(t, sup, newValues.With(""), supervisor.Proc{Path: program}, supervisor.Restart{Type: supervisor.Temporary})
	require.NoError(t, sup.StartLink(testkit.Context(t)), "StartLink")
	restart := func() (err error) {
		testkit.Within(t, valuesPrompt, func() { err = sup.Restart(testkit.Context(t), id) })
		return err
	}
	require.NoError(t, os.Remove(program), "remove the program")
	err := restart()
	var start *supervisor.StartError
	require.ErrorAs(t, err, &start, "Restart without the program")
	require.ErrorIs(t, err, fs.ErrNotExist, "Restart without the program")

	require.NoError(t, os.WriteFile(program, []byte(binaryScript), 0o700), "put another one in its place") //nolint:gosec // it is to be run
	err = restart()
	require.ErrorAs(t, err, &start, "Restart with another program")
	require.ErrorContains(t, err, "another version", "Restart with another program: what it said")
	_, err = supervisor.Call[int](testkit.Context(t), sup, id, "Int", 1)
	require.Error(t, err, "a call of what did not start")

	require.NoError(t, os.Remove(program), "remove the other program")
	require.NoError(t, os.Rename(binaryCopy(t), program), "bring the program back")
	require.NoError(t, restart(), "Restart with the program")
	n, err := supervisor.Call[int](testkit.Context(t), sup, id, "Int", 7)
	require.NoError(t, err, "a call")
	require.Equal(t, 7, n, "its result")
}
