package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestInterrupt presses Ctrl-C on the program's terminal while the bar shows that it works.
func TestInterrupt(t *testing.T) {
	keyboard, terminal := openTerminal(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-job", "compress", "-workers", "2", "-idle", "1h")
	cmd.Env = append(os.Environ(), asProgram+"=1")
	cmd.Stdin, cmd.Stderr = terminal, terminal
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	require.NoError(t, cmd.Start(), "starting the program")
	require.NoError(t, terminal.Close(), "leaving the terminal to the program")

	shown := readUntil(t, keyboard, "%")
	workers := childrenOf(t, cmd.Process.Pid)
	require.NotEmpty(t, workers, "worker processes; the terminal shows %q", shown)
	_, err := keyboard.WriteString("\x03")
	require.NoError(t, err, "pressing Ctrl-C")
	shown += readUntil(t, keyboard, "parmap: interrupted")

	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &exit, "waiting for the program")
	require.Equal(t, exitInterrupted, exit.ExitCode(), "exit status; the terminal shows %q", shown)
	for _, pid := range workers {
		require.ErrorIs(t, unix.Kill(pid, 0), unix.ESRCH, "signal 0 to worker %d, which is gone", pid)
	}
}

// TestInterruptBeforeTheStart is Ctrl-C that comes at once.
func TestInterruptBeforeTheStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	require.NoError(t, err, "making a file for standard error")
	defer func() { require.NoError(t, stderr.Close(), "closing it") }()
	var stdout strings.Builder
	require.Equal(t, exitInterrupted, run(ctx, []string{"-dir", t.TempDir()}, &stdout, stderr), "exit status")
	require.Empty(t, stdout.String(), "standard output")
}

// openTerminal makes a pseudo-terminal: keyboard and screen are one file, the program has the other.
func openTerminal(t *testing.T) (keyboard, terminal *os.File) {
	t.Helper()
	keyboard = open(t, "/dev/ptmx")
	fd := int(keyboard.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0), "unlocking the terminal")
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err, "asking for the terminal's number")
	return keyboard, open(t, fmt.Sprintf("/dev/pts/%d", n))
}

func open(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err, "opening %s", name)
	t.Cleanup(func() {
		if err := f.Close(); !errors.Is(err, os.ErrClosed) {
			require.NoError(t, err, "closing %s", name)
		}
	})
	return f
}

// readUntil reads the screen until it has shown the text.
func readUntil(t *testing.T, screen *os.File, text string) string {
	t.Helper()
	var shown strings.Builder
	buf := make([]byte, 4096)
	for !strings.Contains(shown.String(), text) {
		n, err := screen.Read(buf)
		require.NoError(t, err, "waiting for %q on the terminal, which shows %q", text, shown.String())
		shown.Write(buf[:n])
	}
	return shown.String()
}

// childrenOf lists the processes whose parent is pid.
func childrenOf(t *testing.T, parent int) (pids []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err, "listing processes")
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		var pid, ppid int
		var state string
		_, err = fmt.Sscan(string(text), &pid)
		require.NoError(t, err, "reading %s", name)
		rest := string(text[strings.LastIndexByte(string(text), ')')+1:]) // the name may hold anything
		_, err = fmt.Sscan(rest, &state, &ppid)
		require.NoError(t, err, "reading %s", name)
		if ppid == parent {
			pids = append(pids, pid)
		}
	}
	return pids
}
