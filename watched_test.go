package supervisor_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

// sickly is an object that hangs in every way, until the gate lets it go.
type sickly struct {
	job   sicklyJob
	ail   atomic.Value // what its Health does, as a string
	asked atomic.Int64
}

// sicklyJob says where a sickly object meets the test.
type sicklyJob struct{ Gate, Ledger string }

var errSickly = errors.New("sickly: not today")

func init() { supervisor.RegisterError("supervisor_test.errSickly", errSickly) }

var newSickly = supervisor.DefineWith("supervisor_test.sickly", func(_ context.Context, job sicklyJob) (*sickly, error) {
	s := &sickly{job: job}
	s.ail.Store("nothing")
	return s, nil
})

// Heed waits at the gate, or until its context ends.
func (s *sickly) Heed(ctx context.Context, name string) (string, error) {
	return childtest.WaitAt(ctx, s.job.Gate, name)
}

// Spin keeps a processor busy.
func (s *sickly) Spin(name string) {
	var over atomic.Bool
	task.Go(func(context.Context) {
		_, _ = childtest.WaitAt(context.Background(), s.job.Gate, name) // the end of the test, too, lets it go
		over.Store(true)
	})
	for !over.Load() {
	}
}

// Lock waits for a lock.
func (s *sickly) Lock(name string) {
	var held sync.Mutex
	held.Lock()
	task.Go(func(context.Context) {
		_, _ = childtest.WaitAt(context.Background(), s.job.Gate, name) // as above
		held.Unlock()
	})
	held.Lock()
	held.Unlock() //nolint:staticcheck // nothing to do in between
}

// Echo returns its argument.
func (s *sickly) Echo(n int) int { return n }

// Size returns how much has arrived, and as much again.
func (s *sickly) Size(b []byte) []byte { return b }

// Enter records its execution.
func (s *sickly) Enter(id string) error { return testkit.Ledger{Path: s.job.Ledger}.Enter(id) }

// Ail makes Health do something else from now on.
func (s *sickly) Ail(how string) { s.ail.Store(how) }

// Asked returns how often Health was asked.
func (s *sickly) Asked() int64 { return s.asked.Load() }

// Health is the hook.
func (s *sickly) Health(ctx context.Context) error {
	s.asked.Add(1)
	switch s.ail.Load() {
	case "error":
		return errSickly
	case "panic":
		panic(errSickly)
	case "hang":
		_, _ = childtest.WaitAt(context.WithoutCancel(ctx), s.job.Gate, "health")
	}
	return nil
}

// kindOf is the built-in kind of that type.
func kindOf(t testing.TB, kind supervisor.ChildType) childtest.Kind {
	t.Helper()
	for _, k := range childtest.Kinds() {
		if k.Type == kind {
			return k
		}
	}
	require.Fail(t, "no such kind", "%v", kind)
	panic("unreachable")
}

// startSickly starts a sickly child. It outlasts the context of the rig.
func startSickly(t *testing.T, kind supervisor.ChildType, opts ...supervisor.ChildOption) *childtest.Rig {
	t.Helper()
	r := childtest.NewRig(t, kindOf(t, kind))
	r.ID = register(t, r.Sup, newSickly.With(sicklyJob{r.Gate.Address, r.Ledger.Path}), opts...)
	require.NoError(t, r.Sup.StartLink(context.Background()), "StartLink")
	return r
}

// echoes checks that a sickly child answers, and returns what the snapshot shows of it.
func echoes(t *testing.T, r *childtest.Rig) supervisor.ChildSnapshot {
	t.Helper()
	require.Equal(t, 7, childtest.CallOf[int](t, r, r.ID, "Echo", 7), "Echo")
	return r.Child(t, r.ID)
}
