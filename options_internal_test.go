package supervisor

// Defaults are resolved in one place, which is tested from inside: from outside most of them only show under load.

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/proc"
)

func TestChildDefaults(t *testing.T) {
	c, err := newChildConfig(Goroutine, false, nil, nil)
	require.NoError(t, err, "no options")
	require.Equal(t, childConfig{
		kind:     Goroutine,
		limits:   Limits{Queue: 1024, QueueBytes: 64 << 20, Frame: 512 << 20, Line: 64 << 10, Tail: 16 << 10},
		handlers: handlerConfig{concurrency: 1}, startTimeout: 10 * time.Second,
	}, c, "what no option gives")
	require.Equal(t, []time.Duration{5 * time.Second, 2 * time.Second}, []time.Duration{c.stop.grace(), c.stop.termGrace()},
		"Grace and TermGrace")
	none := Stop{Grace: -1, TermGrace: -time.Hour}
	require.Equal(t, []time.Duration{0, 0}, []time.Duration{none.grace(), none.termGrace()}, "negative ones skip their step")
	require.Equal(t, 1<<20, defaultInboxLimit, "the inbox")
	require.Equal(t, 1024, eventQueueLimit, "the event queue")
	s, err := New(Goroutine)
	require.NoError(t, err, "New")
	require.Equal(t, defaultInboxLimit, s.opts.inboxLimit, "inbox limit of New without options")
}

func TestChildOptionsApply(t *testing.T) {
	for _, tt := range []struct {
		name     string
		kind     ChildType
		outside  bool
		defaults []ChildOption
		opts     []ChildOption
		want     func(t *testing.T, c childConfig)
	}{
		{
			name: "the last one wins", opts: []ChildOption{WithName("a"), WithName("b"), Limits{Queue: 1}, Limits{QueueBytes: 7}},
			want: func(t *testing.T, c childConfig) {
				require.Equal(t, "b", c.name, "name")
				require.Equal(t, []int64{1024, 7}, []int64{int64(c.limits.Queue), c.limits.QueueBytes}, "a struct is replaced as a whole")
			},
		},
		{
			name: "options come after defaults", defaults: []ChildOption{WithName("a"), WithConcurrency(3)}, opts: []ChildOption{WithName("b")},
			want: func(t *testing.T, c childConfig) {
				require.Equal(t, []any{"b", 3}, []any{c.name, c.handlers.concurrency}, "name and concurrency")
			},
		},
		{
			name: "the kind is the supervisor's", kind: Process,
			want: func(t *testing.T, c childConfig) { require.Equal(t, Process, c.kind, "kind") },
		},
		{
			name: "unless it is given", kind: Process, opts: []ChildOption{WithType(Goroutine)},
			want: func(t *testing.T, c childConfig) { require.Equal(t, Goroutine, c.kind, "kind") },
		},
		{
			name: "or a default", defaults: []ChildOption{WithType(Process)},
			want: func(t *testing.T, c childConfig) { require.Equal(t, Process, c.kind, "kind") },
		},
		{
			name: "defaults for processes are left out for a goroutine", kind: Process,
			defaults: []ChildOption{Proc{Dir: "d"}, Limits{Queue: 5, Frame: 1, Line: 2, Tail: 3}}, opts: []ChildOption{WithType(Goroutine)},
			want: func(t *testing.T, c childConfig) {
				require.Nil(t, c.proc, "Proc")
				require.Equal(t, Limits{Queue: 5}.withDefaults(), c.limits, "limits")
			},
		},
		{
			name: "defaults for goroutines are left out for a process", kind: Process, defaults: []ChildOption{WithCopy()},
			want: func(t *testing.T, c childConfig) { require.False(t, c.handlers.copy, "WithCopy") },
		},
		{
			name: "defaults for both are left out for an outside child", outside: true,
			defaults: []ChildOption{Proc{}, WithCopy(), WithTimings(), WithConcurrency(4), WithName("n"), Limits{Queue: 2, Frame: 1}},
			want: func(t *testing.T, c childConfig) {
				require.Equal(t, []any{false, false, 1, "n"}, []any{c.handlers.copy, c.handlers.timings, c.handlers.concurrency, c.name}, "copy, timings, concurrency, name")
				require.Nil(t, c.proc, "Proc")
				require.Equal(t, Limits{Queue: 2}.withDefaults(), c.limits, "limits")
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := newChildConfig(tt.kind, tt.outside, tt.defaults, tt.opts)
			require.NoError(t, err, "newChildConfig")
			tt.want(t, c)
		})
	}
}

