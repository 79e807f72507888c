package future

import (
	"context"
	"errors"
	"fmt"
)

// ErrTimeout says that a time limit has passed. errors.Is takes it for [context.DeadlineExceeded] as well.
var ErrTimeout error = &endError{"supervisor: timeout", context.DeadlineExceeded}

// ErrCanceled says that somebody lost interest. errors.Is takes it for [context.Canceled] as well.
var ErrCanceled error = &endError{"supervisor: canceled", context.Canceled}

// endError is an error with a text of its own that unwraps to the error of the context package it stands for.
type endError struct {
	text string
	of   error
}

func (e *endError) Error() string { return e.text }
func (e *endError) Unwrap() error { return e.of }

// Cause says in this library's errors why ctx has ended: [ErrTimeout] or [ErrCanceled], wrapped together with
// [context.Cause] where that says more. It returns nil while ctx has not ended.
func Cause(ctx context.Context) error {
	end := ctx.Err()
	if end == nil {
		return nil
	}
	base := ErrCanceled
	if errors.Is(end, context.DeadlineExceeded) {
		base = ErrTimeout
	}
	switch cause := context.Cause(ctx); {
	case cause == nil || cause == end: //nolint:errorlint // identity is meant: a cause that wraps end says more
		return base
	case errors.Is(cause, ErrTimeout), errors.Is(cause, ErrCanceled):
		return cause // already in our words, and by who knew best
	default:
		return fmt.Errorf("%w: %w", base, cause)
	}
}
