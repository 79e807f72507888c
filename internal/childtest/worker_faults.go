package childtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/workerlink/supervisor"
)

var (
	// ErrSentinel is registered.
	ErrSentinel = errors.New("childtest: a registered sentinel")
	// ErrOther is registered, too.
	ErrOther = errors.New("childtest: another registered sentinel")
	// ErrPrivate is not registered.
	ErrPrivate = errors.New("childtest: known to nobody")
)

// CodeError is a registered type of errors.
type CodeError struct {
	Code   int
	Detail string
}

func (e *CodeError) Error() string { return fmt.Sprintf("code %d: %s", e.Code, e.Detail) }

// PrivateError is a type of errors that is not registered.
type PrivateError struct{ N int }

func (e PrivateError) Error() string { return fmt.Sprint("private ", e.N) }

func init() {
	supervisor.RegisterError("childtest.ErrSentinel", ErrSentinel)
	supervisor.RegisterError("childtest.ErrOther", ErrOther)
	supervisor.RegisterErrorType[*CodeError]("childtest.CodeError")
}

// faults are the errors that Fail returns, by name.
var faults = map[string]func() error{
	"plain":        func() error { return errors.New("just a text") },
	"sentinel":     func() error { return ErrSentinel },
	"wrapped":      func() error { return fmt.Errorf("outer: %w", fmt.Errorf("inner: %w", ErrSentinel)) },
	"joined":       func() error { return errors.Join(errors.New("one"), ErrSentinel, fmt.Errorf("two: %w", ErrOther)) },
	"typed":        func() error { return &CodeError{Code: 42, Detail: "teapot"} },
	"wrapped type": func() error { return fmt.Errorf("request: %w", &CodeError{Code: 7, Detail: "x"}) },
	"of io":        func() error { return fmt.Errorf("read: %w", io.ErrUnexpectedEOF) },
	"of fs":        func() error { _, err := os.Open("/no/such/file"); return err },
	"canceled":     func() error { return context.Canceled },
	"deadline":     func() error { return fmt.Errorf("too slow: %w", context.DeadlineExceeded) },
	"private":      func() error { return fmt.Errorf("p: %w", ErrPrivate) },
	"private type": func() error { return PrivateError{N: 5} },
}

// Fail returns the error of that name.
func (w *Worker) Fail(name string) (int, error) { return 1, faults[name]() }

// Panic panics in the way of that name.
func (w *Worker) Panic(how string) int {
	w.Add(1) // the object is kept, and so is this
	switch how {
	case "text":
		panic("a text")
	case "error":
		panic(fmt.Errorf("wrapped: %w", ErrSentinel))
	case "nil":
		panic(any(nil)) //nolint:govet // that is the point
	case "runtime":
		return []int{}[len(how)]
	case "exit":
		runtime.Goexit()
	}
	return 0
}
