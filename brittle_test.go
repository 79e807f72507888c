package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// brittle is an object that ends its own life when it is told to. Handlers that wait do so at the gate.
type brittle struct {
	gate string
	n    int
}

var errBrittle = errors.New("brittle: broken")

func init() { supervisor.RegisterError("supervisor_test.errBrittle", errBrittle) }

var newBrittle = supervisor.DefineWith("supervisor_test.brittle", func(_ context.Context, gate string) (*brittle, error) {
	return &brittle{gate: gate}, nil
})

// Break is the last thing that the object does.
func (*brittle) Break(why string) (int, error) {
	return 7, supervisor.Fatal(fmt.Errorf("%w: %s", errBrittle, why))
}

// BreakAt does the same once the gate lets it.
func (b *brittle) BreakAt(name string) error {
	if _, err := childtest.WaitAt(context.Background(), b.gate, name); err != nil {
		return err
	}
	return supervisor.Fatal(errBrittle)
}

// PanicAt panics once the gate lets it.
func (b *brittle) PanicAt(name string) error {
	if _, err := childtest.WaitAt(context.Background(), b.gate, name); err != nil {
		return err
	}
	panic(errBrittle)
}

// Hold waits at the gate, or until its context ends.
func (b *brittle) Hold(ctx context.Context, name string) (string, error) {
	return childtest.WaitAt(ctx, b.gate, name)
}

// Fine is Fatal without an error.
func (*brittle) Fine() error { return supervisor.Fatal(nil) }

// Count counts the calls of this object.
func (b *brittle) Count() int { b.n++; return b.n }

// brittleRig is a supervisor with brittle children.
type brittleRig struct {
	sup  *supervisor.Supervisor
	gate *childtest.Gate
	seen *testkit.Recorder[supervisor.Event, supervisor.EventKind]
}

// withBrittle starts so many of them, named a, b, c and so on.
func withBrittle(t *testing.T, kind supervisor.ChildType, n int, st supervisor.Strategy, opts ...supervisor.ChildOption) *brittleRig {
	t.Helper()
	r := &brittleRig{gate: childtest.NewGate(t), seen: newRecorder()}
	r.sup = newSupervisor(t, kind, supervisor.WithEvents(r.seen.Record), supervisor.WithStrategy(st))
	for i := range n {
		register(t, r.sup, newBrittle.With(r.gate.Address), append([]supervisor.ChildOption{supervisor.WithName(string(rune('a' + i)))}, opts...)...)
	}
	require.NoError(t, r.sup.StartLink(context.Background()), "StartLink")
	return r
}

func newRecorder() *testkit.Recorder[supervisor.Event, supervisor.EventKind] {
	return testkit.NewRecorder(func(e supervisor.Event) supervisor.EventKind { return e.Kind })
}

// hold sends a request whose handler waits at the gate.
func (r *brittleRig) hold(t *testing.T, id int, method string) (supervisor.SendPayload, *childtest.Visitor) {
	t.Helper()
	p := send(t, r.sup, supervisor.NewSendPayload(id, method, "occupier"))[0]
	return p, r.gate.Next(t)
}

// verdict is how a request ended, which must not be by a value.
func (r *brittleRig) verdict(t *testing.T, p supervisor.SendPayload) *supervisor.CallError {
	t.Helper()
	got, err := r.sup.RecvAll(testkit.Context(t), []supervisor.SendPayload{p}, supervisor.IgnoreErr())
	require.NoError(t, err, "RecvAll of %s", p.Method)
	return verdictOf(t, got[0])
}

// value is how a request ended otherwise.
func (r *brittleRig) value(t *testing.T, p supervisor.SendPayload) any {
	t.Helper()
	got, err := r.sup.RecvAll(testkit.Context(t), []supervisor.SendPayload{p})
	require.NoError(t, err, "RecvAll of %s", p.Method)
	return got[0].Data
}

// count calls Count.
func (r *brittleRig) count(t *testing.T, id int) int {
	t.Helper()
	n, err := supervisor.Call[int](testkit.Context(t), r.sup, id, "Count")
	require.NoError(t, err, "Call of Count of child %d", id)
	return n
}

// lives are the lives that are up, by child; those without a life have 0.
func lives(sup *supervisor.Supervisor) (all []uint64) {
	for _, c := range sup.Snapshot().Children {
		if c.State != supervisor.StateUp {
			c.Incarnation = 0
		}
		all = append(all, c.Incarnation)
	}
	return all
}

// ran lists the children of the events of a kind after the first so many events.
func (r *brittleRig) ran(kind supervisor.EventKind, skip int) (ids []int) {
	for _, e := range r.seen.All()[skip:] {
		if e.Kind == kind {
			ids = append(ids, e.ProcID)
		}
	}
	return ids
}

func eachKind(t *testing.T, test func(t *testing.T, kind supervisor.ChildType)) {
	t.Helper()
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			testkit.NoLeaks(t)
			test(t, kind)
		})
	}
}
