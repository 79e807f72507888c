package supervisor_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// leaky is an object that keeps what it is given.
type leaky struct{ kept [][]byte }

var newLeaky = supervisor.Define("supervisor_test.leaky", func(context.Context) (*leaky, error) { return &leaky{}, nil })

// Leak keeps so many bytes, all of them touched.
func (l *leaky) Leak(n int) int {
	b := make([]byte, n)
	for i := 0; i < n; i += 512 {
		b[i] = 1
	}
	l.kept = append(l.kept, b)
	return len(l.kept)
}

func TestRecycleByMemory(t *testing.T) {
	testkit.NoLeaks(t)
	const most, piece = 256 << 20, 8 << 20
	r := childtest.NewRig(t, childtest.Processes())
	r.ID = register(t, r.Sup, newLeaky, supervisor.Recycle{MaxMemory: most})
	r.StartLink(t)
	first := r.Child(t, r.ID)
	require.Positive(t, first.Memory, "memory of a worker")
	require.Less(t, first.Memory, int64(most/2), "memory of a worker that has not leaked")
	for n := range 2 { // the race detector makes much more of them
		require.Equal(t, n+1, childtest.CallOf[int](t, r, r.ID, "Leak", piece), "pieces kept by the first life")
	}
	some := r.Child(t, r.ID).Memory
	require.GreaterOrEqual(t, some, first.Memory+3*piece/2, "memory by the snapshot after two pieces")
	for kept := 2; kept > 1 && kept <= most/piece; { // until it is too much
		kept = childtest.CallOf[int](t, r, r.ID, "Leak", piece)
	}
	old := r.Events.Wait(t, supervisor.EventRecycled)
	require.Equal(t, first.Incarnation, old.Incarnation, "the life that was recycled")
	require.Contains(t, old.Text, "MiB of its own", "why")
	childtest.CallOf[int](t, r, r.ID, "Leak", 1)
	require.Less(t, r.Child(t, r.ID).Memory, int64(most/2), "memory of the life after it")
	requireNoCrash(t, r)
}

func TestRecycleByMemoryRefused(t *testing.T) {
	sup := newSupervisor(t, supervisor.Goroutine)
	_, err := sup.Register(t.Context(), newLeaky, supervisor.Recycle{MaxMemory: 1})
	require.ErrorIs(t, err, supervisor.ErrUnsupported, "MaxMemory of a goroutine child")
	for name, bad := range map[string]supervisor.Recycle{"age": {MaxAge: -1}, "memory": {MaxMemory: -1}} {
		_, err = sup.Register(t.Context(), newLeaky, supervisor.WithType(supervisor.Process), bad)
		require.ErrorIs(t, err, supervisor.ErrBadArgs, "negative %s", name)
	}
}
