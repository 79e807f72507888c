//go:build unix

package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/testkit"
)

// TestInterrupt is Ctrl-C while the carts are pushed.
func TestInterrupt(t *testing.T) {
	for _, more := range [][]string{{"-type", "goroutine"}, {"-type", "process"}, {"-chaos"}} {
		t.Run(more[len(more)-1], func(t *testing.T) {
			testkit.NoLeaks(t) // workers that lose their host become children of this process
			cmd := testkit.Command(t, program, append(more, "-time", "1h")...)
			stdout, err := cmd.StdoutPipe()
			require.NoError(t, err, "a pipe for standard output")
			stderr, err := cmd.StderrPipe()
			require.NoError(t, err, "a pipe for standard error")
			require.NoError(t, cmd.Start(), "starting the program")
			out := bufio.NewReader(stdout)
			line, err := out.ReadString('\n')
			require.NoError(t, err, "waiting for its first line")
			require.Equal(t, "4 carts stand; each is seen as 4 numbers and takes 2 actions\n", line, "its first line")
			require.NoError(t, cmd.Process.Signal(os.Interrupt), "interrupting it")
			said, err := io.ReadAll(stderr)
			require.NoError(t, err, "reading standard error")
			lines := strings.SplitAfter(strings.TrimSuffix(string(said), "\n"), "\n")
			require.Equal(t, "vecenv: interrupted", lines[len(lines)-1], "the last line on standard error")
			require.True(t, len(lines) == 1 || more[0] == "-chaos", "events without chaos: %q", said)
			summary, err := io.ReadAll(out)
			require.NoError(t, err, "reading the rest of standard output")
			require.Regexp(t, `^4 (goroutine|process) environments, \d+ steps (.|\n)* failed resets\n$`, string(summary), "summary of an interrupted run")
			var exit *exec.ExitError
			require.ErrorAs(t, cmd.Wait(), &exit, "its end")
			require.Equal(t, exitInterrupted, exit.ExitCode(), "exit status")
		})
	}
}
