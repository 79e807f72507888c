package faulttest_test

// Goroutine children whose handlers do not return. They cannot be ended, so they are named, and what they still do
// concerns nobody.

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// sleeper is an object whose handlers heed nothing but the test.
type sleeper struct {
	mu     sync.Mutex
	wake   chan struct{}
	awake  atomic.Bool
	closed chan struct{}
}

func newSleeper() *sleeper { return &sleeper{wake: make(chan struct{}), closed: make(chan struct{})} }

// Wait waits on a channel.
func (s *sleeper) Wait() int { <-s.wake; return 1 }

// Lock waits for a mutex.
func (s *sleeper) Lock() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return 1
}

// Spin never waits.
func (s *sleeper) Spin() int {
	n := 1
	for !s.awake.Load() {
		n++
	}
	return n
}

// Echo returns its argument.
func (*sleeper) Echo(n int) int { return n }

// Close says that it ran.
func (s *sleeper) Close() error { close(s.closed); return nil }

// moduleGoroutines are those that run code of ours, by their numbers.
func moduleGoroutines() map[string]string {
	found := make(map[string]string)
	for i, stack := range strings.Split(testkit.Stacks(), "\n\n") {
		if i > 0 && strings.Contains(stack, "github.com/workerlink/supervisor") { // the first one is this one
			id, _, _ := strings.Cut(strings.TrimPrefix(stack, "goroutine "), " ")
			found[id] = stack
		}
	}
	return found
}

// newGoroutines are those that have come since, of which as many are expected. Some others may still be ending.
func newGoroutines(t testing.TB, before map[string]string, want int) (stacks string) {
	t.Helper()
	testkit.Until(t, "no other goroutine is left", func() bool {
		now := moduleGoroutines()
		maps.DeleteFunc(now, func(id, _ string) bool { _, old := before[id]; return old })
		stacks = strings.Join(slices.Collect(maps.Values(now)), "\n\n")
		return len(now) <= want
	})
	return stacks
}

// outlasts has a handler that does not return outlast its call and its supervisor.
func outlasts(t *testing.T, spec supervisor.Spec, object, method string, release func(t testing.TB)) {
	const grace, termGrace = 100 * time.Millisecond, 50 * time.Millisecond
	const limit = 50 * time.Millisecond // of the call
	letGo := sync.OnceFunc(func() { release(t) })
	before := moduleGoroutines()
	seen := testkit.NewRecorder(func(e supervisor.Event) supervisor.EventKind { return e.Kind })
	sup := newSupervisor(t, supervisor.Goroutine, supervisor.WithEvents(seen.Record))
	id := register(t, sup, spec, supervisor.WithName("sleeper"), supervisor.Stop{Grace: grace, TermGrace: termGrace})
	other := register(t, sup, newCrowdMember)
	require.NoError(t, sup.StartLink(context.Background()), "StartLink")
	defer letGo()

	reqs := send(t, sup, supervisor.NewSendPayload(id, method))
	inCall(t, object+"."+method)
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	got, err := sup.RecvAll(ctx, reqs, supervisor.IgnoreErr())
	shutdownTook(t, time.Since(began), limit)
	require.NoError(t, err, "RecvAll")
	require.ErrorIs(t, got[0].Err, supervisor.ErrTimeout, "verdict of the call")
	n, err := supervisor.Call[int](testkit.Context(t), sup, other, "Echo", 7)
	require.NoError(t, err, "Call of the sibling")
	require.Equal(t, 7, n, "its answer")

	began = time.Now()
	err = sup.Shutdown(context.Background())
	shutdownTook(t, time.Since(began), grace+termGrace)
	var stuck *supervisor.StuckError
	require.ErrorAs(t, err, &stuck, "Shutdown")
	require.Equal(t, []any{id, "sleeper", method, false}, []any{stuck.ProcID, stuck.Name, stuck.Method, stuck.Killed}, "what is stuck")
	require.Contains(t, stuck.Stack, method, "its stack")
	require.ErrorContains(t, err, method, "the text")
	require.NotContains(t, err.Error(), "child 1", "what is not stuck")
	require.Equal(t, stuck, seen.Wait(t, supervisor.EventStuck).Err, "the event that says so")
	stacks := newGoroutines(t, before, 2) // the handler, and who waits for it to run Close
	require.Contains(t, stacks, object+"."+method+"(", "what is left of the supervisor")
	require.Contains(t, stacks, "(*threadLink).end", "what is left of the supervisor")
	require.Equal(t, err, sup.Shutdown(context.Background()), "Shutdown says the same again")

	letGo()
	require.Empty(t, newGoroutines(t, before, 0), "goroutines, once the handler has returned")
	_, err = sup.Recv(context.Background())
	require.ErrorIs(t, err, supervisor.ErrClosed, "Recv after all")
}

