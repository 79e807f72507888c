//go:build linux || darwin

package faulttest_test

// What workers print is text for the log, whatever it looks like, and nothing else.

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// Frames are not on the standard output, and need not be: a worker prints before the handshake and in its handlers, by all
// ways and even what looks like a frame, and every call is answered as ever.
func TestF21PrintingWorkers(t *testing.T) {
	k := valuesProcesses(t)
	seen := testkit.NewRecorder(func(e supervisor.Event) supervisor.EventKind { return e.Kind })
	sup := newSupervisor(t, k.Type, supervisor.WithEvents(seen.Record))
	quiet := register(t, sup, newValues.With(""))
	loud := register(t, sup, newValues.With(""), valuesOdd("print"), supervisor.WithName("loud"))
	require.NoError(t, sup.StartLink(testkit.Context(t)), "StartLink")
	texts := []string{"a line", string(rawReply(1, rawInt(2))), "\x01\x00\x00\x00", "GET / HTTP/1.1"}
	for i, text := range texts {
		_, err := supervisor.Call[any](testkit.Context(t), sup, loud, "Print", text)
		require.NoError(t, err, "Print(%q)", text)
		n, err := supervisor.Call[int](testkit.Context(t), sup, loud, "Int", i)
		require.NoError(t, err, "the call after Print(%q)", text)
		require.Equal(t, i, n, "its result")
	}
	shutdown(t, sup)
	var lines []string
	for _, e := range seen.All() {
		if e.Kind != supervisor.EventOutput {
			continue
		}
		require.Equal(t, loud, e.ProcID, "child of the line %q; the other, %d, printed nothing", e.Text, quiet)
		require.Equal(t, "loud", e.Name, "name of the child of the line %q", e.Text)
		require.NotZero(t, e.Pid, "process of the line %q", e.Text)
		require.Equal(t, int64(1), e.N, "stream of the line %q", e.Text)
		lines = append(lines, e.Text)
	}
	require.Equal(t, "printed by init", lines[0], "the first line, from before the handshake")
	require.Len(t, lines, 1+3*len(texts), "lines in all: %q", lines)
	for _, way := range []string{"fmt", "os", "descriptor"} {
		require.Contains(t, lines, way+": a line", "printed by way of %s", way)
		require.Contains(t, lines, way+`: \x01\x00\x00\x00`, "printed by way of %s", way)
	}
}

// valuesFlood calls Flood and returns how long it took.
func valuesFlood(t *testing.T, sup *supervisor.Supervisor, lines int) time.Duration {
	t.Helper()
	start := time.Now()
	testkit.Within(t, 5*time.Second, func() {
		_, err := supervisor.Call[any](testkit.Context(t), sup, valuesMain, "Flood", lines)
		require.NoError(t, err, "Flood(%d)", lines)
	})
	return time.Since(start)
}

func TestF22FloodOfOutput(t *testing.T) {
	k := valuesProcesses(t)
	lines := times(5_000, 100_000) // of a kilobyte
	t.Run("nobody takes the events", func(t *testing.T) {
		open, blocked := make(chan struct{}), make(chan struct{})
		var once sync.Once
		seen := testkit.NewRecorder(func(e supervisor.Event) supervisor.EventKind { return e.Kind })
		sup := newSupervisor(t, k.Type, supervisor.WithEvents(func(e supervisor.Event) {
			once.Do(func() { close(blocked) })
			<-open
			seen.Record(e)
		}))
		register(t, sup, newValues.With(""))
		require.NoError(t, sup.StartLink(testkit.Context(t)), "StartLink")
		testkit.Closed(t, blocked, "the first event")
		valuesFlood(t, sup, lines)
		close(open)
		shutdown(t, sup)
		dropped, kept := int64(0), 0
		for _, e := range seen.All() {
			switch e.Kind {
			case supervisor.EventDropped:
				dropped += e.N
			case supervisor.EventOutput:
				kept++
			}
		}
		require.Positive(t, dropped, "lines that were dropped")
		require.Equal(t, lines, kept+int(dropped), "lines that came or were counted")
	})
	t.Run("a slow writer", func(t *testing.T) {
		slow := &valuesSlow{pace: time.NewTicker(time.Millisecond)}
		defer slow.pace.Stop()
		sup := started(t, k.Type, newValues.With(""), supervisor.Proc{Stderr: slow})
		few := min(lines, 10_000)
		valuesFlood(t, sup, few)
		shutdown(t, sup)
		require.Equal(t, few<<10, slow.bytes, "bytes that came")
	})
	t.Run("a writer that blocks", func(t *testing.T) {
		stuck := &valuesStuck{open: make(chan struct{}), blocked: make(chan struct{})}
		sup := newSupervisor(t, k.Type)
		register(t, sup, newValues.With(""), supervisor.Proc{Stderr: stuck}, supervisor.Stop{Grace: -1, TermGrace: -1})
		register(t, sup, newValues.With(""))
		require.NoError(t, sup.StartLink(testkit.Context(t)), "StartLink")
		p := supervisor.NewSendPayload(valuesMain, "Flood", lines)
		p.Timeout = 100 * time.Millisecond
		testkit.Within(t, valuesPrompt, func() {
			_, err := sup.Do(testkit.Context(t), p)
			require.ErrorIs(t, err, supervisor.ErrTimeout, "a flood that has nowhere to go")
			n, err := supervisor.Call[int](testkit.Context(t), sup, valuesSibling, "Int", 5)
			require.NoError(t, err, "the sibling")
			require.Equal(t, 5, n, "its result")
			testkit.Closed(t, stuck.blocked, "a write that blocks")
			require.NoError(t, sup.Close(), "Close")
		})
		close(stuck.open) // the goroutine that was left behind ends
	})
}

// valuesSlow takes its time for each write.
type valuesSlow struct {
	pace  *time.Ticker
	bytes int // of one goroutine, until the supervisor has shut down
}

func (w *valuesSlow) Write(b []byte) (int, error) {
	<-w.pace.C
	w.bytes += len(b)
	return len(b), nil
}

// valuesStuck takes nothing until it is opened.
type valuesStuck struct {
	open, blocked chan struct{}
	once          sync.Once
}

func (w *valuesStuck) Write(b []byte) (int, error) {
	w.once.Do(func() { close(w.blocked) })
	<-w.open
	return len(b), nil
}
