package testkit_test

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/testkit"
)

// A run of this very binary that hangs on purpose, with a child that hangs, too.
func TestWatchdogReports(t *testing.T) {
	testkit.NoLeaks(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=TestHangs$", "-test.timeout=2s")
	cmd.Env = append(os.Environ(), "TESTKIT_HANG=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its child is an orphan then, not ours to wait for
	out, err := cmd.CombinedOutput()
	require.Error(t, err, "a run that hangs")
	require.Contains(t, string(out), "the tests are not done after 1s")
	require.Contains(t, string(out), "testkit_test.TestHangs", "stacks of the host")
	require.Contains(t, string(out), "stacks of 1 of 1 child processes")
	require.Contains(t, string(out), "testkit.playHelper", "stacks of the child")
}

func TestHangs(t *testing.T) {
	if os.Getenv("TESTKIT_HANG") == "" {
		t.Log("this one hangs only for TestWatchdogReports")
		return
	}
	cmd := testkit.Command(t, sleeper)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	defer stdin.Close()
	require.NoError(t, cmd.Start())
	require.NoError(t, cmd.Wait(), "it waits for us")
}
