package faulttest_test

// Handlers that end what they are part of.

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
)

// suicide is an object that has its own supervisor.
type suicide struct {
	sup    *supervisor.Supervisor
	result chan error // what the end said, after the handler's own verdict
}

// Shutdown ends all with the handler's own context.
func (s *suicide) Shutdown(ctx context.Context) error {
	err := s.sup.Shutdown(ctx)
	s.result <- err
	return err
}

// ShutdownForLong ends all and would wait for ever.
func (s *suicide) ShutdownForLong() error { return s.Shutdown(context.Background()) }

// Kill ends all at once.
func (s *suicide) Kill() error {
	err := s.sup.Close()
	s.result <- err
	return err
}

// Unregister ends the child itself.
func (s *suicide) Unregister(ctx context.Context) error {
	err := s.sup.Unregister(ctx, 0)
	s.result <- err
	return err
}

// Restart gives the child a new life.
func (s *suicide) Restart(ctx context.Context) error {
	err := s.sup.Restart(ctx, 0)
	s.result <- err
	return err
}

// Ping returns 1.
func (s *suicide) Ping() int { return 1 }

// A handler waits for an end that waits for the handler: one of them is told in time.
func TestX09ShutdownFromAHandler(t *testing.T) {
	const grace, termGrace, last = time.Second, time.Minute, 200 * time.Millisecond
	for _, tt := range []struct {
		method  string
		atLeast time.Duration
		verdict error // of the request
		end     error // what the handler is told
		stuck   bool  // it is named as what could not be ended
		lives   bool  // the supervisor goes on
		pings   bool  // and so does the child
	}{
		// The grace ends the handler's context, and with it Shutdown, which then kills.
		{method: "Shutdown", atLeast: grace, verdict: supervisor.ErrClosed, end: supervisor.ErrTimeout, stuck: true},
		{method: "ShutdownForLong", atLeast: grace + termGrace, verdict: supervisor.ErrClosed, stuck: true},
		{method: "Kill", verdict: supervisor.ErrClosed, stuck: true},
		{method: "Unregister", atLeast: grace, verdict: supervisor.ErrClosed, stuck: true, lives: true},
		// Its requests are withdrawn at once, so that the handler's context has ended as well. The next life may be quicker.
		{method: "Restart", verdict: supervisor.ErrRestarted, end: supervisor.ErrCanceled, lives: true, pings: true},
	} {
		t.Run(tt.method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &suicide{sup: newSupervisor(t, supervisor.Goroutine), result: make(chan error, 1)}
				register(t, s.sup, supervisor.Object(s), supervisor.Stop{Grace: grace, TermGrace: termGrace})
				register(t, s.sup, newCrowdMember)
				require.NoError(t, s.sup.StartLink(context.Background()), "StartLink")
				began := time.Now()
				_, err := s.sup.Do(context.Background(), supervisor.NewSendPayload(0, tt.method))
				require.ErrorIs(t, err, tt.verdict, "verdict of the request")
				end := <-s.result
				took := time.Since(began)
				require.GreaterOrEqual(t, took, tt.atLeast, "time until the handler goes on")
				require.LessOrEqual(t, took, tt.atLeast+last, "time until the handler goes on")
				if tt.end != nil && (end != nil || !tt.pings) {
					require.ErrorIs(t, end, tt.end, "what the handler is told")
				}
				if tt.stuck {
					var stuck *supervisor.StuckError
					require.ErrorAs(t, end, &stuck, "what the handler is told")
					require.Equal(t, []any{0, tt.method}, []any{stuck.ProcID, stuck.Method}, "what is stuck")
				}
				synctest.Wait()
				if tt.lives {
					n, err := supervisor.Call[int](context.Background(), s.sup, 1, "Echo", 7)
					require.NoError(t, err, "Call of the sibling")
					require.Equal(t, 7, n, "its answer")
				} else {
					<-s.sup.Done()
				}
				if tt.pings {
					_, err := supervisor.Call[int](context.Background(), s.sup, 0, "Ping")
					require.NoError(t, err, "Call of the child in its new life")
				}
			})
		})
	}
}
