package faulttest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// eachKind runs a test for goroutine and for process children, and looks for leaks.
func eachKind(t *testing.T, test func(t *testing.T, k childtest.Kind)) {
	t.Helper()
	for _, k := range childtest.Kinds() {
		t.Run(k.Name, func(t *testing.T) {
			testkit.NoLeaks(t)
			test(t, k)
		})
	}
}

// times is how often a test does something: few times in an ordinary run, half as often under -short if that is a number to
// halve, as often as the fault's description says under the build tag soak.
func times(few, all int) int {
	switch {
	case soak:
		return all
	case testing.Short() && few >= 8:
		return few / 2
	default:
		return few
	}
}

// notShort leaves a test of mere load out under -short.
func notShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a load is not short")
	}
}

// newSupervisor returns one that is closed at the end of the test.
func newSupervisor(t testing.TB, kind supervisor.ChildType, opts ...supervisor.Option) *supervisor.Supervisor {
	t.Helper()
	sup, err := supervisor.New(kind, opts...)
	require.NoError(t, err, "New(%v)", kind)
	t.Cleanup(func() { _ = sup.Close() }) // what a test expects of the end it says itself
	return sup
}

// register adds a child that must be accepted.
func register(t testing.TB, sup *supervisor.Supervisor, spec supervisor.Spec, opts ...supervisor.ChildOption) int {
	t.Helper()
	id, err := sup.Register(testkit.Context(t), spec, opts...)
	require.NoError(t, err, "Register(%q)", spec.Name())
	return id
}

// started returns a running supervisor with one child, whose id is 0.
func started(t testing.TB, kind supervisor.ChildType, spec supervisor.Spec, opts ...supervisor.ChildOption) *supervisor.Supervisor {
	t.Helper()
	sup := newSupervisor(t, kind)
	register(t, sup, spec, opts...)
	require.NoError(t, sup.StartLink(context.Background()), "StartLink")
	return sup
}

func shutdown(t testing.TB, sup *supervisor.Supervisor) {
	t.Helper()
	require.NoError(t, sup.Shutdown(testkit.Context(t)), "Shutdown")
}

// send sends requests that must be accepted, and returns them.
func send(t testing.TB, sup *supervisor.Supervisor, reqs ...supervisor.SendPayload) []supervisor.SendPayload {
	t.Helper()
	for _, p := range reqs {
		require.NoError(t, sup.Send(testkit.Context(t), p), "Send(%s to child %d)", p.Method, p.ProcID)
	}
	return reqs
}
