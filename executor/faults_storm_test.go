package executor_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/executor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// Everything at once: sizes that change, submits, cancels and deadlines at every moment, loops that are left or panic,
// workers that are killed or recycled or idle for too long, and in the end Shutdown or KillWorkers in the middle of it.
// Each task has one verdict, is executed at most once, and the counts are right.
func TestStorm(t *testing.T) {
	for _, kind := range kinds() {
		for round := range often(4, 1000) {
			t.Run(fmt.Sprintf("%v/%d", kind, round), func(t *testing.T) { storm(t, kind, round) })
		}
	}
}

func storm(t *testing.T, kind supervisor.ChildType, round int) {
	ledger := testkit.NewLedger(t)
	testkit.NoLeaks(t)
	events := testkit.NewRecorder(ofType)
	x := bare(t, executor.Options{
		MaxWorkers: 3, Queue: 20, IdleTimeout: time.Millisecond, Breaker: executor.Breaker{Max: -1, Backoff: quick}, Events: events.Record,
		Workers: ofKind(kind, supervisor.Recycle{MaxRequests: 50, Rolling: round%2 == 0}),
	})
	var accepted, settled, entered atomic.Int64
	var all sync.WaitGroup
	n := often(60, 300)
	for s := range 3 { // submitters
		all.Go(func() {
			for i := range n {
				ctx, cancel := context.WithCancel(context.Background())
				if i%3 == 0 {
					ctx, cancel = context.WithTimeout(ctx, rand.N(3*time.Millisecond))
				}
				o := order{Ledger: ledger.Path, ID: fmt.Sprintf("%d.%d", s, entered.Add(1))}
				f, err := obey.Submit(ctx, x, o)
				if err != nil {
					cancel()
					if !anyIs(err, supervisor.ErrClosed, supervisor.ErrTimeout) {
						t.Errorf("Submit: %v", err)
					}
					continue
				}
				accepted.Add(1)
				all.Go(func() {
					defer cancel()
					_, _ = f.Result(testkit.Context(t))
					select {
					case <-f.Done():
						settled.Add(1)
					default:
						t.Errorf("task %s has no verdict", o.ID)
					}
				})
				if i%4 == 1 {
					all.Go([]func(){f.Cancel, cancel}[i%2])
				}
			}
		})
	}
	all.Go(func() { // loops
		for i := range 6 {
			loop(x, ledger, &entered, i)
		}
	})
	all.Go(func() { // sizes
		for range 2 * n {
			if x.Resize(1+rand.IntN(5)) != nil {
				return
			}
			_, _ = x.Stats(), x.Snapshot()
		}
	})
	all.Go(func() { // kills
		for range 10 {
			if pids := pidsOf(events); kind == supervisor.Process && len(pids) > 0 {
				strike(pids[len(pids)-1])
			}
			testkit.Until(t, "something has happened", func() bool { return x.Stats().Done > 0 || x.Resize(3) != nil })
		}
	})
	testkit.Until(t, "it is in the middle", func() bool { return accepted.Load() >= int64(n) })
	if round%2 == 0 {
		shutdown(t, x)
	} else {
		_ = x.KillWorkers() // goroutines may be in the middle of a task
	}
	all.Wait()
	require.Equal(t, accepted.Load(), settled.Load(), "verdicts")
	onceEach(t, ledger, int(entered.Load()), int(entered.Load()))
	stats := x.Stats()
	require.Zero(t, stats.Queued+stats.Running+stats.Workers.Now, "what is left: %+v", stats)
}

// loop runs a Map that ends in one of several ways.
func loop(x *executor.Executor, ledger testkit.Ledger, entered *atomic.Int64, way int) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second*testkit.Slowdown)
	defer cancel()
	defer func() { _ = recover() }()
	items := 0
	opts := []executor.MapOption{executor.Prefetch(1 + 10*way)}
	if way%2 == 0 {
		opts = append(opts, executor.Chunk(1+way))
	}
	for range executor.MapUnordered(ctx, x, obey, func(yield func(order) bool) {
		for i := 0; i < 60; i++ {
			if way == 3 && i == 30 {
				panic("input")
			}
			if !yield(order{Ledger: ledger.Path, ID: fmt.Sprint("map", entered.Add(1))}) {
				return
			}
		}
	}, opts...) {
		switch items++; {
		case way == 1 && items == 20:
			return
		case way == 2 && items == 20:
			panic("body")
		case way == 4 && items == 20:
			cancel()
		}
	}
}
