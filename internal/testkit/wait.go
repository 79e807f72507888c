package testkit

import (
	"context"
	"testing"
	"time"

	"github.com/workerlink/supervisor/internal/task"
)

// Context returns a context that ends with the test, or after [Limit].
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), Limit)
	t.Cleanup(cancel)
	return ctx
}

// Receive returns the next value of a channel, or the zero value once it is closed. The test fails with what if nothing
// comes within [Limit].
func Receive[T any](t testing.TB, from <-chan T, what string) T {
	t.Helper()
	limit := time.NewTimer(Limit)
	defer limit.Stop()
	select {
	case v := <-from:
		return v
	case <-limit.C:
		t.Fatalf("nothing after %v: %s\n\n%s", Limit, what, Stacks())
		panic("unreachable")
	}
}

// Closed waits until a channel is closed. The test fails with what if that does not happen within [Limit], or if a value
// comes instead.
func Closed[T any](t testing.TB, done <-chan T, what string) {
	t.Helper()
	limit := time.NewTimer(Limit)
	defer limit.Stop()
	select {
	case v, open := <-done:
		if open {
			t.Fatalf("%v came instead of the end: %s", v, what)
		}
	case <-limit.C:
		t.Fatalf("no end after %v: %s\n\n%s", Limit, what, Stacks())
	}
}

// Until looks at a state that nothing announces until it holds. The test fails with what after [Limit].
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(Limit)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not after %v: %s", Limit, what)
		}
		<-time.After(pollStep)
	}
}

// Within runs f and fails the test with all stacks if it takes longer than d, times [Slowdown]. f runs on a goroutine of
// its own, and may end the test.
func Within(t testing.TB, d time.Duration, f func()) {
	t.Helper()
	d *= Slowdown
	finished := false
	running := task.Go(func(context.Context) {
		f()
		finished = true
	})
	limit := time.NewTimer(d)
	defer limit.Stop()
	select {
	case <-running.Done():
		if !finished {
			t.FailNow() // f said why, by ending its goroutine
		}
	case <-limit.C:
		t.Fatalf("not done within %v\n\n%s", d, Stacks())
	}
}
