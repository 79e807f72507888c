package supervisor_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// ticker is written as services for thejerf/suture are, and knows nothing of us.
type ticker struct {
	every time.Duration
	name  string
	ticks chan int
}

// Serve ticks until its context ends; the third tick is too much for it.
func (s *ticker) Serve(ctx context.Context) error {
	clock := time.NewTicker(s.every)
	defer clock.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-clock.C:
			select {
			case s.ticks <- n:
			case <-ctx.Done():
				return ctx.Err()
			}
			if n == 3 {
				return fmt.Errorf("%s is worn out", s.name)
			}
		}
	}
}

func (s *ticker) String() string { return s.name }

func TestSutureServiceRunsUnchanged(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, seen := &ticker{time.Second, "ticker", make(chan int)}, &events{}
		sup := newSupervisor(t, supervisor.Goroutine, supervisor.WithEvents(seen.take))
		register(t, sup, supervisor.Object(s))
		ctx, cancel := context.WithCancel(context.Background())
		served := make(chan error, 1)
		go func() { served <- sup.Serve(ctx) }()
		began := time.Now()
		for i, want := range []int{1, 2, 3, 1, 2, 3, 1} { // the service is told nothing, and begins anew by itself
			require.Equal(t, want, <-s.ticks, "tick %d", i)
		}
		require.InDelta(t, 7.1, time.Since(began).Seconds(), 0.03, "seconds of seven ticks and of two restarts")
		for _, e := range seen.of(supervisor.EventExited) {
			require.ErrorContains(t, e.Err, "ticker is worn out", "why a life ended")
			require.Equal(t, "ticker", e.Name, "the name of the child: its own")
		}
		_, err := supervisor.Call[string](t.Context(), sup, 0, "String")
		require.ErrorIs(t, err, supervisor.ErrNoSuchMethod, "String describes the service")
		cancel()
		require.NoError(t, <-served, "Serve of the supervisor, whose ctx has ended")
		stopped := seen.of(supervisor.EventStopped)
		require.Len(t, stopped, 1, "events of being stopped")
		require.NoError(t, stopped[0].Err, "its error: ending with its context is in order")
	})
}

// remoteTicker makes the same service in another process.
var remoteTicker = supervisor.DefineWith("supervisor_test.ticker", func(_ context.Context, name string) (*ticker, error) {
	s := &ticker{time.Millisecond, name, make(chan int, 3)}
	return s, nil
})

func TestSutureServiceAsAProcess(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		seen := newRecorder()
		sup := newSupervisor(t, kind, supervisor.WithEvents(seen.Record))
		register(t, sup, remoteTicker.With("far"), supervisor.Restart{Max: 1})
		require.NoError(t, sup.StartLink(context.Background()), "StartLink")
		given := seen.Wait(t, supervisor.EventGivenUp)
		require.ErrorIs(t, given.Err, supervisor.ErrRestartLimit, "after two lives")
		require.ErrorContains(t, given.Err, "far is worn out", "the last cause")
		require.NoError(t, sup.Shutdown(testkit.Context(t)), "Shutdown")
	})
}
