package supervisor_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/proc"
)

// Every kind of child passes the same suite.

func TestGoroutineChildren(t *testing.T) {
	childtest.Run(t, func(*testing.T) childtest.Kind { return childtest.Goroutines() })
}

func TestCopyingGoroutineChildren(t *testing.T) {
	childtest.Run(t, func(*testing.T) childtest.Kind { return childtest.Copies() })
}

func TestProcessChildren(t *testing.T) {
	if !proc.Supported {
		sup, err := supervisor.New(supervisor.Process)
		require.NoError(t, err)
		_, err = sup.Register(t.Context(), childtest.Spec(childtest.Job{}))
		require.ErrorIs(t, err, supervisor.ErrUnsupported)
		return
	}
	childtest.Run(t, func(*testing.T) childtest.Kind { return childtest.Processes() })
}

func TestOutsideChildren(t *testing.T) {
	childtest.Run(t, func(*testing.T) childtest.Kind {
		var all outsideChildren
		return childtest.Kind{Name: "outside", Type: supervisor.Goroutine, Register: all.register, Kill: all.kill}
	})
}

// outsideChildren are those of one test.
type outsideChildren struct {
	mu sync.Mutex
	of map[*supervisor.Supervisor]map[int]*outsideChild
}

func (a *outsideChildren) register(ctx context.Context, s *supervisor.Supervisor, job childtest.Job, opts ...supervisor.ChildOption) (int, error) {
	c := &outsideChild{job: job}
	id, err := s.RegisterChild(ctx, c, opts...)
	if err != nil {
		return id, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil {
		a.of = make(map[*supervisor.Supervisor]map[int]*outsideChild)
	}
	if a.of[s] == nil {
		a.of[s] = make(map[int]*outsideChild)
	}
	a.of[s][id] = c
	return id, nil
}

func (a *outsideChildren) kill(t testing.TB, s *supervisor.Supervisor, id int) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	require.Contains(t, a.of[s], id, "children of the supervisor")
	a.of[s][id].kill()
}
