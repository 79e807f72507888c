package supervisor

// The way of an error over the pipe is tested from inside, so that both directions can be looked at without a worker.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/wire"
)

var (
	errRegistered = errors.New("test: registered")
	errStranger   = errors.New("test: not registered")
)

// codeError is a registered type of errors.
type codeError struct {
	Code  int
	Cause error
}

func (e *codeError) Error() string { return fmt.Sprintf("code %d", e.Code) }
func (e *codeError) Unwrap() error { return e.Cause }

// plainError is another, without a pointer.
type plainError struct{ Text string }

func (e plainError) Error() string { return e.Text }

func init() {
	RegisterError("remote_internal_test.errRegistered", errRegistered)
	RegisterErrorType[*codeError]("remote_internal_test.codeError")
	RegisterErrorType[plainError]("remote_internal_test.plainError")
}

// overThePipe is an error as it arrives from a worker.
func overThePipe(t testing.TB, err error) error {
	t.Helper()
	node, parseErr := wire.ParseError(wire.AppendError(nil, toNode(err)))
	require.NoError(t, parseErr, "the error as bytes")
	return fromNode(node)
}

func TestErrorsCross(t *testing.T) {
	for _, tt := range []struct {
		name  string
		err   error
		typ   string // of the RemoteError; "" for those that arrive as something else
		is    []error
		isNot []error
		as    func(err error) bool
	}{
		{name: "plain", err: errStranger, typ: "*errors.errorString", isNot: []error{errStranger}},
		{name: "registered", err: errRegistered, typ: "*errors.errorString", is: []error{errRegistered}, isNot: []error{io.EOF}},
		{name: "wrapped", err: fmt.Errorf("outer: %w", fmt.Errorf("inner: %w", errRegistered)), typ: "*fmt.wrapError", is: []error{errRegistered}},
		{
			name: "joined", err: errors.Join(errStranger, errRegistered, fmt.Errorf("x: %w", io.EOF)), typ: "*errors.joinError",
			is: []error{errRegistered, io.EOF}, isNot: []error{errStranger},
		},
		{name: "of package context", err: fmt.Errorf("x: %w", context.DeadlineExceeded), is: []error{context.DeadlineExceeded}, isNot: []error{context.Canceled}, typ: "*fmt.wrapError"},
		{name: "of this package", err: fmt.Errorf("x: %w", ErrTimeout), is: []error{ErrTimeout, context.DeadlineExceeded}, typ: "*fmt.wrapError"},
		{name: "net.ErrClosed", err: net.ErrClosed, is: []error{net.ErrClosed}},
		{name: "of a file", err: &fs.PathError{Op: "open", Path: "/p", Err: fs.ErrNotExist}, typ: "*io/fs.PathError", is: []error{fs.ErrNotExist}},
		{
			name: "registered type", err: fmt.Errorf("x: %w", &codeError{Code: 7}), typ: "*fmt.wrapError",
			as: func(err error) bool {
				var e *codeError
				return errors.As(err, &e) && e.Code == 7
			},
		},
		{
			name: "registered type without a pointer", err: plainError{"p"}, typ: "github.com/workerlink/supervisor.plainError",
			as: func(err error) bool {
				var e plainError
				return errors.As(err, &e) && e.Text == "p"
			},
		},
		{
			name: "a panic with a registered error", err: panicked(fmt.Errorf("x: %w", errRegistered), false), is: []error{errRegistered},
			as: func(err error) bool {
				var e *PanicError
				return errors.As(err, &e) && e.Value == "x: test: registered" && strings.Contains(e.Stack, "goroutine")
			},
		},
		{
			name: "Goexit", err: panicked(nil, true),
			as: func(err error) bool {
				var e *PanicError
				return errors.As(err, &e) && strings.Contains(e.Value, "Goexit")
			},
		},
		{
			name: "a refusal of the library", err: library(fmt.Errorf("%w: Foo takes 2 arguments", ErrBadArgs)), is: []error{ErrBadArgs},
			as: func(err error) bool {
				var e *RemoteError
				return !errors.As(err, &e)
			},
		},
	} {
		for way, cross := range map[string]func(error) error{
			"over the pipe": func(err error) error { return overThePipe(t, err) }, "beside it": crossed,
		} {
			t.Run(tt.name+" "+way, func(t *testing.T) {
				got := cross(tt.err)
				require.Equal(t, tt.err.Error(), got.Error(), "text")
				var remote *RemoteError
				if tt.typ != "" {
					require.ErrorAs(t, got, &remote, "the outermost error")
					require.Equal(t, tt.typ, remote.Type, "type of the original")
				}
				for _, is := range tt.is {
					require.ErrorIs(t, got, is, "what is registered of its chain")
				}
				for _, not := range tt.isNot {
					require.NotErrorIs(t, got, not, "what is not")
				}
				if tt.as != nil {
					require.True(t, tt.as(got), "As of %#v", got)
				}
			})
		}
	}
}

