package faulttest_test

// Handlers that send to the supervisor that they are part of.

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
)

// correspondent is an object whose handlers write to other children, or to itself.
type correspondent struct {
	sup   *supervisor.Supervisor
	begin chan struct{} // closed when Mutual may go on
}

// Flood sends to a child until that is refused, and returns how often it was not.
func (c *correspondent) Flood(ctx context.Context, to int) (n int, err error) {
	for ; err == nil; n++ {
		err = c.sup.Send(ctx, supervisor.NewSendPayload(to, "Echo", n))
	}
	return n - 1, err
}

// TryFlood is Flood that never waits.
func (c *correspondent) TryFlood(to int) (n int, err error) {
	for ; err == nil; n++ {
		err = c.sup.TrySend(supervisor.NewSendPayload(to, "Echo", n))
	}
	return n - 1, err
}

// Ask has a child answer, which may be itself.
func (c *correspondent) Ask(ctx context.Context, to int) (int, error) {
	return supervisor.Call[int](ctx, c.sup, to, "Echo", 7)
}

// Mutual sends to a child that is sending here.
func (c *correspondent) Mutual(ctx context.Context, to int) error {
	<-c.begin
	return c.sup.Send(ctx, supervisor.NewSendPayload(to, "Echo", 1))
}

// Echo returns its argument.
func (*correspondent) Echo(n int) int { return n }

// correspondents returns a running supervisor with two of them, whose queues have room for four requests each.
func correspondents(t *testing.T, opts ...supervisor.ChildOption) (*supervisor.Supervisor, *correspondent) {
	t.Helper()
	c := &correspondent{begin: make(chan struct{})}
	c.sup = newSupervisor(t, supervisor.Goroutine, supervisor.WithInboxLimit(16),
		supervisor.WithDefaults(append(opts, supervisor.Limits{Queue: 4})...))
	for range 2 {
		register(t, c.sup, supervisor.Object(c))
	}
	require.NoError(t, c.sup.StartLink(context.Background()), "StartLink")
	return c.sup, c
}

// fine checks that both children answer.
func fine(t *testing.T, sup *supervisor.Supervisor) {
	t.Helper()
	for id := range 2 {
		n, err := supervisor.Call[int](context.Background(), sup, id, "Echo", id)
		require.NoError(t, err, "Call of child %d afterwards", id)
		require.Equal(t, id, n, "its answer")
	}
}

func TestG04HandlerSendsToItsOwnSupervisor(t *testing.T) {
	for _, tt := range []struct {
		name   string
		method string
		opts   []supervisor.ChildOption
		to     int
		limit  time.Duration // of the request to the handler
		want   error         // what the handler gets for what it does; nil: it works
		took   time.Duration
	}{
		{name: "fills its own queue", method: "Flood", want: supervisor.ErrBusy},
		{name: "fills its own queue and never waits", method: "TryFlood", want: supervisor.ErrBusy},
		{name: "fills the inbox by another child", method: "Flood", to: 1, want: supervisor.ErrBusy},
		{name: "asks another child", method: "Ask", to: 1},
		{name: "asks itself", method: "Ask", limit: time.Second, want: supervisor.ErrTimeout, took: time.Second},
		{name: "asks itself, which has another hand", method: "Ask", opts: []supervisor.ChildOption{supervisor.WithConcurrency(2)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sup, _ := correspondents(t, tt.opts...)
				began := time.Now()
				_, err := sup.Do(context.Background(), supervisor.SendPayload{Method: tt.method, Args: []any{tt.to}, Timeout: tt.limit})
				require.Equal(t, tt.took, time.Since(began), "time of the call")
				if tt.want == nil {
					require.NoError(t, err, "the call")
				} else {
					require.ErrorIs(t, err, tt.want, "the call")
				}
				synctest.Wait()
				for range sup.Snapshot().Unclaimed { // of a flood
					_, err := sup.Recv(context.Background())
					require.NoError(t, err, "Recv")
				}
				require.Zero(t, sup.Snapshot().Open, "requests without a verdict")
				fine(t, sup)
				shutdown(t, sup)
			})
		})
	}
}

// Two handlers wait for room at each other's child. Nobody can see that from inside; their contexts end it, or Shutdown.
func TestG04HandlersFillEachOther(t *testing.T) {
	for _, tt := range []struct {
		name  string
		limit time.Duration // of the first handler
		end   func(t *testing.T, sup *supervisor.Supervisor)
		want  error // of the one that gives up, which makes room for the other
		took  time.Duration
	}{
		{
			name: "until a deadline", limit: time.Minute, end: func(*testing.T, *supervisor.Supervisor) {},
			want: supervisor.ErrTimeout, took: time.Minute,
		},
		{
			name: "until Shutdown", end: func(t *testing.T, sup *supervisor.Supervisor) {
				synctest.Wait()
				shutdown(t, sup)
			},
			want: supervisor.ErrClosed,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sup, c := correspondents(t)
				var reqs []supervisor.SendPayload
				for id := range 2 {
					p := supervisor.NewSendPayload(id, "Mutual", 1-id)
					if id == 0 {
						p.Timeout = tt.limit
					}
					reqs = append(reqs, p)
				}
				send(t, sup, reqs...)
				for id := range 2 {
					for range 3 { // with the one that runs the queue is full
						send(t, sup, supervisor.NewSendPayload(id, "Echo", 1))
					}
				}
				began := time.Now()
				close(c.begin)
				tt.end(t, sup)
				got, err := sup.RecvAll(context.Background(), reqs, supervisor.IgnoreErr())
				require.NoError(t, err, "RecvAll")
				require.Equal(t, tt.took, time.Since(began), "time until both have their verdicts")
				gaveUp := 0
				for _, p := range got {
					if p.Err != nil {
						require.ErrorIs(t, p.Err, tt.want, "verdict of child %d's handler", p.ProcID)
						gaveUp++
					}
				}
				require.Positive(t, gaveUp, "handlers that gave up")
				synctest.Wait()
				require.Zero(t, sup.Snapshot().Open, "requests without a verdict")
				if errors.Is(tt.want, supervisor.ErrTimeout) {
					fine(t, sup)
				}
			})
		})
	}
}
