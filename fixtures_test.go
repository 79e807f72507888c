package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/proc"
	"github.com/workerlink/supervisor/internal/testkit"
)

// kinds are the built-in kinds that this system has.
func kinds() []supervisor.ChildType {
	if proc.Supported {
		return []supervisor.ChildType{supervisor.Goroutine, supervisor.Process}
	}
	return []supervisor.ChildType{supervisor.Goroutine}
}

// newSupervisor returns one that is shut down at the end of the test.
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

// started returns a supervisor that runs children of the given specs.
func started(t testing.TB, kind supervisor.ChildType, specs ...supervisor.Spec) *supervisor.Supervisor {
	t.Helper()
	sup := newSupervisor(t, kind)
	for _, spec := range specs {
		register(t, sup, spec)
	}
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

func idsOf[P supervisor.SendPayload | supervisor.RecvPayload](list []P) []string {
	ids := []string{}
	for _, p := range list {
		switch p := any(p).(type) {
		case supervisor.SendPayload:
			ids = append(ids, p.ReqID)
		case supervisor.RecvPayload:
			ids = append(ids, p.ReqID)
		}
	}
	return ids
}

// named is a request whose id a test can read.
func named(id string, child int, method string, args ...any) supervisor.SendPayload {
	p := supervisor.NewSendPayload(child, method, args...)
	p.ReqID = id
	return p
}

// desk is an object of goroutine children whose handlers end when the test says so.
type desk struct {
	mu    sync.Mutex
	tasks map[string]*deskTask
}

// deskTask is one call of Work, begun or not.
type deskTask struct {
	began  chan struct{} // closed by the handler
	finish chan deskEnd  // has one place
	runs   int
}

// deskEnd is how a call of Work ends: by value, error, or panic.
type deskEnd struct {
	value int
	err   error
	panic any
}

var errDesk = errors.New("desk: refused")

func newDesk() *desk { return &desk{tasks: make(map[string]*deskTask)} }

func (d *desk) task(name string) *deskTask {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.tasks[name]
	if t == nil {
		t = &deskTask{began: make(chan struct{}), finish: make(chan deskEnd, 1)}
		d.tasks[name] = t
	}
	return t
}

// end lets the call of this name end, also one that has not begun.
func (d *desk) end(name string, end deskEnd) { d.task(name).finish <- end }

// begun waits until the handler runs.
func (d *desk) begun(t testing.TB, name string) {
	t.Helper()
	testkit.Closed(t, d.task(name).began, "handler of "+name+" has begun")
}

// runs is how often the call was executed.
func (d *desk) runs(name string) int {
	t := d.task(name)
	d.mu.Lock()
	defer d.mu.Unlock()
	return t.runs
}

func (d *desk) begin(name string) *deskTask {
	t := d.task(name)
	d.mu.Lock()
	defer d.mu.Unlock()
	if t.runs++; t.runs == 1 {
		close(t.began)
	}
	return t
}

// Work ends as the test says, or with its context.
func (d *desk) Work(ctx context.Context, name string) (int, error) {
	t := d.begin(name)
	select {
	case end := <-t.finish:
		if end.panic != nil {
			panic(end.panic)
		}
		return end.value, end.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// Deaf is Work that ignores its context.
func (d *desk) Deaf(name string) (int, error) {
	end := <-d.begin(name).finish
	return end.value, end.err
}

// Double returns at once.
func (d *desk) Double(n int) int { return 2 * n }

// Refuse fails at once.
func (d *desk) Refuse(text string) error { return fmt.Errorf("%w: %s", errDesk, text) }

// withDesk returns a running supervisor with one goroutine child, and its object.
func withDesk(t testing.TB, opts ...supervisor.ChildOption) (*supervisor.Supervisor, *desk) {
	t.Helper()
	d := newDesk()
	sup := newSupervisor(t, supervisor.Goroutine)
	register(t, sup, supervisor.Object(d), opts...)
	require.NoError(t, sup.StartLink(context.Background()), "StartLink")
	return sup, d
}

// verdictOf is the CallError of an entry, which must be one.
func verdictOf(t testing.TB, p supervisor.RecvPayload) *supervisor.CallError {
	t.Helper()
	var call *supervisor.CallError
	require.ErrorAs(t, p.Err, &call, "verdict of %q", p.ReqID)
	require.Equal(t, p.ReqID, call.ReqID, "request id in the CallError")
	require.Equal(t, p.ProcID, call.ProcID, "child in the CallError")
	return call
}
