package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// server is an object with a loop of its own.
type server struct{ job serverJob }

// serverJob says how a server's Serve ends, and where it is to be seen. It is told at the gate when Serve may go on.
type serverJob struct{ How, Gate, Ledger string }

var errServer = errors.New("server: enough")

func init() { supervisor.RegisterError("supervisor_test.errServer", errServer) }

var newServer = supervisor.DefineWith("supervisor_test.server", func(_ context.Context, job serverJob) (*server, error) {
	return &server{job}, nil
})

func (s *server) note(what string) error {
	if s.job.Ledger == "" {
		return nil
	}
	return testkit.Ledger{Path: s.job.Ledger}.Enter(what)
}

// Serve is the loop.
func (s *server) Serve(ctx context.Context) error {
	if s.job.How == "until told" {
		<-ctx.Done()
		if err := s.note("serve"); err != nil {
			return err
		}
		return ctx.Err()
	}
	if _, err := childtest.WaitAt(context.Background(), s.job.Gate, "serve"); err != nil {
		return err
	}
	switch s.job.How {
	case "error":
		return fmt.Errorf("outer: %w", errServer)
	case "fatal":
		return supervisor.Fatal(errServer)
	case "panic":
		panic(errServer)
	case "exit":
		runtime.Goexit()
	case "foreign":
		foreign, cancel := context.WithCancel(context.Background())
		cancel()
		return fmt.Errorf("upstream: %w", foreign.Err())
	}
	return nil
}

// Hold waits at the gate and says in the ledger that it was let go.
func (s *server) Hold(name string) (string, error) {
	answer, err := childtest.WaitAt(context.Background(), s.job.Gate, name)
	return answer, errors.Join(err, s.note("request"))
}

// Note says in the ledger that it ran.
func (s *server) Note() error { return s.note("request") }

// Close is the hook.
func (s *server) Close() error { return s.note("close") }

// Who returns what Serve would know of itself.
func (s *server) Who(ctx context.Context) uint64 {
	info, _ := supervisor.Self(ctx)
	return info.Incarnation
}

func TestServeReturns(t *testing.T) {
	for _, tt := range []struct {
		how   string
		again bool // under Transient
		is    func(t *testing.T, err error)
	}{
		{"nil", false, nil},
		{"error", true, func(t *testing.T, err error) { require.ErrorIs(t, err, errServer) }},
		{"fatal", true, func(t *testing.T, err error) { require.ErrorIs(t, err, errServer) }},
		{"panic", true, func(t *testing.T, err error) {
			require.ErrorIs(t, err, errServer)
			var p *supervisor.PanicError
			require.ErrorAs(t, err, &p)
			require.Contains(t, p.Stack, "(*server).Serve", "its stack")
		}},
		{"exit", true, func(t *testing.T, err error) {
			var p *supervisor.PanicError
			require.ErrorAs(t, err, &p)
			require.Contains(t, p.Value, "Goexit", "its value")
		}},
		{"foreign", true, func(t *testing.T, err error) { require.ErrorIs(t, err, context.Canceled) }}, // C104
	} {
		t.Run(tt.how, func(t *testing.T) {
			eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
				gate, seen, ledger := childtest.NewGate(t), newRecorder(), testkit.NewLedger(t)
				sup := newSupervisor(t, kind, supervisor.WithEvents(seen.Record))
				register(t, sup, newServer.With(serverJob{tt.how, gate.Address, ledger.Path}), supervisor.Restart{Type: supervisor.Transient})
				require.NoError(t, sup.StartLink(context.Background()), "StartLink does not wait for Serve")
				life := lives(sup)[0]
				gate.Next(t).Release(t, "")
				exited := seen.Wait(t, supervisor.EventExited)
				require.Equal(t, life, exited.Incarnation, "the life that ended")
				if !tt.again {
					require.NoError(t, exited.Err, "how it ended")
					require.NoError(t, seen.Wait(t, supervisor.EventDone).Err, "error of the end")
					_, err := supervisor.Call[any](testkit.Context(t), sup, 0, "Note")
					require.ErrorIs(t, err, supervisor.ErrClosed, "a Call afterwards")
					require.ErrorContains(t, err, "ended", "a Call afterwards")
				} else {
					var exit *supervisor.ExitError
					require.ErrorAs(t, exited.Err, &exit, "how it ended")
					tt.is(t, exited.Err)
					require.ErrorContains(t, exited.Err, "Serve", "where it came from")
					v := gate.Next(t) // the next life serves
					after, err := supervisor.Call[uint64](testkit.Context(t), sup, 0, "Who")
					require.NoError(t, err, "Call of the next life")
					require.Greater(t, after, life, "its number")
					require.Equal(t, 1, sup.Snapshot().Children[0].Restarts, "restarts")
					v.Release(t, "") // else it would outlast the end
					seen.Wait(t, supervisor.EventExited)
				}
				require.NoError(t, sup.Close(), "Close")
				require.Positive(t, ledger.Counts(t)["close"], "calls of Close: it runs also when Serve has returned by itself")
			})
		})
	}
}

