package childtest

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// rig is a supervisor with children of one kind.
type rig struct {
	kind   Kind
	ctx    context.Context // ends with the test
	sup    *supervisor.Supervisor
	gate   *gate
	ledger testkit.Ledger
	events *testkit.Recorder[supervisor.Event, supervisor.EventKind]
	id     int // the first child
	other  int // the second one, if there are two
}

// job is that of a child of the rig.
func (r *rig) job() Job { return Job{Start: 10, Gate: r.gate.address, Ledger: r.ledger.Path} }

// newRig makes a supervisor without children that is closed at the end of the test.
func newRig(t *testing.T, k Kind, opts ...supervisor.Option) *rig {
	t.Helper()
	r := &rig{
		kind: k, ctx: testkit.Context(t), gate: newGate(t), ledger: testkit.NewLedger(t),
		events: testkit.NewRecorder(func(e supervisor.Event) supervisor.EventKind { return e.Kind }),
		id:     -1, other: -1,
	}
	var err error
	r.sup, err = supervisor.New(k.Type, append(opts, supervisor.WithEvents(r.events.Record))...)
	require.NoError(t, err, "New(%v)", k.Type)
	t.Cleanup(func() {
		if err := r.sup.Close(); err != nil {
			t.Logf("Close at the end of the test: %v", err) // what is left NoLeaks finds
		}
	})
	return r
}

// register adds one more child.
func (r *rig) register(t *testing.T, job Job, opts ...supervisor.ChildOption) int {
	t.Helper()
	id, err := r.kind.Register(r.ctx, r.sup, job, opts...)
	require.NoError(t, err, "Register(%+v)", job)
	return id
}

// start is newRig with one started child.
func start(t *testing.T, k Kind, opts ...supervisor.ChildOption) *rig {
	t.Helper()
	r := newRig(t, k)
	r.id = r.register(t, r.job(), opts...)
	r.startLink(t)
	return r
}

// startTwo is newRig with two started children.
func startTwo(t *testing.T, k Kind, opts ...supervisor.ChildOption) *rig {
	t.Helper()
	r := newRig(t, k)
	r.id = r.register(t, r.job(), opts...)
	r.other = r.register(t, r.job())
	r.startLink(t)
	return r
}

func (r *rig) startLink(t *testing.T) {
	t.Helper()
	require.NoError(t, r.sup.StartLink(r.ctx), "StartLink")
}

// call calls a method that has to succeed.
func call[R any](t *testing.T, r *rig, id int, method string, args ...any) R {
	t.Helper()
	v, err := supervisor.Call[R](r.ctx, r.sup, id, method, args...)
	require.NoError(t, err, "Call(%d, %s, %v)", id, method, args)
	return v
}

// send sends a request that has to be accepted.
func (r *rig) send(t *testing.T, id int, method string, args ...any) supervisor.SendPayload {
	t.Helper()
	p := supervisor.NewSendPayload(id, method, args...)
	require.NoError(t, r.sup.Send(r.ctx, p), "Send(%d, %s, %v)", id, method, args)
	return p
}

// occupy sends a request whose handler waits at the gate, and returns both.
func (r *rig) occupy(t *testing.T, id int) (supervisor.SendPayload, *visitor) {
	t.Helper()
	p := r.send(t, id, "Hold", "occupier")
	return p, r.gate.next(t)
}

// recv is RecvAll of one request, errors being results.
func (r *rig) recv(t *testing.T, p supervisor.SendPayload) supervisor.RecvPayload {
	t.Helper()
	replies, err := r.sup.RecvAll(r.ctx, []supervisor.SendPayload{p}, supervisor.IgnoreErr())
	require.NoError(t, err, "RecvAll(%s)", p.ReqID)
	require.Len(t, replies, 1, "RecvAll(%s)", p.ReqID)
	return replies[0]
}

// child is what the snapshot shows of a child.
func (r *rig) child(t *testing.T, id int) supervisor.ChildSnapshot {
	t.Helper()
	for _, c := range r.sup.Snapshot().Children {
		if c.ProcID == id {
			return c
		}
	}
	t.Fatalf("the snapshot has no child %d", id)
	panic("unreachable")
}

// callError checks that err is a CallError of a request, and returns it.
func callError(t *testing.T, err error, id int, method string) *supervisor.CallError {
	t.Helper()
	var e *supervisor.CallError
	require.ErrorAs(t, err, &e, "error of %s", method)
	require.Equal(t, id, e.ProcID, "ProcID of %v", e)
	require.Equal(t, method, e.Method, "Method of %v", e)
	require.Error(t, e.Err, "reason of %v", e)
	return e
}

// outcome is what a verdict is to the conservation law.
func outcome(err error) testkit.Outcome {
	var remote *supervisor.RemoteError
	var panicked *supervisor.PanicError
	var e *supervisor.CallError
	switch {
	case err == nil:
		return testkit.Value
	case errors.As(err, &remote), errors.As(err, &panicked):
		return testkit.Remote
	case errors.As(err, &e) && e.Unexecuted:
		return testkit.Unexecuted
	default:
		return testkit.Transport
	}
}

// fine checks that a child answers.
func (r *rig) fine(t *testing.T, id int) {
	t.Helper()
	require.Equal(t, "hello", call[string](t, r, id, "Text", "hello"), "child %d answers", id)
}
