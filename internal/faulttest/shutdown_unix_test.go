//go:build linux || darwin

package faulttest_test

// Workers that do not want to end.

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
	"github.com/workerlink/supervisor/internal/wire"
)

func init() {
	// It notes in the ledger what it is told, and when, and does nothing about it.
	rawPart("deaf to its end", func(w *rawWorker) {
		ledger := testkit.Ledger{Path: w.args[0]}
		note := func(what string) {
			if err := ledger.Enter(what + " " + strconv.FormatInt(time.Now().UnixNano(), 10)); err != nil {
				os.Exit(1)
			}
		}
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM)
		w.ready()
		frames := make(chan wire.Kind)
		go func() {
			for {
				h, _, err := w.in.Next()
				if err != nil {
					return
				}
				frames <- h.Kind
			}
		}()
		for {
			select {
			case kind := <-frames:
				note(kind.String())
			case s := <-signals:
				note(s.String())
			}
		}
	})
}

// dervish is the object of workers that are too busy to end.
type dervish struct{ gate string }

var newDervish = supervisor.DefineWith("faulttest.dervish", func(_ context.Context, gate string) (dervish, error) {
	return dervish{gate}, nil
})

// Whirl tells the gate that it begins, and takes all of a processor from then on.
func (d dervish) Whirl() (n int, err error) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	if _, err := childtest.WaitAt(context.Background(), d.gate, "whirl"); err != nil {
		return 0, err
	}
	for n >= 0 {
		n = (n + 1) & 0xffff
	}
	return n, nil
}

// notes reads the ledger of a deaf worker: what it was told, in order, and when.
func notes(t testing.TB, l testkit.Ledger) (told []string, at []time.Time) {
	t.Helper()
	text, err := os.ReadFile(l.Path)
	require.NoError(t, err, "read the ledger")
	for line := range strings.Lines(string(text)) {
		i := strings.LastIndexByte(line, ' ')
		ns, err := strconv.ParseInt(strings.TrimSpace(line[i:]), 10, 64)
		require.NoError(t, err, "a line of the ledger: %q", line)
		told, at = append(told, line[:i]), append(at, time.Unix(0, ns))
	}
	return told, at
}

// The steps to the end of a worker that heeds none of them: the stop message, after the grace SIGTERM, after its grace
// SIGKILL.
func TestX05WorkerThatDoesNotEnd(t *testing.T) {
	const grace, termGrace = 200 * time.Millisecond, 400 * time.Millisecond * testkit.Slowdown
	stop := supervisor.Stop{Grace: grace, TermGrace: termGrace}
	end := func(t *testing.T, sup *supervisor.Supervisor, seen *testkit.Recorder[supervisor.Event, supervisor.EventKind], id int) {
		pid := seen.Wait(t, supervisor.EventStarted).Pid // a snapshot would ask the worker
		began := time.Now()
		require.NoError(t, sup.Shutdown(context.Background()), "Shutdown: a process can always be ended")
		shutdownTook(t, time.Since(began), grace+termGrace)
		require.NotContains(t, testkit.Children(), pid, "processes")
		var ends []supervisor.Event
		for _, e := range seen.All() {
			if e.ProcID == id && e.Kind != supervisor.EventStarted && e.Kind != supervisor.EventOutput {
				ends = append(ends, e)
			}
		}
		require.Len(t, ends, 1, "events of the end")
		require.Equal(t, supervisor.EventStopped, ends[0].Kind, "the event")
		var exit *supervisor.ExitError
		require.ErrorAs(t, ends[0].Err, &exit, "how it ended")
		require.Equal(t, pid, exit.Pid, "its process")
		require.Equal(t, syscall.SIGKILL, exit.Signal, "what ended it")
		require.NotEmpty(t, exit.KilledBy, "it was us")
		require.NoError(t, sup.Shutdown(context.Background()), "Shutdown again")
	}
	begin := func(t *testing.T) (*supervisor.Supervisor, *testkit.Recorder[supervisor.Event, supervisor.EventKind]) {
		testkit.NoLeaks(t)
		seen := testkit.NewRecorder(func(e supervisor.Event) supervisor.EventKind { return e.Kind })
		return newSupervisor(t, supervisor.Process, supervisor.WithEvents(seen.Record)), seen
	}
	t.Run("busy and deaf to signals", func(t *testing.T) {
		sup, seen := begin(t)
		gate := childtest.NewGate(t)
		id := register(t, sup, newDervish.With(gate.Address), stop)
		require.NoError(t, sup.StartLink(context.Background()), "StartLink")
		reqs := send(t, sup, supervisor.NewSendPayload(id, "Whirl"), supervisor.NewSendPayload(id, "Whirl"))
		gate.Next(t).Release(t, "")
		end(t, sup, seen, id)
		got, err := sup.RecvAll(testkit.Context(t), reqs, supervisor.IgnoreErr())
		require.NoError(t, err, "RecvAll")
		for _, p := range got {
			require.ErrorIs(t, p.Err, supervisor.ErrClosed, "verdict")
		}
	})
	t.Run("C93", func(t *testing.T) { // what it is told, from its own side
		sup, seen := begin(t)
		ledger := testkit.NewLedger(t)
		id := register(t, sup, newRaw.With(0), rawProgram(t, "deaf to its end", ledger.Path), stop)
		require.NoError(t, sup.StartLink(context.Background()), "StartLink")
		end(t, sup, seen, id)
		told, _ := notes(t, ledger)
		require.Equal(t, []string{wire.KindStop.String(), syscall.SIGTERM.String()}, slices.Compact(told), "what the worker was told before it was killed")
	})
}
