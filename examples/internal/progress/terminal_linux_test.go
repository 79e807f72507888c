package progress_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/workerlink/supervisor/examples/internal/progress"
)

func TestBarOnATerminal(t *testing.T) {
	outside, inside := openTerminal(t)

	b := progress.New(inside, "parsing", 200)
	b.Step(0)
	b.Step(100)
	b.Step(0) // no change: nothing to draw
	b.Step(1) // half a percent: the same picture
	b.Step(500)
	b.Close()
	b.Close() // nothing left to take away
	_, err := inside.WriteString("end")
	require.NoError(t, err, "writing behind the bar")

	want := "\rparsing [" + strings.Repeat(" ", 40) + "]   0%" +
		"\rparsing [" + strings.Repeat("=", 20) + strings.Repeat(" ", 20) + "]  50%" +
		"\rparsing [" + strings.Repeat("=", 40) + "] 100%" +
		"\r" + strings.Repeat(" ", 55) + "\r" + "end"
	got := make([]byte, len(want))
	for n := 0; n < len(got); {
		m, err := outside.Read(got[n:])
		require.NoError(t, err, "reading the terminal after %q", got[:n])
		n += m
	}
	require.Equal(t, want, string(got), "what the terminal was sent")
}

func TestBarWithoutWork(t *testing.T) {
	outside, inside := openTerminal(t)
	b := progress.New(inside, "parsing", 0)
	b.Step(1)
	b.Close()
	_, err := inside.WriteString("end")
	require.NoError(t, err, "writing behind the bar")

	got := make([]byte, 64)
	n, err := outside.Read(got)
	require.NoError(t, err, "reading the terminal")
	require.Equal(t, "end", string(got[:n]), "what the terminal was sent; a total of zero has no bar")
}

// openTerminal makes a pseudo-terminal: what is written to inside can be read from outside.
func openTerminal(t *testing.T) (outside, inside *os.File) {
	t.Helper()
	outside = open(t, "/dev/ptmx")
	fd := int(outside.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0), "unlocking the terminal")
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err, "asking for the terminal's number")
	return outside, open(t, fmt.Sprintf("/dev/pts/%d", n))
}

func open(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err, "opening %s", name)
	t.Cleanup(func() { require.NoError(t, f.Close(), "closing %s", name) })
	return f
}
