package supervisor

// Entries are tested kind by kind, which no supervisor can be made to do from outside.

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
	"go.uber.org/zap/zaptest/observer"

	"github.com/workerlink/supervisor/internal/proc"
)

func logCases() []struct {
	name   string
	event  Event
	level  zapcore.Level
	fields map[string]any
} {
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	why := errors.New("why")
	child := func(kind EventKind, more Event) Event {
		more.Kind, more.Time, more.ProcID, more.Name, more.Incarnation = kind, at, 3, "c", 9
		return more
	}
	with := func(more map[string]any) map[string]any {
		all := map[string]any{"child": int64(3), "name": "c", "incarnation": uint64(9)}
		for k, v := range more {
			all[k] = v
		}
		return all
	}
	failed := map[string]any{"error": "why"}
	return []struct {
		name   string
		event  Event
		level  zapcore.Level
		fields map[string]any
	}{
		{"started", child(EventStarted, Event{Pid: 77}), zapcore.InfoLevel, with(map[string]any{"pid": int64(77)})},
		{"start failed", child(EventStartFailed, Event{Err: why}), zapcore.WarnLevel, with(failed)},
		{"exited", child(EventExited, Event{Err: why}), zapcore.WarnLevel, with(failed)},
		{"stopped", child(EventStopped, Event{}), zapcore.InfoLevel, with(nil)},
		{
			"restarting", child(EventRestarting, Event{N: int64(1500 * time.Millisecond)}), zapcore.InfoLevel,
			with(map[string]any{"delay": 1500 * time.Millisecond}),
		},
		{"given up", child(EventGivenUp, Event{Err: why}), zapcore.ErrorLevel, with(failed)},
		{"stuck", child(EventStuck, Event{Err: why}), zapcore.ErrorLevel, with(failed)},
		{
			"output of stdout", child(EventOutput, Event{Text: "hello", N: 1}), zapcore.InfoLevel,
			with(map[string]any{"stream": "stdout", "line": "hello"}),
		},
		{
			"output of stderr", child(EventOutput, Event{Text: "oh", N: 2}), zapcore.InfoLevel,
			with(map[string]any{"stream": "stderr", "line": "oh"}),
		},
		{"panic", child(EventPanic, Event{Err: why, Text: "Method"}), zapcore.WarnLevel, with(map[string]any{"error": "why", "method": "Method"})},
		{"late reply", child(EventLateReply, Event{N: 4, Text: "Method"}), zapcore.WarnLevel, with(map[string]any{"count": int64(4), "method": "Method"})},
		{"hung", child(EventHung, Event{Err: why, Text: "goroutine 1"}), zapcore.WarnLevel, with(map[string]any{"error": "why", "stacks": "goroutine 1\n"})},
		{"recycled", child(EventRecycled, Event{Text: "it is old"}), zapcore.InfoLevel, with(map[string]any{"text": "it is old"})},
		{"done", child(EventDone, Event{}), zapcore.InfoLevel, with(map[string]any{})},
		{"dropped", Event{Kind: EventDropped, Time: at, ProcID: -1, N: 5}, zapcore.WarnLevel, map[string]any{"count": int64(5)}},
		{"shutdown", Event{Kind: EventShutdown, Time: at, ProcID: -1}, zapcore.InfoLevel, map[string]any{}},
		{"shutdown with a cause", Event{Kind: EventShutdown, Time: at, ProcID: -1, Err: why}, zapcore.ErrorLevel, failed},
	}
}

func TestLogEntries(t *testing.T) {
	covered := make(map[EventKind]bool)
	for _, tt := range logCases() {
		covered[tt.event.Kind] = true
		t.Run(tt.name, func(t *testing.T) {
			core, logs := observer.New(zapcore.DebugLevel)
			logEvent(core, tt.event)
			require.Equal(t, 1, logs.Len(), "entries")
			entry := logs.All()[0]
			require.Equal(t, tt.level, entry.Level, "level")
			require.Equal(t, []any{"supervisor", tt.event.Kind.String(), tt.event.Time},
				[]any{entry.LoggerName, entry.Message, entry.Time}, "logger, message, time")
			require.Equal(t, tt.fields, entry.ContextMap(), "fields")
		})
		t.Run(tt.name+" by slog", func(t *testing.T) {
			var out bytes.Buffer
			handler := slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})
			logEvent(slogCore{handler: handler}, tt.event)
			var got map[string]any
			require.NoError(t, json.Unmarshal(out.Bytes(), &got), "the line %q", out.String())
			require.Equal(t, strings.ToUpper(tt.level.String()), got["level"], "level")
			require.Equal(t, "supervisor: "+tt.event.Kind.String(), got["msg"], "message")
			require.Equal(t, tt.event.Time.Format(time.RFC3339), got["time"], "time")
			for _, key := range []string{"level", "msg", "time"} {
				delete(got, key)
			}
			want, err := json.Marshal(tt.fields)
			require.NoError(t, err, "fields as JSON")
			have, err := json.Marshal(got)
			require.NoError(t, err, "attributes as JSON")
			require.JSONEq(t, string(want), string(have), "attributes")
		})
	}
	for k := EventStarted; k <= EventDone; k++ {
		require.True(t, covered[k], "a case for %v", k)
	}
}

