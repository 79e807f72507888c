package childtest

import (
	"context"
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

// Ended waits for the end of its ctx and records it in the ledger.
func (w *Worker) Ended(ctx context.Context) error {
	<-ctx.Done()
	return w.Enter("ended")
}