// A registered type that wraps others: its fields and its chain both arrive.
func TestErrorTypeKeepsItsChain(t *testing.T) {
	got := overThePipe(t, fmt.Errorf("outer: %w", &codeError{Code: 3, Cause: fmt.Errorf("mid: %w", errRegistered)}))
	require.ErrorIs(t, got, errRegistered, "what the value wraps")
	var code *codeError
	if errors.As(got, &code) {
		require.Equal(t, 3, code.Code, "its field")
	} else {
		require.ErrorContains(t, got, "code 3", "a value that could not cross leaves its text")
	}
}

// hostile is an error whose every method misbehaves in the way that it is told to.
type hostile struct {
	text   func() string
	unwrap func() error
}

func (h *hostile) Error() string { return h.text() }
func (h *hostile) Unwrap() error { return h.unwrap() }

// unhashable is of a comparable type, but no value of it that holds a slice can be compared.
type unhashable struct{ v any }

func (u unhashable) Error() string { return "unhashable" }

// selfish wraps itself, twice.
type selfish struct{}

func (s *selfish) Error() string   { return "selfish" }
func (s *selfish) Unwrap() []error { return []error{s, s} }

// lying says that it is everything.
type lying struct{ Text string }

func (l *lying) Error() string   { return l.Text }
func (l *lying) Is(error) bool   { panic("Is is not to be asked") }
func (l *lying) Unwrap() []error { return []error{nil, errRegistered, nil} }

func init() { RegisterErrorType[*lying]("remote_internal_test.lying") }

// Errors are user code, which runs where a panic would end the host. Whatever they do, a verdict comes.
func TestErrorsThatMisbehave(t *testing.T) {
	text := func() string { return "text" }
	none := func() error { return nil }
	for _, tt := range []struct {
		name string
		err  error
		want string // in the text
	}{
		{"a panic in Error", &hostile{func() string { panic("no text") }, none}, "no text"},
		{"a panic in Unwrap", &hostile{text, func() error { panic("no cause") }}, "text"},
		{"a typed nil", (*fs.PathError)(nil), "PathError"},
		{"a typed nil, wrapped", fmt.Errorf("outer: %w", error((*hostile)(nil))), "outer"},
		{"a value that cannot be compared", unhashable{[]int{1}}, "unhashable"},
		{"a value that cannot be compared, joined", errors.Join(unhashable{[]int{1}}, errRegistered), "unhashable"},
		{"a chain that leads back", &selfish{}, "selfish"},
		{"nil among the wrapped, and a panic in Is", &lying{"lie"}, "lie"},
		{"a text that is not UTF-8", errors.New("\xff\xfe"), "\xff\xfe"},
		{"a very long text", errors.New(strings.Repeat("x", 1<<20)), "xxx"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			began := time.Now()
			require.NotPanics(t, func() { require.Contains(t, crossed(tt.err).Error(), tt.want, "text beside the pipe") }, "beside the pipe")
			require.NotPanics(t, func() { require.Contains(t, overThePipe(t, tt.err).Error(), tt.want, "text over the pipe") }, "over the pipe")
			require.Less(t, time.Since(began), 5*time.Second, "time of both ways")
		})
	}
}