func TestChildOptionsRefused(t *testing.T) {
	for _, tt := range []struct {
		name    string
		kind    ChildType
		outside bool
		opts    []ChildOption
		want    error
		text    string
	}{
		{name: "Proc for a goroutine", opts: []ChildOption{Proc{}}, want: ErrUnsupported, text: "Proc"},
		{name: "Frame for a goroutine", opts: []ChildOption{Limits{Frame: 1}}, want: ErrUnsupported, text: "Frame"},
		{name: "Line for a goroutine", opts: []ChildOption{Limits{Line: 1}}, want: ErrUnsupported, text: "Line"},
		{name: "Tail for a goroutine", opts: []ChildOption{Limits{Tail: 1}}, want: ErrUnsupported, text: "Tail"},
		{name: "WithCopy for a process", kind: Process, opts: []ChildOption{WithCopy()}, want: ErrUnsupported, text: "WithCopy"},
		{name: "Proc for an outside child", kind: Process, outside: true, opts: []ChildOption{Proc{}}, want: ErrUnsupported, text: "outside"},
		{name: "WithCopy for an outside child", outside: true, opts: []ChildOption{WithCopy()}, want: ErrUnsupported, text: "outside"},
		{name: "WithConcurrency for an outside child", outside: true, opts: []ChildOption{WithConcurrency(2)}, want: ErrUnsupported, text: "outside"},
		{name: "WithTimings for an outside child", outside: true, opts: []ChildOption{WithTimings()}, want: ErrUnsupported, text: "outside"},
		{name: "unknown kind", opts: []ChildOption{WithType(7)}, want: ErrBadArgs, text: "ChildType(7)"},
		{name: "unknown restart type", opts: []ChildOption{Restart{Type: 9}}, want: ErrBadArgs, text: "9"},
		{name: "negative concurrency", opts: []ChildOption{WithConcurrency(-1)}, want: ErrBadArgs, text: "negative"},
		{name: "negative start timeout", opts: []ChildOption{WithStartTimeout(-1)}, want: ErrBadArgs, text: "negative"},
		{name: "negative queue", opts: []ChildOption{Limits{Queue: -1}}, want: ErrBadArgs, text: "negative"},
		{name: "negative bytes", opts: []ChildOption{Limits{QueueBytes: -1}}, want: ErrBadArgs, text: "negative"},
		{name: "negative frame", kind: Process, opts: []ChildOption{Limits{Frame: -1}}, want: ErrBadArgs, text: "negative"},
		{name: "nil", opts: []ChildOption{WithName("a"), nil}, want: ErrBadArgs, text: "nil"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var err error
			require.NotPanics(t, func() { _, err = newChildConfig(tt.kind, tt.outside, nil, tt.opts) }, "newChildConfig")
			require.ErrorIs(t, err, tt.want, "newChildConfig")
			require.ErrorContains(t, err, tt.text, "newChildConfig")
		})
	}
}

func TestNewRefuses(t *testing.T) {
	for _, tt := range []struct {
		name string
		kind ChildType
		opts []Option
		text string
	}{
		{name: "unknown kind", kind: 5, text: "ChildType(5)"},
		{name: "negative kind", kind: -1, text: "ChildType(-1)"},
		{name: "nil option", opts: []Option{nil}, text: "nil option"},
		{name: "empty inbox", opts: []Option{WithInboxLimit(0)}, text: "inbox limit 0"},
		{name: "negative inbox", opts: []Option{WithInboxLimit(-3)}, text: "inbox limit -3"},
		{name: "nil default", opts: []Option{WithDefaults(WithName("a"), nil)}, text: "nil child option"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := New(tt.kind, tt.opts...)
			require.ErrorIs(t, err, ErrBadArgs, "New")
			require.ErrorContains(t, err, tt.text, "New")
			require.Nil(t, s, "the supervisor")
		})
	}
	s, err := New(Goroutine, WithLogger(nil), WithSlog(nil), WithEvents(nil), WithDefaults())
	require.NoError(t, err, "New with nothing in its options")
	require.Nil(t, s.events.take, "nobody listens")
}

var declared = Declare[int]("options_internal_test.declared")

func TestRegisterRefuses(t *testing.T) {
	s, err := New(Goroutine)
	require.NoError(t, err, "New")
	for _, tt := range []struct {
		name string
		spec Spec
		opts []ChildOption
		want error
		unix bool // without processes the refusal is another one
	}{
		{name: "the zero Spec", want: ErrBadArgs},
		{name: "a name that is not defined", spec: Spec{name: "nobody"}, want: ErrBadArgs},
		{name: "a declared factory for a goroutine", spec: declared.With(1), want: ErrBadArgs},
		{name: "a declared factory without Path", spec: declared.With(1), opts: []ChildOption{WithType(Process)}, want: ErrBadArgs, unix: true},
		{name: "an option that does not fit", spec: newSecretKeeper.With(""), opts: []ChildOption{Proc{}}, want: ErrUnsupported},
		{name: "a nil option", spec: newSecretKeeper.With(""), opts: []ChildOption{nil}, want: ErrBadArgs},
	} {
		if tt.unix && !proc.Supported {
			tt.want = ErrUnsupported
		}
		var id int
		var err error
		require.NotPanics(t, func() { id, err = s.Register(context.Background(), tt.spec, tt.opts...) }, "Register of %s", tt.name)
		require.ErrorIs(t, err, tt.want, "Register of %s", tt.name)
		require.Equal(t, -1, id, "id of %s", tt.name)
	}
	_, err = s.RegisterChild(context.Background(), nil)
	require.ErrorIs(t, err, ErrBadArgs, "RegisterChild of nil")
	require.Empty(t, s.Snapshot().Children, "children after refusals")
	id, err := s.Register(context.Background(), newSecretKeeper.With(""))
	require.NoError(t, err, "Register")
	require.Zero(t, id, "refusals have used up no id")
}