func TestLogLevelsAreHeeded(t *testing.T) {
	core, logs := observer.New(zapcore.WarnLevel)
	var out bytes.Buffer
	quiet := slogCore{handler: slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelError})}
	for _, tt := range logCases() {
		logEvent(core, tt.event)
		logEvent(quiet, tt.event)
	}
	for _, entry := range logs.All() {
		require.GreaterOrEqual(t, entry.Level, zapcore.WarnLevel, "level of %q", entry.Message)
	}
	require.Equal(t, 9, logs.Len(), "entries from warning on")
	require.Equal(t, 3, strings.Count(out.String(), "\n"), "lines from error on: %s", out.String())
}

func TestSlogCoreIsAZapCore(t *testing.T) {
	var out bytes.Buffer
	core := slogCore{handler: slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})}
	logger := core.With([]zapcore.Field{zap.String("a", "1")})
	write := func(to zapcore.Core, e zapcore.Entry, fields ...zapcore.Field) {
		if ce := to.Check(e, nil); ce != nil {
			ce.Write(fields...)
		}
	}
	write(logger.With([]zapcore.Field{zap.Int("b", 2)}),
		zapcore.Entry{Level: zapcore.DebugLevel, LoggerName: "n", Message: "hello"}, zap.Bool("c", true))
	write(logger, zapcore.Entry{Level: zapcore.WarnLevel, LoggerName: "n", Message: "again"})
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 2, "lines")
	require.Contains(t, lines[0], `level=DEBUG msg="n: hello" a=1 b=2 c=true`, "a derived logger")
	require.Contains(t, lines[1], `level=WARN msg="n: again" a=1`, "the logger that it was derived from")
	require.NotContains(t, lines[1], "b=2", "the logger that it was derived from")
	require.NoError(t, core.Sync(), "Sync")
	failing := slogCore{handler: failingHandler{core.handler}}
	require.ErrorIs(t, failing.Write(zapcore.Entry{}, nil), errHandler, "Write to a handler that fails")
}

var errHandler = errors.New("handler: full")

type failingHandler struct{ slog.Handler }

func (failingHandler) Handle(context.Context, slog.Record) error { return errHandler }

// lockedBuffer is written by the loggers of several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// secretKeeper has a secret that came in, is held, and goes out.
type secretKeeper struct{ Held string }

func (s *secretKeeper) Swap(next string) string {
	before := s.Held
	s.Held = next
	return before
}

func (s *secretKeeper) Fail(string) error { return errors.New("refused") }

func (s *secretKeeper) Explode(string) { panic("no more") }

var newSecretKeeper = DefineWith("supervisor.secretKeeper",
	func(_ context.Context, held string) (*secretKeeper, error) { return &secretKeeper{held}, nil })

// Arguments, results, factory arguments and the environment are in no log, and in no error.
func TestSecretsAreNotLogged(t *testing.T) {
	const secret = "hunter2-5f3a"
	kinds := []ChildType{Goroutine}
	if proc.Supported {
		kinds = append(kinds, Process)
	}
	for _, kind := range kinds {
		t.Run(kind.String(), func(t *testing.T) {
			var out lockedBuffer
			encoder := zapcore.NewJSONEncoder(zap.NewDevelopmentEncoderConfig())
			s, err := New(kind,
				WithLogger(zap.New(zapcore.NewCore(encoder, zapcore.AddSync(&out), zapcore.DebugLevel))),
				WithSlog(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))))
			require.NoError(t, err, "New")
			defer s.Close()
			var opts []ChildOption
			if kind == Process {
				opts = append(opts, Proc{Env: []string{"SECRET=" + secret}})
			}
			ctx := t.Context()
			id, err := s.Register(ctx, newSecretKeeper.With(secret), opts...)
			require.NoError(t, err, "Register")
			require.NoError(t, s.StartLink(ctx), "StartLink")
			got, err := Call[string](ctx, s, id, "Swap", secret)
			require.NoError(t, err, "Call")
			require.Equal(t, secret, got, "the value itself arrives")
			for _, req := range []SendPayload{
				NewSendPayload(id, "Fail", secret), NewSendPayload(id, "Explode", secret),
				NewSendPayload(id, "Swap", secret, secret), NewSendPayload(id, "Swap", []string{secret}),
			} {
				_, err := s.Do(ctx, req)
				require.Error(t, err, "Do(%s)", req.Method)
				require.NotContains(t, err.Error(), secret, "error of %s with %d arguments", req.Method, len(req.Args))
			}
			require.NoError(t, s.Restart(ctx, id), "Restart")
			require.NoError(t, s.Shutdown(ctx), "Shutdown")
			log := out.String()
			require.Equal(t, 2, strings.Count(log, "shutdown"), "entries of the end in both logs: %s", log)
			require.NotContains(t, log, secret, "the logs")
		})
	}
}
