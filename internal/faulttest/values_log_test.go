package faulttest_test

// What gets into a log: nothing that passes for somebody else's record, and nothing that is nobody's business.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// logLiar is the object of workers that say evil things, and know a secret.
type logLiar struct{ secret string }

// newLogLiar makes one that knows a secret. It refuses the secret "none".
var newLogLiar = supervisor.DefineWith("faulttest.logLiar", func(_ context.Context, secret string) (*logLiar, error) {
	if secret == "none" {
		return nil, errors.New(logEvil)
	}
	return &logLiar{secret}, nil
})

func (*logLiar) Say(text string)                    { logPrint(text) }
func (*logLiar) Fail(text string) error             { return errors.New(text) }
func (*logLiar) Panic(text string)                  { panic(text) }
func (*logLiar) Number(n uint8) uint8               { return n }
func (*logLiar) Secret(any) string                  { return "fine" }
func (l *logLiar) Tell(by map[string]string) string { return l.secret + by["token"] }
func (*logLiar) Options(o logOptions) string        { return o.Token }
func (*logLiar) Wait(ctx context.Context, _ string) { <-ctx.Done() }
func (*logLiar) Crash(text string)                  { logCrash(text) }

// logOptions are filled by keywords.
type logOptions struct{ Token string }

// logPrint prints on both streams.
func logPrint(text string) { (&childtest.Worker{}).Print(text+"\n", text+"\n") }

// logCrash ends the process.
func logCrash(text string) { (&childtest.Worker{}).Crash(text) }

// logEvil is what a worker would write to look like the host.
const logEvil = "first\n" +
	`{"level":"error","logger":"supervisor","msg":"shutdown","child":7}` + "\n" +
	"2026-01-01T00:00:00Z\tERROR\tsupervisor\tforged\r" +
	"level=ERROR msg=forged\n\x1b[2J\x1b[31mred\x00\u2028\u202eforged\x85\x9b\n"

// logBuffer is a log of several goroutines.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// Sync is for zap.
func (*logBuffer) Sync() error { return nil }

func (b *logBuffer) lines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Split(strings.TrimSuffix(b.b.String(), "\n"), "\n")
}

// logs are the same events in the forms that logs have.
type logs struct {
	json, console, text logBuffer
	events              *testkit.Recorder[supervisor.Event, supervisor.EventKind]
}

func newLogs() *logs {
	return &logs{events: testkit.NewRecorder(func(e supervisor.Event) supervisor.EventKind { return e.Kind })}
}

func (l *logs) options() []supervisor.Option {
	config := zap.NewProductionEncoderConfig()
	return []supervisor.Option{
		supervisor.WithEvents(l.events.Record),
		supervisor.WithLogger(zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(config), &l.json, zap.DebugLevel))),
		supervisor.WithLogger(zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(config), &l.console, zap.DebugLevel))),
		supervisor.WithSlog(slog.New(slog.NewTextHandler(&l.text, &slog.HandlerOptions{Level: slog.LevelDebug}))),
	}
}

// all returns the lines of all forms.
func (l *logs) all() map[string][]string {
	return map[string][]string{"JSON": l.json.lines(), "console": l.console.lines(), "text": l.text.lines()}
}

