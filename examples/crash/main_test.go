package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
)

// asProgram makes the test binary behave as the program.
const asProgram = "CRASH_EXAMPLE"

func TestMain(m *testing.M) {
	supervisor.Init()
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestCrash(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), asProgram+"=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "running the program: %s", out)
	require.Contains(t, string(out), "exited with code 2: ", "the error that the call returns")
	require.Contains(t, string(out), "fatal error: ", "the error says what the Go runtime says first")
	require.Contains(t, string(out), ".(*Model).Train(", "the place of the fault")
	require.Contains(t, string(out), "the next call works: 10", "the call after the crash")
}