// The order of an orderly end: what was accepted, then the loop, then Close. The loop's own context error is no failure then.
func TestServeIsStoppedBetweenRequestsAndClose(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		gate, seen, ledger := childtest.NewGate(t), newRecorder(), testkit.NewLedger(t)
		sup := newSupervisor(t, kind, supervisor.WithEvents(seen.Record))
		register(t, sup, newServer.With(serverJob{"until told", gate.Address, ledger.Path}))
		require.NoError(t, sup.StartLink(context.Background()), "StartLink")
		reqs := send(t, sup, supervisor.NewSendPayload(0, "Hold", "one"), supervisor.NewSendPayload(0, "Note"))
		v := gate.Next(t)
		done := make(chan error, 1)
		go func() { done <- sup.Shutdown(context.Background()) }()
		testkit.Until(t, "the child takes no more", func() bool {
			return errors.Is(sup.TrySend(supervisor.NewSendPayload(0, "Note")), supervisor.ErrClosed)
		})
		require.Empty(t, ledger.Counts(t), "what ran while a request holds up the end")
		v.Release(t, "held")
		require.NoError(t, testkit.Receive(t, done, "Shutdown"), "Shutdown")
		text, err := os.ReadFile(ledger.Path)
		require.NoError(t, err, "read the ledger")
		lines := strings.Fields(string(text))
		extra := len(lines) - 4 // requests that were accepted while the test found out
		require.GreaterOrEqual(t, extra, 0, "what ran: %v", lines)
		require.Equal(t, []string{"request", "request", "serve", "close"}, lines[extra:], "what ran, in order")
		got, err := sup.RecvAll(testkit.Context(t), reqs)
		require.NoError(t, err, "RecvAll")
		require.Equal(t, "held", got[0].Data, "reply of the request that held up the end")
		stopped := seen.Wait(t, supervisor.EventStopped)
		require.NoError(t, stopped.Err, "how the life ended")
		require.NotContains(t, seen.Kinds(), supervisor.EventExited, "events")
	})
}

// A loop that ignores its context: a goroutine can only be left behind and named, a process is killed.
func TestServeThatIgnoresItsContext(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		gate, seen := childtest.NewGate(t), newRecorder()
		sup := newSupervisor(t, kind, supervisor.WithEvents(seen.Record))
		register(t, sup, newServer.With(serverJob{How: "nil", Gate: gate.Address}), supervisor.WithName("deaf"),
			supervisor.Stop{Grace: 50 * time.Millisecond, TermGrace: 50 * time.Millisecond})
		require.NoError(t, sup.StartLink(context.Background()), "StartLink")
		v := gate.Next(t)
		err := sup.Shutdown(context.Background())
		if kind == supervisor.Process {
			require.NoError(t, err, "Shutdown")
			stopped := seen.Wait(t, supervisor.EventStopped)
			var exit *supervisor.ExitError
			require.ErrorAs(t, stopped.Err, &exit, "how the life ended")
			require.NotEmpty(t, exit.KilledBy, "that it was killed")
			v.Gone(t)
			return
		}
		var stuck *supervisor.StuckError
		require.ErrorAs(t, err, &stuck, "Shutdown")
		require.Equal(t, []any{0, "deaf", "Serve", false}, []any{stuck.ProcID, stuck.Name, stuck.Method, stuck.Killed}, "what is stuck")
		require.Contains(t, stuck.Stack, "(*server).Serve", "its stack")
		require.Equal(t, 1, sup.Snapshot().Children[0].Stuck, "lives that are stuck")
		v.Release(t, "")
		testkit.Until(t, "nothing is stuck any more", func() bool { return sup.Snapshot().Children[0].Stuck == 0 })
	})
}

// A loop alone is a child.
func TestServeFunc(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		seen := &events{}
		sup := newSupervisor(t, supervisor.Goroutine, supervisor.WithEvents(seen.take))
		var began []time.Time
		var who []supervisor.Info
		loop := supervisor.ServeFunc(func(ctx context.Context) error {
			info, _ := supervisor.Self(ctx)
			who, began = append(who, info), append(began, time.Now())
			if len(began) == 3 {
				<-ctx.Done()
				return nil
			}
			<-time.After(time.Second)
			return errServer
		})
		register(t, sup, supervisor.Object(loop), supervisor.WithName("loop"))
		require.NoError(t, sup.StartLink(context.Background()), "StartLink")
		<-time.After(time.Minute)
		synctest.Wait()
		require.Len(t, began, 3, "runs")
		require.Equal(t, time.Second, began[1].Sub(began[0]), "time of the second run: at once")
		require.Greater(t, began[2].Sub(began[1]), time.Second, "time of the third run: after a delay")
		for i, e := range seen.of(supervisor.EventStarted) {
			require.Equal(t, []any{0, "loop", e.Incarnation}, []any{who[i].ProcID, who[i].Name, who[i].Incarnation}, "what run %d knows of itself", i)
		}
		_, err := supervisor.Call[any](t.Context(), sup, 0, "Serve")
		require.ErrorIs(t, err, supervisor.ErrNoSuchMethod, "Serve is a hook, not a method")
		began2 := time.Now()
		shutdown(t, sup)
		require.Zero(t, time.Since(began2), "time of Shutdown")
		synctest.Wait()
		require.Equal(t, []string{"started", "exited", "restarting", "started", "exited", "restarting", "started", "stopped", "shutdown"},
			seen.kinds(), "events")
	})
}

// A function cannot be sent to another process.
func TestServeFuncOfAProcess(t *testing.T) {
	sup := newSupervisor(t, supervisor.Process)
	_, err := sup.Register(t.Context(), supervisor.Object(supervisor.ServeFunc(func(context.Context) error { return nil })))
	require.Error(t, err, "Register")
	require.Empty(t, sup.Snapshot().Children, "children")
}
