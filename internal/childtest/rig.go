package childtest

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// Rig is a supervisor with children of one kind.
type Rig struct {
	Kind   Kind
	Ctx    context.Context // ends with the test
	Sup    *supervisor.Supervisor
	Gate   *Gate
	Ledger testkit.Ledger
	Events *testkit.Recorder[supervisor.Event, supervisor.EventKind]
	ID     int // the first child
	Other  int // the second one, if there are two
}

// Job is that of a child of the rig.
func (r *Rig) Job() Job { return Job{Start: 10, Gate: r.Gate.Address, Ledger: r.Ledger.Path} }

// NewRig makes a supervisor without children that is closed at the end of the test.
func NewRig(t *testing.T, k Kind, opts ...supervisor.Option) *Rig {
	t.Helper()
	r := &Rig{
		Kind: k, Ctx: testkit.Context(t), Gate: NewGate(t), Ledger: testkit.NewLedger(t),
		Events: testkit.NewRecorder(func(e supervisor.Event) supervisor.EventKind { return e.Kind }),
		ID:     -1, Other: -1,
	}
	var err error
	r.Sup, err = supervisor.New(k.Type, append(opts, supervisor.WithEvents(r.Events.Record))...)
	require.NoError(t, err, "New(%v)", k.Type)
	t.Cleanup(func() {
		if err := r.Sup.Close(); err != nil {
			t.Logf("Close at the end of the test: %v", err) // what is left NoLeaks finds
		}
	})
	return r
}

// Register adds one more child.
func (r *Rig) Register(t *testing.T, job Job, opts ...supervisor.ChildOption) int {
	t.Helper()
	id, err := r.Kind.Register(r.Ctx, r.Sup, job, opts...)
	require.NoError(t, err, "Register(%+v)", job)
	return id
}

// Start is NewRig with one started child.
func Start(t *testing.T, k Kind, opts ...supervisor.ChildOption) *Rig {
	t.Helper()
	r := NewRig(t, k)
	r.ID = r.Register(t, r.Job(), opts...)
	r.StartLink(t)
	return r
}

// StartTwo is NewRig with two started children.
func StartTwo(t *testing.T, k Kind, opts ...supervisor.ChildOption) *Rig {
	t.Helper()
	r := NewRig(t, k)
	r.ID = r.Register(t, r.Job(), opts...)
	r.Other = r.Register(t, r.Job())
	r.StartLink(t)
	return r
}

// StartLink starts the children.
func (r *Rig) StartLink(t *testing.T) {
	t.Helper()
	require.NoError(t, r.Sup.StartLink(r.Ctx), "StartLink")
}

// CallOf calls a method that has to succeed.
func CallOf[R any](t *testing.T, r *Rig, id int, method string, args ...any) R {
	t.Helper()
	v, err := supervisor.Call[R](r.Ctx, r.Sup, id, method, args...)
	require.NoError(t, err, "Call(%d, %s, %v)", id, method, args)
	return v
}

// Send sends a request that has to be accepted.
func (r *Rig) Send(t *testing.T, id int, method string, args ...any) supervisor.SendPayload {
	t.Helper()
	p := supervisor.NewSendPayload(id, method, args...)
	require.NoError(t, r.Sup.Send(r.Ctx, p), "Send(%d, %s, %v)", id, method, args)
	return p
}

// Occupy sends a request whose handler waits at the gate, and returns both.
func (r *Rig) Occupy(t *testing.T, id int) (supervisor.SendPayload, *Visitor) {
	t.Helper()
	p := r.Send(t, id, "Hold", "occupier")
	return p, r.Gate.Next(t)
}

// Recv is RecvAll of one request, errors being results.
func (r *Rig) Recv(t *testing.T, p supervisor.SendPayload) supervisor.RecvPayload {
	t.Helper()
	replies, err := r.Sup.RecvAll(r.Ctx, []supervisor.SendPayload{p}, supervisor.IgnoreErr())
	require.NoError(t, err, "RecvAll(%s)", p.ReqID)
	require.Len(t, replies, 1, "RecvAll(%s)", p.ReqID)
	return replies[0]
}

// Child is what the snapshot shows of a Child.
func (r *Rig) Child(t *testing.T, id int) supervisor.ChildSnapshot {
	t.Helper()
	for _, c := range r.Sup.Snapshot().Children {
		if c.ProcID == id {
			return c
		}
	}
	t.Fatalf("the snapshot has no child %d", id)
	panic("unreachable")
}

// CallErrorOf checks that err is a CallError of a request, and returns it.
func CallErrorOf(t *testing.T, err error, id int, method string) *supervisor.CallError {
	t.Helper()
	var e *supervisor.CallError
	require.ErrorAs(t, err, &e, "error of %s", method)
	require.Equal(t, id, e.ProcID, "ProcID of %v", e)
	require.Equal(t, method, e.Method, "Method of %v", e)
	require.Error(t, e.Err, "reason of %v", e)
	return e
}

// OutcomeOf is what a verdict is to the conservation law.
func OutcomeOf(err error) testkit.Outcome {
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

// Fine checks that a child answers.
func (r *Rig) Fine(t *testing.T, id int) {
	t.Helper()
	require.Equal(t, "hello", CallOf[string](t, r, id, "Text", "hello"), "child %d answers", id)
}
