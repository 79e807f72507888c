package faulttest_test

// Many requests, and large ones beside small ones.

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

// p99 of durations, which it sorts.
func p99(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)*99/100]
}

// loadRound has callers call the children with numbers from first on, and returns how long each call took.
func loadRound(t *testing.T, sup *supervisor.Supervisor, children, first, n int) (took []time.Duration) {
	t.Helper()
	const callers = 16
	var mu sync.Mutex
	var wrong error
	var working sync.WaitGroup
	for caller := range callers {
		working.Go(func() {
			var own []time.Duration
			for i := first + caller; i < first+n; i += callers {
				began := time.Now()
				got, err := supervisor.Call[int](context.Background(), sup, i%children, "Tell", i)
				own = append(own, time.Since(began))
				if err != nil || got != i {
					mu.Lock()
					wrong = fmt.Errorf("message %d: %d, %w", i, got, err)
					mu.Unlock()
					return
				}
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, own...)
		})
	}
	working.Wait()
	require.NoError(t, wrong, "a message and its echo")
	return took
}

// teller echoes, and keeps count of what it was told.
type teller struct{ told, sum int }

var newTeller = supervisor.Define("faulttest.teller", func(context.Context) (*teller, error) { return &teller{}, nil })

// Tell returns its argument.
func (o *teller) Tell(n int) int { o.told++; o.sum += n; return n }

// Told returns how many numbers were told, and their sum.
func (o *teller) Told() []int { return []int{o.told, o.sum} }

// Heap returns how many bytes are in use where the object lives.
func (o *teller) Heap() uint64 { return clerkHeap() }

// Each message is answered by its own echo, and executed once: the workers' sums are those of the numbers sent.
func TestL02ManyMessages(t *testing.T) {
	notShort(t)
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		const children = 8
		all, rounds := times(40_000, 10_000_000), 10
		sup := newSupervisor(t, k.Type)
		for range children {
			register(t, sup, newTeller)
		}
		require.NoError(t, sup.StartLink(context.Background()), "StartLink")
		heaps := func() (host, worker uint64) {
			worker, err := supervisor.Call[uint64](context.Background(), sup, 0, "Heap")
			require.NoError(t, err, "Heap")
			return clerkHeap(), worker
		}
		var firstP99, lastP99 time.Duration
		var host, worker uint64
		for round := range rounds {
			took := loadRound(t, sup, children, round*all/rounds, all/rounds)
			require.Len(t, took, all/rounds, "messages of round %d", round)
			if lastP99 = p99(took); round == 0 {
				firstP99 = lastP99
				host, worker = heaps()
			}
		}
		hostEnd, workerEnd := heaps()
		limit := uint64(1<<20) + uint64(all)
		require.Less(t, hostEnd, host+limit, "bytes in use in the host; after the first round %d", host)
		require.Less(t, workerEnd, worker+limit, "bytes in use in a worker; after the first round %d", worker)
		t.Logf("99th percentile of the first round %v, of the last %v", firstP99, lastP99)
		if soak {
			require.Less(t, lastP99, firstP99*3/2, "99th percentile of the last round")
		}
		told, sum := 0, 0
		results, err := supervisor.Broadcast[[]int](context.Background(), sup, "Told")
		require.NoError(t, err, "Told")
		for _, r := range results {
			told += r.Value[0]
			sum += r.Value[1]
		}
		require.Equal(t, []int{all, all * (all - 1) / 2}, []int{told, sum}, "messages executed, and the sum of their numbers")
		nothingLeft(t, sup)
		shutdown(t, sup)
	})
}

// Who waits for a slow child is served as soon as that has answered, whatever others do meanwhile; theirs stay theirs.
func TestL04NobodyIsPutBack(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		r := childtest.StartTwo(t, k)
		slow, v := r.Occupy(t, r.ID)
		var got supervisor.RecvPayload
		waiting := task.Go(func(context.Context) { got = r.Recv(t, slow) })
		const unclaimed = 1000
		flood := times(20_000, 200_000)
		var ids []string
		for n := range flood {
			p := supervisor.NewSendPayload(r.Other, "Int", n)
			require.NoError(t, r.Sup.Send(context.Background(), p), "Send")
			if ids = append(ids, p.ReqID); n < unclaimed {
				continue // so that there is a heap of replies that nobody takes
			}
			if n == flood/2 {
				v.Release(t, "at last")
				testkit.Within(t, testkit.Limit, waiting.Wait)
				require.Equal(t, "at last", got.Data, "what the waiter got, in the middle of the flood")
			}
			reply, err := r.Sup.Recv(context.Background())
			require.NoError(t, err, "Recv")
			require.Equal(t, ids[n-unclaimed], reply.ReqID, "replies in the order of their arrival")
		}
		for range unclaimed {
			_, err := r.Sup.Recv(context.Background())
			require.NoError(t, err, "Recv")
		}
		nothingLeft(t, r.Sup)
		shutdown(t, r.Sup)
	})
}

// sizes are those of mixed load.
func sizes() (all []int) {
	for n := 1; n <= 16<<20; n *= 8 {
		all = append(all, n-1, n, n+1)
	}
	return all
}

// While large payloads are on their way to and from one child, small ones pass to and from another.
func TestL07MixedSizes(t *testing.T) {
	notShort(t)
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		r := childtest.StartTwo(t, k)
		ctx := context.Background()
		for _, n := range sizes() {
			b := make([]byte, n)
			if n > 0 {
				b[0], b[n-1] = 1, 2
			}
			got, err := supervisor.Call[[]byte](ctx, r.Sup, r.ID, "Bytes", b)
			require.NoError(t, err, "%d bytes", n)
			require.Equal(t, b, got, "%d bytes", n)
		}
		small := func(n int) (took []time.Duration) {
			for range n {
				began := time.Now()
				_, err := supervisor.Call[int](ctx, r.Sup, r.ID, "Int", 1)
				took = append(took, time.Since(began))
				require.NoError(t, err, "a small call")
			}
			return took
		}
		alone := p99(small(times(500, 20_000)))
		over, large := atomic.Bool{}, make([]byte, 16<<20)
		var calls atomic.Int64
		others := task.Go(func(context.Context) {
			for !over.Load() {
				if _, err := supervisor.Call[[]byte](ctx, r.Sup, r.Other, "Bytes", large); err != nil {
					return
				}
				calls.Add(1)
			}
		})
		testkit.Until(t, "the large calls have begun", func() bool { return calls.Load() > 0 })
		if k.Can.Process { // by reference a large call is as short as a small one
			testkit.Until(t, "many small calls pass while one large call is under way", func() bool {
				before := calls.Load()
				small(20)
				return calls.Load() == before
			})
		}
		beside := p99(small(times(500, 20_000)))
		over.Store(true)
		others.Wait()
		require.Positive(t, calls.Load(), "large calls that were answered")
		t.Logf("99th percentile alone %v, beside large calls %v, on %d processors", alone, beside, runtime.GOMAXPROCS(0))
		if soak {
			require.Less(t, beside, 3*alone, "99th percentile beside large calls")
		}
		shutdown(t, r.Sup)
	})
}
