package faulttest_test

// Very many goroutine children in one supervisor.

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// crowdMember is the object of children of which there are many. It takes no memory.
type crowdMember struct{}

var newCrowdMember = supervisor.Define("faulttest.crowdMember", func(context.Context) (crowdMember, error) { return crowdMember{}, nil })

// Echo returns its argument.
func (crowdMember) Echo(n int) int { return n }

// memoryInUse is what heap and stacks take after a collection.
func memoryInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse) //nolint:gosec // less than an exabyte
}

func TestG03ManyChildren(t *testing.T) {
	testkit.NoLeaks(t)
	many := times(10_000, 100_000)
	// The times only catch a hang. A child takes 7.5 KB once it has started and 12.5 KB once it was called: 4.5 KB for each
	// of its two goroutines, the rest for what it is made of.
	const start, stop = 30 * time.Second, 30 * time.Second
	const idle, used = 11 << 10, 18 << 10 // bytes
	ctx := context.Background()
	sup := newSupervisor(t, supervisor.Goroutine)
	before := memoryInUse()
	for range many {
		_, err := sup.Register(ctx, newCrowdMember) // register would leave a timer for each
		require.NoError(t, err, "Register")
	}
	began := time.Now()
	testkit.Within(t, start, func() { require.NoError(t, sup.StartLink(ctx), "StartLink") })
	started := time.Since(began)
	perIdle := (memoryInUse() - before) / int64(many)
	began = time.Now()
	for id := range many {
		n, err := supervisor.Call[int](ctx, sup, id, "Echo", id)
		require.NoError(t, err, "Call of child %d", id)
		require.Equal(t, id, n, "answer of child %d", id)
	}
	called := time.Since(began)
	perUsed := (memoryInUse() - before) / int64(many)
	began = time.Now()
	testkit.Within(t, stop, func() { require.NoError(t, sup.Shutdown(ctx), "Shutdown") })
	t.Logf("%d children: started in %v, called in %v, stopped in %v; bytes each %d after the start, %d after a call",
		many, started, called, time.Since(began), perIdle, perUsed)
	require.Less(t, perIdle, int64(idle*testkit.Slowdown), "bytes of a child that has started")
	require.Less(t, perUsed, int64(used*testkit.Slowdown), "bytes of a child that was called")
}