func TestErrorLimits(t *testing.T) {
	deep := errRegistered
	for range 100 {
		deep = fmt.Errorf("level: %w", deep)
	}
	var many []error
	for range 10_000 {
		many = append(many, errRegistered)
	}
	for name, err := range map[string]error{
		"deep": deep, "wide": errors.Join(many...), "long": fmt.Errorf("%s: %w", strings.Repeat("é", 100_000), errRegistered),
		"all of it": errors.Join(deep, errors.Join(many...), errors.New(strings.Repeat("x", 1<<20))),
	} {
		b := wire.AppendError(nil, toNode(err))
		require.LessOrEqual(t, len(b), 64<<10, "bytes of the %s error", name)
		node, parseErr := wire.ParseError(b)
		require.NoError(t, parseErr, "parsing the %s error", name)
		require.NotEmpty(t, fromNode(node).Error(), "text of the %s error", name)
	}
	require.ErrorIs(t, overThePipe(t, errors.Join(many...)), errRegistered, "the first of many")
}

func TestRegisterErrorRefuses(t *testing.T) {
	type unique struct{ error }
	for _, tt := range []struct {
		name string
		call func()
		text string
	}{
		{"a name twice", func() { RegisterError("remote_internal_test.errRegistered", errors.New("other")) }, "registered twice"},
		{"a sentinel twice", func() { RegisterError("remote_internal_test.again", errRegistered) }, "registered twice"},
		{"one of the standard library", func() { RegisterError("remote_internal_test.EOF", io.EOF) }, `"io.EOF"`},
		{"one of ours", func() { RegisterError("remote_internal_test.ours", ErrBusy) }, "supervisor.ErrBusy"},
		{"a name of ours", func() { RegisterError("supervisor.ErrBusy", errors.New("other")) }, "registered twice"},
		{"nil", func() { RegisterError("remote_internal_test.nil", nil) }, "comparable"},
		{"no name", func() { RegisterError("", errors.New("nameless")) }, "comparable"},
		{"what cannot be compared", func() { RegisterError("remote_internal_test.joined", uncomparable{}) }, "comparable"},
		{"a type twice", func() { RegisterErrorType[*codeError]("remote_internal_test.other") }, "registered twice"},
		{"a name of a type twice", func() { RegisterErrorType[*unique]("remote_internal_test.codeError") }, "registered twice"},
		{"an interface", func() { RegisterErrorType[net.Error]("remote_internal_test.net") }, "concrete"},
		{"a type without a name", func() { RegisterErrorType[*unique]("") }, "needs a name"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			value := func() (v any) {
				defer func() { v = recover() }()
				tt.call()
				return nil
			}()
			require.Contains(t, fmt.Sprint(value), "supervisor: ", "the panic")
			require.Contains(t, fmt.Sprint(value), tt.text, "the panic")
		})
	}
}

// uncomparable cannot be a key.
type uncomparable []error

func (uncomparable) Error() string { return "uncomparable" }

// A name may stand for a sentinel or for a type, in the registry of the other side: whoever does not know it keeps the text.
func TestUnknownNamesKeepTheText(t *testing.T) {
	err := fromNode(wire.ErrorNode{
		Text: "outer", Type: "other.T", Kids: []wire.ErrorNode{
			{Text: "inner", Type: "other.Sentinel", Name: "other.program.ErrX"},
			{Text: "typed", Type: "*other.E", Name: "other.program.E", Data: []byte{1, 2, 3}},
			{Text: "broken", Type: "*supervisor.codeError", Name: "remote_internal_test.codeError", Data: []byte{1, 2, 3}},
			{Text: "known", Name: "io.EOF"},
		},
	})
	require.Equal(t, "outer", err.Error(), "text")
	require.ErrorIs(t, err, io.EOF, "what is known")
	var code *codeError
	require.NotErrorAs(t, err, &code, "a value that cannot be decoded")
	var texts []string
	for _, cause := range err.(*RemoteError).Unwrap() { //nolint:errorlint // fromNode's own
		texts = append(texts, cause.Error())
	}
	require.Equal(t, []string{"inner", "typed", "broken", "EOF"}, texts, "texts of what it wraps")
}
