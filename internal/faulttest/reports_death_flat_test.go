//go:build linux || darwin

package faulttest_test

// Reports of hosts that grow a little with each worker that ends.

import (
	"context"
	"os"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// holdings is what a process can lose track of.
type holdings struct {
	heap        uint64
	goroutines  int
	descriptors int
}

func takeHoldings(t *testing.T) holdings {
	t.Helper()
	runtime.GC()
	runtime.GC() // what finalizers let go of
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	open, err := os.ReadDir("/dev/fd")
	require.NoError(t, err, "list of descriptors")
	return holdings{m.HeapAlloc, runtime.NumGoroutine(), len(open)}
}

// stayFlat runs a round again and again, and asserts that after the first few it leaves nothing more behind.
func stayFlat(t *testing.T, rounds int, round func()) {
	t.Helper()
	for range 3 { // pools and pollers come up
		round()
	}
	before := takeHoldings(t)
	for range rounds {
		round()
	}
	var after holdings
	testkit.Until(t, "as few goroutines and descriptors as before", func() bool {
		after = takeHoldings(t)
		return after.goroutines <= before.goroutines && after.descriptors <= before.descriptors
	})
	require.Less(t, after.heap, before.heap+5<<20, "bytes of heap after %d rounds", rounds)
}

func TestC01ManyDeathsLeaveNothing(t *testing.T) {
	testkit.NoLeaks(t)
	sup := started(t, supervisor.Process, childtest.Spec(childtest.Job{}), mayfly)
	ctx := context.Background()
	stayFlat(t, times(15, 500), func() {
		pid, err := supervisor.Call[int](ctx, sup, 0, "Pid")
		require.NoError(t, err, "Pid")
		deathSignal(t, pid, syscall.SIGKILL)
		testkit.Until(t, "the child has ended", func() bool { return sup.Snapshot().Children[0].State == supervisor.StateEnded })
		require.NoError(t, sup.Restart(ctx, 0), "Restart")
	})
}

func TestC06ManyGenerationsLeaveNothing(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		rounds := times(100, 1000)
		if k.Can.Process {
			rounds = times(10, 1000)
		}
		sup := newSupervisor(t, k.Type)
		register(t, sup, childtest.Spec(childtest.Job{}))
		stayFlat(t, rounds, func() {
			require.NoError(t, sup.StartLink(context.Background()), "StartLink")
			shutdown(t, sup)
		})
	})
}
