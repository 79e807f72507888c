package childtest

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"time"
)

// Hold waits until the gate lets it go, and returns what it is told there, or until ctx ends, which it tells the gate.
func (w *Worker) Hold(ctx context.Context, name string) (string, error) {
	return WaitAt(ctx, w.job.Gate, name)
}

// HoldOn waits until the gate lets it go, whatever happens.
func (w *Worker) HoldOn(name string) (string, error) {
	return WaitAt(context.Background(), w.job.Gate, name)
}

// WaitAt is one handler at the gate. It says its name, and then why it leaves if it does so by itself.
func WaitAt(ctx context.Context, gate, name string) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", gate)
	if err != nil {
		return "", fmt.Errorf("gate: %w", err)
	}
	defer conn.Close() //nolint:errcheck // everything is said by then
	if _, err := fmt.Fprintln(conn, name); err != nil {
		return "", fmt.Errorf("gate: %w", err)
	}
	wake := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	defer wake()
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if ctx.Err() != nil {
		_, _ = fmt.Fprintln(conn, context.Cause(ctx)) // the test may be gone
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("gate: %w", err)
	}
	return strings.TrimSuffix(answer, "\n"), nil
}

// Remaining returns how long the handler has, or -1 if it has for ever.
func (w *Worker) Remaining(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return -1
	}
	return time.Until(deadline)
}
