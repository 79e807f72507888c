package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/workerlink/supervisor/internal/lines"
)

// logEvent writes one event as one log entry. Arguments, results and the
// environment never get here.
func logEvent(core zapcore.Core, e Event) {
	level := zapcore.InfoLevel
	switch e.Kind {
	case EventStartFailed, EventExited, EventPanic, EventDropped, EventLateReply, EventHung:
		level = zapcore.WarnLevel
	case EventGivenUp, EventStuck:
		level = zapcore.ErrorLevel
	case EventShutdown:
		if e.Err != nil && !errors.Is(e.Err, context.Canceled) { // a cancelled life is an orderly end
			level = zapcore.ErrorLevel
		}
	}
	entry := zapcore.Entry{Level: level, Time: e.Time, LoggerName: "supervisor", Message: e.Kind.String()}
	if ce := core.Check(entry, nil); ce != nil {
		ce.Write(eventFields(e)...)
	}
}

func eventFields(e Event) []zapcore.Field {
	fields := make([]zapcore.Field, 0, 7)
	if e.ProcID >= 0 {
		fields = append(fields, zap.Int("child", e.ProcID))
	}
	if e.Name != "" {
		fields = append(fields, zap.String("name", e.Name))
	}
	if e.Incarnation != 0 {
		fields = append(fields, zap.Uint64("incarnation", e.Incarnation))
	}
	if e.Pid != 0 {
		fields = append(fields, zap.Int("pid", e.Pid))
	}
	switch e.Kind {
	case EventOutput:
		stream := "stdout"
		if e.N == 2 {
			stream = "stderr"
		}
		fields = append(fields, zap.String("stream", stream), zap.String("line", e.Text))
	case EventRestarting:
		fields = append(fields, zap.Duration("delay", time.Duration(e.N)))
	case EventDropped:
		fields = append(fields, zap.Int64("count", e.N))
	case EventLateReply:
		fields = append(fields, zap.String("method", lines.Clean([]byte(e.Text))), zap.Int64("count", e.N))
	case EventHung:
		fields = append(fields, zap.String("stacks", cleanLines(e.Text)))
	case EventPanic:
		fields = append(fields, zap.String("method", lines.Clean([]byte(e.Text))))
		if p, ok := errors.AsType[*PanicError](e.Err); ok {
			fields = append(fields, zap.String("stack", cleanLines(p.Stack)))
		}
	default:
		if e.Text != "" {
			fields = append(fields, zap.String("text", lines.Clean([]byte(e.Text))))
		}
	}
	if e.Err != nil {
		// Workers say what is in it, and not every handler escapes what a terminal obeys.
		fields = append(fields, zap.String("error", lines.Clean([]byte(e.Err.Error()))))
	}
	return fields
}

// slogCore is the part of a zap core that events need, over a slog handler.
type slogCore struct {
	handler slog.Handler
	fields  []zapcore.Field
}

func slogLevel(l zapcore.Level) slog.Level {
	switch {
	case l >= zapcore.ErrorLevel:
		return slog.LevelError
	case l >= zapcore.WarnLevel:
		return slog.LevelWarn
	case l >= zapcore.InfoLevel:
		return slog.LevelInfo
	default:
		return slog.LevelDebug
	}
}

func (c slogCore) Enabled(l zapcore.Level) bool {
	return c.handler.Enabled(context.Background(), slogLevel(l))
}

func (c slogCore) With(fields []zapcore.Field) zapcore.Core {
	return slogCore{handler: c.handler, fields: append(c.fields[:len(c.fields):len(c.fields)], fields...)}
}

func (c slogCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

func (c slogCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	record := slog.NewRecord(e.Time, slogLevel(e.Level), e.LoggerName+": "+e.Message, 0)
	encoder := zapcore.NewMapObjectEncoder()
	for _, group := range [][]zapcore.Field{c.fields, fields} {
		for _, f := range group {
			f.AddTo(encoder)
			record.AddAttrs(slog.Any(f.Key, encoder.Fields[f.Key]))
		}
	}
	if err := c.handler.Handle(context.Background(), record); err != nil {
		return fmt.Errorf("supervisor: slog: %w", err)
	}
	return nil
}

func (c slogCore) Sync() error { return nil }