func TestG01HandlerNeverReturns(t *testing.T) {
	for _, tt := range []struct {
		method  string
		release func(s *sleeper)
	}{
		{"Wait", func(s *sleeper) { close(s.wake) }},
		{"Lock", func(s *sleeper) { s.mu.Unlock() }},
		{"Spin", func(s *sleeper) { s.awake.Store(true) }},
	} {
		t.Run(tt.method, func(t *testing.T) {
			testkit.NoLeaks(t)
			s := newSleeper()
			s.mu.Lock()
			outlasts(t, supervisor.Object(s), "(*sleeper)", tt.method, func(testing.TB) { tt.release(s) })
			testkit.Closed(t, s.closed, "Close of the object, once its handler has returned")
		})
	}
}

// What a handler returns after the end of its supervisor goes nowhere: not to those who asked, nor to the next generation.
func TestG02StuckHandlerWakes(t *testing.T) {
	for _, tt := range []struct {
		name  string
		again bool // there is another generation when it wakes
	}{
		{"after Shutdown", false},
		{"in the next generation", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			testkit.NoLeaks(t)
			s := newSleeper()
			objects := make(chan *sleeper, 2)
			objects <- s
			objects <- newSleeper()
			sup := newSupervisor(t, supervisor.Goroutine)
			sleeperQueue.Store(&objects)
			register(t, sup, newQueuedSleeper, supervisor.Stop{Grace: -1, TermGrace: -1})
			require.NoError(t, sup.StartLink(context.Background()), "StartLink")
			reqs := send(t, sup, supervisor.NewSendPayload(0, "Wait"))
			inCall(t, "(*sleeper).Wait")
			ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
			defer cancel()
			var stuck *supervisor.StuckError
			require.ErrorAs(t, sup.Shutdown(ctx), &stuck, "Shutdown")
			got, err := sup.RecvAll(testkit.Context(t), reqs, supervisor.IgnoreErr())
			require.NoError(t, err, "RecvAll")
			require.ErrorIs(t, got[0].Err, supervisor.ErrClosed, "verdict")
			if tt.again {
				require.NoError(t, sup.StartLink(context.Background()), "StartLink")
				same := supervisor.NewSendPayload(0, "Echo", 7)
				same.ReqID = reqs[0].ReqID // a reply that went by its id alone would answer this
				send(t, sup, same)
			}
			close(s.wake)
			testkit.Closed(t, s.closed, "Close of the old object, which is the last that it does")
			if tt.again {
				p, err := sup.Recv(testkit.Context(t))
				require.NoError(t, err, "Recv in the new generation")
				require.Equal(t, 7, p.Data, "the reply to its own request")
				require.Zero(t, sup.Snapshot().Unclaimed+sup.Snapshot().Open, "what is left")
				require.NoError(t, sup.Shutdown(testkit.Context(t)), "Shutdown, when nothing is stuck any more")
			}
			_, err = sup.Recv(context.Background())
			require.ErrorIs(t, err, supervisor.ErrClosed, "Recv at the end")
		})
	}
}

// sleeperQueue has the objects of the next lives of newQueuedSleeper.
var sleeperQueue atomic.Pointer[chan *sleeper]

var newQueuedSleeper = supervisor.Define("faulttest.sleeper", func(context.Context) (*sleeper, error) { return <-*sleeperQueue.Load(), nil })
