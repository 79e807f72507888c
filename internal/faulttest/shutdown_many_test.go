package faulttest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

// shutdownGuest is the object of children whose Close waits at the gate.
type shutdownGuest struct{ gate string }

var newShutdownGuest = supervisor.DefineWith("faulttest.shutdownGuest", func(_ context.Context, gate string) (shutdownGuest, error) {
	return shutdownGuest{gate}, nil
})

// Ping returns 1.
func (shutdownGuest) Ping() int { return 1 }

// Close returns when the gate lets it go.
func (g shutdownGuest) Close() error {
	_, err := childtest.WaitAt(context.Background(), g.gate, "Close")
	return err
}

// All are at their ends at the same time: were they stopped one after the other, the second would not come to the gate
// before the first has left it.
func TestX11ManyChildrenStopAtOnce(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		many := times(100, 500)
		if k.Can.Process {
			many = times(16, 500)
		}
		gate := childtest.NewGate(t)
		sup := newSupervisor(t, k.Type, supervisor.WithDefaults(supervisor.Stop{Grace: testkit.Limit}, supervisor.WithStartTimeout(testkit.Limit)))
		for range many {
			register(t, sup, newShutdownGuest.With(gate.Address))
		}
		require.NoError(t, sup.StartLink(context.Background()), "StartLink")
		ended := make(chan error, 1)
		task.Go(func(context.Context) { ended <- sup.Shutdown(testkit.Context(t)) })
		var guests []*childtest.Visitor
		for range many {
			guests = append(guests, gate.Next(t))
		}
		began := time.Now()
		for _, v := range guests {
			v.Release(t, "")
		}
		require.NoError(t, testkit.Receive(t, ended, "Shutdown"), "Shutdown")
		require.Less(t, time.Since(began), 3*time.Second*testkit.Slowdown, "time of the end after the last Close")
	})
}