func TestZ08LogInjection(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		l := newLogs()
		sup := newSupervisor(t, k.Type, l.options()...)
		id := register(t, sup, newLogLiar.With(""), supervisor.WithName("liar\nlevel=ERROR"), supervisor.Restart{Type: supervisor.Temporary})
		ctx := testkit.Context(t)
		require.NoError(t, sup.StartLink(ctx), "StartLink")
		calls := []string{"Fail", "Panic"}
		if k.Can.Process { // a goroutine child prints where the host does, and crashes with it
			calls = append(calls, "Say", "Crash")
		}
		for _, method := range calls {
			_, err := supervisor.Call[any](ctx, sup, id, method, logEvil)
			require.Equal(t, method != "Say", err != nil, "error of %s: %v", method, err)
		}
		_, err := sup.Register(ctx, newLogLiar.With("none"))
		require.Error(t, err, "Register of one that does not start")
		shutdown(t, sup)
		l.events.Wait(t, supervisor.EventShutdown)
		events := l.events.All()
		testkit.Until(t, "everything is logged", func() bool { return len(l.text.lines()) >= len(events) })
		for form, lines := range l.all() {
			require.Len(t, lines, len(events), "lines of %s, one for each event", form)
			for _, line := range lines {
				require.NotRegexp(t, `[\x00-\x08\x0b-\x1f\x7f\x{80}-\x{9f}\x{2028}\x{2029}\x{202a}-\x{202e}]`, line, "a line of %s", form)
			}
		}
		for i, line := range l.json.lines() {
			var record struct{ Level, Logger, Msg string }
			require.NoError(t, json.Unmarshal([]byte(line), &record), "the record %s", line)
			require.Equal(t, "supervisor", record.Logger, "logger of %s", line)
			require.Equal(t, events[i].Kind.String(), record.Msg, "message of %s", line)
			if events[i].Kind == supervisor.EventOutput {
				require.Equal(t, "info", record.Level, "level of %s", line)
			}
		}
	})
}

// What callers hand over and what workers are given stays out of the log, whatever goes wrong with it.
func TestZ09SecretsInLogs(t *testing.T) {
	const token, number = "hunter2-0451", 987654321
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		l := newLogs()
		sup := newSupervisor(t, k.Type, l.options()...)
		opts := []supervisor.ChildOption{supervisor.WithName("keeper")}
		if k.Can.Process {
			opts = append(opts, supervisor.Proc{Env: []string{"TOKEN=" + token}})
		}
		id := register(t, sup, newLogLiar.With(token), opts...)
		ctx := testkit.Context(t)
		require.NoError(t, sup.StartLink(ctx), "StartLink")
		got, err := supervisor.Call[string](ctx, sup, id, "Tell", map[string]string{"token": token})
		require.NoError(t, err, "Tell")
		require.Equal(t, token+token, got, "the worker does know the secret")
		late := supervisor.NewSendPayload(id, "Wait", token)
		late.Timeout = 20 * time.Millisecond
		for _, p := range []supervisor.SendPayload{
			{ProcID: id, Method: "Options", Kwargs: map[string]any{"Token": token}},
			{ProcID: id, Method: "Options", Kwargs: map[string]any{"Tokens": token}},
			{ProcID: id, Method: "Number", Args: []any{number}},
			{ProcID: id, Method: "Number", Args: []any{token}},
			{ProcID: id, Method: "Nope", Args: []any{token}},
			{ProcID: id, Method: "Secret", Args: []any{struct{ a string }{token}}},
			{ProcID: id, Method: "Secret", Args: []any{map[string]any{"token": token, "bad": make(chan int)}}},
			late,
		} {
			_, _ = sup.Do(ctx, p) // whatever the verdict is, it is the caller's
		}
		if k.Can.Process {
			before := sup.Snapshot().Children[id].Incarnation
			childtest.KillProcess(t, sup, id)
			testkit.Until(t, "the next life", func() bool {
				c := sup.Snapshot().Children[id]
				return c.Incarnation > before && c.State == supervisor.StateUp
			})
			_, err := supervisor.Call[any](ctx, sup, id, "Crash", "no secret")
			require.Error(t, err, "a crash, whose trace is kept")
		}
		shown, err := json.Marshal(sup.Snapshot())
		require.NoError(t, err, "the snapshot as JSON")
		require.NotContains(t, string(shown), token, "the snapshot")
		shutdown(t, sup)
		l.events.Wait(t, supervisor.EventShutdown)
		events := len(l.events.All())
		testkit.Until(t, "everything is logged", func() bool { return len(l.text.lines()) >= events })
		for form, lines := range l.all() {
			for _, line := range lines {
				require.NotContains(t, line, token, "a line of %s", form)
				require.NotContains(t, line, "987654321", "a line of %s", form)
			}
		}
	})
}
