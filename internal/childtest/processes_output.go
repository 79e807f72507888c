package childtest

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
)

var outputRules = []rule{
	{"each line of output is an event that says whose it is", outputEvents},
	{"the end of the output is kept for errors", outputTail},
	{"long lines are cut", outputCut},
	{"output goes to the writers of Proc", outputWriters},
}

// line waits for an output event with this text.
func (r *rig) line(t *testing.T, text string) supervisor.Event {
	t.Helper()
	return r.events.WaitFor(t, "line "+text, func(e supervisor.Event) bool {
		return e.Kind == supervisor.EventOutput && e.Text == text
	})
}

func outputEvents(t *testing.T, k Kind) {
	if !hasProcesses(t, k) {
		return
	}
	r := start(t, k, supervisor.WithName("ada"))
	c := r.child(t, r.id)
	call[any](t, r, r.id, "Print", "to stdout\nsecond", "to stderr\n")
	for text, stream := range map[string]int64{"to stdout": 1, "to stderr": 2} {
		e := r.line(t, text)
		require.Equal(t, stream, e.N, "stream of %q", text)
		require.Equal(t, c.ProcID, e.ProcID)
		require.Equal(t, "ada", e.Name)
		require.Equal(t, c.Pid, e.Pid)
		require.Equal(t, c.Incarnation, e.Incarnation)
	}
	call[any](t, r, r.id, "Print", " part\n", "")
	r.line(t, "second part")
	call[any](t, r, r.id, "Print", "", "no end")
	require.NoError(t, r.sup.Shutdown(r.ctx))
	r.line(t, "no end")
	r.fineRequestsAfterOutput(t)
}

// fineRequestsAfterOutput checks that what is printed has nothing to do with requests.
func (r *rig) fineRequestsAfterOutput(t *testing.T) {
	t.Helper()
	r.startLink(t)
	for range 20 {
		r.send(t, r.id, "Print", strings.Repeat("x", 5000)+"\n", "\x00\x01\x02\n")
	}
	r.fine(t, r.id)
	for _, e := range r.events.All() {
		require.NotContains(t, e.Text, "\x01", "control characters of a line")
	}
}

func outputTail(t *testing.T, k Kind) {
	if !hasProcesses(t, k) {
		return
	}
	r := start(t, k, supervisor.Limits{Tail: 64})
	call[any](t, r, r.id, "Print", "", strings.Repeat("early\n", 100)+"last words\n")
	r.line(t, "last words")
	_, err := supervisor.Call[any](r.ctx, r.sup, r.id, "Exit", 3)
	exit := exitError(t, err)
	require.Contains(t, exit.Tail, "last words")
	require.LessOrEqual(t, len(exit.Tail), 65, "length of the tail")
	require.ErrorContains(t, err, "last words")
}

func outputCut(t *testing.T, k Kind) {
	if !hasProcesses(t, k) {
		return
	}
	r := start(t, k, supervisor.Limits{Line: 10})
	call[any](t, r, r.id, "Print", "0123456789abcdef\nshort\n", "")
	r.line(t, "0123456789")
	r.line(t, "short")
}

func outputWriters(t *testing.T, k Kind) {
	if !hasProcesses(t, k) {
		return
	}
	var stdout, stderr lockedBuffer
	r := start(t, k, supervisor.Proc{Stdout: &stdout, Stderr: &stderr})
	call[any](t, r, r.id, "Print", "raw\x01 text", "other")
	require.NoError(t, r.sup.Shutdown(r.ctx))
	require.Equal(t, "raw\x01 text", stdout.String(), "stdout, as it was written")
	require.Equal(t, "other", stderr.String())
	require.NotContains(t, r.events.Kinds(), supervisor.EventOutput)
}

// lockedBuffer is a buffer for two goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
