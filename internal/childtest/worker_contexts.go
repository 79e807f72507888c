package childtest

import (
	"context"
	"errors"
	"time"
)

// Remaining returns how long the handler has, or -1 if it has for ever.
func (w *Worker) Remaining(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return -1
	}
	return time.Until(deadline)
}

// Ended waits for the end of its ctx and records in the ledger which one it was.
func (w *Worker) Ended(ctx context.Context) error {
	<-ctx.Done()
	switch err := ctx.Err(); {
	case errors.Is(err, context.DeadlineExceeded):
		return w.Enter("deadline")
	default:
		return w.Enter("canceled")
	}
}
