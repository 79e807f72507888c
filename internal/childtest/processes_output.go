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
func (r *Rig) line(t *testing.T, text string) supervisor.Event {
	t.Helper()
	return r.Events.WaitFor(t, "line "+text, func(e supervisor.Event) bool {
		return e.Kind == supervisor.EventOutput && e.Text == text
	})
}

func outputEvents(t *testing.T, k Kind) {
	if !hasProcesses(t, k) {
		return
	}
	r := Start(t, k, supervisor.WithName("ada"))
	c := r.Child(t, r.ID)
	CallOf[any](t, r, r.ID, "Print", "to stdout\nsecond", "to stderr\n")
	for text, stream := range map[string]int64{"to stdout": 1, "to stderr": 2} {
		e := r.line(t, text)
		require.Equal(t, stream, e.N, "stream of %q", text)
		require.Equal(t, c.ProcID, e.ProcID)
		require.Equal(t, "ada", e.Name)
		require.Equal(t, c.Pid, e.Pid)
		require.Equal(t, c.Incarnation, e.Incarnation)
	}
	CallOf[any](t, r, r.ID, "Print", " part\n", "")
	r.line(t, "second part")
	CallOf[any](t, r, r.ID, "Print", "", "no end")
	require.NoError(t, r.Sup.Shutdown(r.Ctx))
	r.line(t, "no end")
	r.fineRequestsAfterOutput(t)
}

// fineRequestsAfterOutput checks that what is printed has nothing to do with requests.
func (r *Rig) fineRequestsAfterOutput(t *testing.T) {
	t.Helper()
	r.StartLink(t)
	for range 20 {
		r.Send(t, r.ID, "Print", strings.Repeat("x", 5000)+"\n", "\x00\x01\x02\n")
	}
	r.Fine(t, r.ID)
	for _, e := range r.Events.All() {
		require.NotContains(t, e.Text, "\x01", "control characters of a line")
	}
}

func outputTail(t *testing.T, k Kind) {
	if !hasProcesses(t, k) {
		return
	}
	r := Start(t, k, supervisor.Limits{Tail: 64})
	CallOf[any](t, r, r.ID, "Print", "", strings.Repeat("early\n", 100)+"last words\n")
	r.line(t, "last words")
	_, err := supervisor.Call[any](r.Ctx, r.Sup, r.ID, "Exit", 3)
	exit := exitError(t, err)
	require.Contains(t, exit.Tail, "last words")
	require.LessOrEqual(t, len(exit.Tail), 65, "length of the tail")
	require.ErrorContains(t, err, "last words")
}

func outputCut(t *testing.T, k Kind) {
	if !hasProcesses(t, k) {
		return
	}
	r := Start(t, k, supervisor.Limits{Line: 10})
	CallOf[any](t, r, r.ID, "Print", "0123456789abcdef\nshort\n", "")
	r.line(t, "0123456789")
	r.line(t, "short")
}

func outputWriters(t *testing.T, k Kind) {
	if !hasProcesses(t, k) {
		return
	}
	var stdout, stderr lockedBuffer
	r := Start(t, k, supervisor.Proc{Stdout: &stdout, Stderr: &stderr})
	CallOf[any](t, r, r.ID, "Print", "raw\x01 text", "other")
	require.NoError(t, r.Sup.Shutdown(r.Ctx))
	require.Equal(t, "raw\x01 text", stdout.String(), "stdout, as it was written")
	require.Equal(t, "other", stderr.String())
	require.NotContains(t, r.Events.Kinds(), supervisor.EventOutput)
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
