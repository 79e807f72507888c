package faulttest_test

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// burner keeps a processor busy until it is killed.
var burner = testkit.Helper("burner", func() {
	for forever := true; forever; {
		runtime.KeepAlive(forever)
	}
})

// burn starts programs that want four times the processors that there are.
func burn(t testing.TB) (stop func()) {
	t.Helper()
	var waits []func() error
	var kills []func() error
	for range 4 * runtime.NumCPU() {
		cmd := testkit.Command(t, burner)
		cmd.Env = append(cmd.Env, "GOMAXPROCS=1")
		require.NoError(t, cmd.Start(), "start a program that does nothing but that busily")
		waits = append(waits, cmd.Wait)
		kills = append(kills, cmd.Process.Kill)
	}
	return sync.OnceFunc(func() {
		for _, kill := range kills {
			_ = kill()
		}
		for _, wait := range waits {
			_ = wait() // it was killed
		}
	})
}

// spin has goroutines of the host fight for its one processor.
func spin(testing.TB) (stop func()) {
	before := runtime.GOMAXPROCS(1)
	var over atomic.Bool
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for !over.Load() { // that it does nothing is the point
			}
		})
	}
	return sync.OnceFunc(func() {
		over.Store(true)
		all.Wait()
		runtime.GOMAXPROCS(before)
	})
}

// Whoever gets no processor is late, but nobody is taken for dead.
func TestT06Starvation(t *testing.T) {
	const limit, late = 30 * time.Millisecond, time.Second
	calls := times(3, 50)
	for name, starve := range map[string]func(testing.TB) func(){"inside": spin, "outside": burn} {
		t.Run(name, func(t *testing.T) {
			eachKind(t, func(t *testing.T, k childtest.Kind) {
				seen := testkit.NewRecorder(func(e supervisor.Event) supervisor.EventKind { return e.Kind })
				sup := newSupervisor(t, k.Type, supervisor.WithEvents(seen.Record))
				for range 2 {
					if k.Can.Process {
						register(t, sup, newClockWorker, supervisor.Proc{Env: []string{"GOMAXPROCS=1"}})
					} else {
						register(t, sup, newClockWorker)
					}
				}
				require.NoError(t, sup.StartLink(context.Background()), "StartLink")
				before := sup.Snapshot().Children
				stop := starve(t)
				defer stop()
				var lateness []time.Duration
				for i := range calls {
					began := time.Now()
					ctx, cancel := context.WithTimeout(context.Background(), limit)
					_, err := supervisor.Call[any](ctx, sup, 0, "Await")
					cancel()
					require.ErrorIs(t, err, supervisor.ErrTimeout, "call %d", i)
					lateness = append(lateness, time.Since(began)-limit)
					_, err = supervisor.Call[int](testkit.Context(t), sup, 1, "Year")
					require.NoError(t, err, "call %d of the sibling", i)
				}
				stop()
				slices.Sort(lateness)
				require.GreaterOrEqual(t, lateness[0], time.Duration(0), "the earliest timeout")
				require.LessOrEqual(t, lateness[len(lateness)/2], late*testkit.Slowdown, "how late timeouts are: %v", lateness)
				for i, c := range sup.Snapshot().Children {
					require.Equal(t, before[i].Incarnation, c.Incarnation, "life of child %d", i)
					require.Zero(t, c.Restarts, "restarts of child %d", i)
				}
				shutdown(t, sup)
				for _, e := range seen.All() {
					require.NotContains(t, []supervisor.EventKind{supervisor.EventExited, supervisor.EventRestarting, supervisor.EventStuck},
						e.Kind, "an event that tells of a death: %v", e)
				}
			})
		})
	}
}
