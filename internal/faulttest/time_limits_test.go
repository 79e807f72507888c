package faulttest_test

// Contexts that have ended, cancels at any moment, limits that are no limits.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

// limitedCall is a way to ask children that takes a ctx and may have to wait. Its error is of the one child that cannot
// answer.
type limitedCall struct {
	name string
	do   func(ctx context.Context, r *childtest.Rig) error
}

var limitedCalls = []limitedCall{
	{"Send", func(ctx context.Context, r *childtest.Rig) error {
		return r.Sup.Send(ctx, supervisor.NewSendPayload(r.ID, "Enter", "executed"))
	}},
	{"Do", func(ctx context.Context, r *childtest.Rig) error {
		_, err := r.Sup.Do(ctx, supervisor.NewSendPayload(r.ID, "Enter", "executed"))
		return err
	}},
	{"Call", func(ctx context.Context, r *childtest.Rig) error {
		_, err := supervisor.Call[any](ctx, r.Sup, r.ID, "Enter", "executed")
		return err
	}},
	{"Go", func(ctx context.Context, r *childtest.Rig) error {
		_, err := supervisor.Go[any](ctx, r.Sup, r.ID, "Enter", "executed").Result(context.Background())
		return err
	}},
	{"Broadcast", func(ctx context.Context, r *childtest.Rig) error {
		all, err := supervisor.Broadcast[any](ctx, r.Sup, "Enter", "executed")
		return errors.Join(err, all[r.ID].Err)
	}},
	{"GetChildAttr", func(ctx context.Context, r *childtest.Rig) error {
		_, err := supervisor.GetChildAttr[int](ctx, r.Sup, r.ID, "Count")
		return err
	}},
	{"GetAttr", func(ctx context.Context, r *childtest.Rig) error {
		all, err := supervisor.GetAttr[int](ctx, r.Sup, "Count")
		return errors.Join(err, all[r.ID].Err)
	}},
	{"Recv", func(ctx context.Context, r *childtest.Rig) error {
		_, err := r.Sup.Recv(ctx)
		return err
	}},
}

// A ctx that has ended is worth nothing, not even where there is no room: the call returns at once.
func TestT01EndedContext(t *testing.T) {
	const limit, tries = 10 * time.Millisecond, 20
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		r := childtest.Start(t, k, supervisor.Limits{Queue: 1})
		held, v := r.Occupy(t, r.ID)
		cancelled, cancel := context.WithCancel(r.Ctx)
		cancel()
		expired, cancel := context.WithDeadline(r.Ctx, time.Now().Add(-time.Second))
		defer cancel()
		for _, call := range limitedCalls {
			for ctx, want := range map[context.Context][]error{
				cancelled: {supervisor.ErrCanceled, context.Canceled},
				expired:   {supervisor.ErrTimeout, context.DeadlineExceeded},
			} {
				fastest := time.Hour
				for range tries {
					began := time.Now()
					err := call.do(ctx, r)
					fastest = min(fastest, time.Since(began))
					for _, w := range want {
						require.ErrorIs(t, err, w, "%s with a ctx that has ended", call.name)
					}
					var e *supervisor.CallError
					if errors.As(err, &e) {
						require.True(t, e.Unexecuted, "%s: surely not executed: %v", call.name, err)
					}
					if fastest < limit {
						break
					}
				}
				require.Less(t, fastest, limit*testkit.Slowdown, "time of %s", call.name)
			}
		}
		v.Release(t, "")
		require.NoError(t, r.Recv(t, held).Err, "what was sent before")
		r.Fine(t, r.ID)
		require.Empty(t, r.Ledger.Counts(t), "executions")
		nothingLeft(t, r.Sup)
	})
}

// sweeper is the object of children whose requests are cancelled at every moment of their way.
type sweeper struct{ ledger testkit.Ledger }

var newSweeper = supervisor.DefineWith("faulttest.sweeper", func(_ context.Context, path string) (*sweeper, error) {
	return &sweeper{testkit.Ledger{Path: path}}, nil
})

// Work enters its id into the ledger and takes five milliseconds, unless nobody waits any more.
func (s *sweeper) Work(ctx context.Context, id string, pad []byte) (int, error) {
	if err := s.ledger.Enter(id); err != nil {
		return 0, err
	}
	select {
	case <-time.After(5 * time.Millisecond):
		return len(pad), nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// sweep is requests that are each cancelled a little later than the one before.
type sweep struct {
	sup    *supervisor.Supervisor
	ledger testkit.Ledger
	law    testkit.Law
}

// request asks for request number i in one of two ways, and cancels it when it is so old.
func (s *sweep) request(ctx context.Context, i int, age time.Duration) error {
	p := supervisor.NewSendPayload(0, "Work", "", make([]byte, []int{0, 20 << 10, 300 << 10}[i/2%3]))
	p.Args[0] = p.ReqID
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var got supervisor.RecvPayload
	var err error
	if i%2 == 0 {
		stop := time.AfterFunc(age, cancel)
		defer stop.Stop()
		s.law.Accept(p.ReqID)
		got, err = s.sup.Do(ctx, p)
	} else {
		stop := time.AfterFunc(age, func() {
			cancel()
			_ = s.sup.Cancel(p.ReqID) // of what was not accepted, or is answered and taken, there is nothing to cancel
		})
		defer stop.Stop()
		if err = s.sup.Send(ctx, p); err != nil {
			if !errors.Is(err, supervisor.ErrCanceled) {
				return fmt.Errorf("Send: %w", err)
			}
			return nil
		}
		s.law.Accept(p.ReqID)
		var all []supervisor.RecvPayload
		all, err = s.sup.RecvAll(context.WithoutCancel(ctx), []supervisor.SendPayload{p})
		if len(all) == 1 {
			got = all[0]
		}
	}
	s.law.Verdict(got.ReqID, childtest.OutcomeOf(err))
	if err == nil && got.Data != len(p.Args[1].([]byte)) {
		return fmt.Errorf("the value of a request with %d bytes is %v", len(p.Args[1].([]byte)), got.Data)
	}
	if err != nil && !errors.Is(err, supervisor.ErrCanceled) {
		return err
	}
	return nil
}

// Before it has room, in the queue, half way through the pipe, at its handler, on its way back: whenever it is cancelled,
// a request has one verdict, and the child goes on.
func TestT02CancelAtAnyMoment(t *testing.T) {
	const callers, moments, step = 8, 200, 100 * time.Microsecond
	runs := times(moments, 10_000) // spread over all moments
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		ctx := context.Background()
		s := &sweep{sup: newSupervisor(t, k.Type), ledger: testkit.NewLedger(t)}
		register(t, s.sup, newSweeper.With(s.ledger.Path), supervisor.WithConcurrency(2), supervisor.Limits{Queue: 5})
		require.NoError(t, s.sup.StartLink(ctx), "StartLink")
		life := s.sup.Snapshot().Children[0].Incarnation
		var tasks []*task.Task
		errs := make(chan error, runs)
		for c := range callers {
			tasks = append(tasks, task.Go(func(context.Context) {
				for i := c; i < runs; i += callers {
					age := time.Duration(i*moments/runs) * step
					if c == 0 { // some are not cancelled, however slow the machine is
						age = testkit.Limit
					}
					errs <- s.request(ctx, i/callers, age)
				}
			}))
		}
		for _, one := range tasks {
			one.Wait()
		}
		for range runs {
			require.NoError(t, testkit.Receive(t, errs, "a run"), "a run")
		}
		testkit.Until(t, "the child has let go of all", func() bool {
			load := s.sup.Snapshot().Children[0].Load
			return load.Queued+load.InFlight == 0
		})
		nothingLeft(t, s.sup)
		s.law.Check(t, s.ledger.Counts(t))
		accepted, verdicts := s.law.Counts()
		t.Logf("of %d runs %d were accepted: %v", runs, accepted, verdicts)
		require.NotZero(t, verdicts[testkit.Value], "values among %v", verdicts)
		require.NotZero(t, verdicts[testkit.Transport], "cancels of what the child had, among %v", verdicts)
		n, err := supervisor.Call[int](ctx, s.sup, 0, "Work", "last", []byte("last"))
		require.NoError(t, err, "Call after all")
		require.Equal(t, 4, n, "its result")
		require.Equal(t, life, s.sup.Snapshot().Children[0].Incarnation, "the life after all")
		shutdown(t, s.sup)
	})
}

// Limits at the ends of what a duration can say are neither at once where they mean for ever, nor for ever where they
// mean at once.
func TestT03OddDeadlines(t *testing.T) {
	const never = math.MaxInt64 * time.Nanosecond
	const century = 100 * 365 * 24 * time.Hour
	withTimeout := func(d time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
		return func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, d) }
	}
	withDeadline := func(at time.Time) func(context.Context) (context.Context, context.CancelFunc) {
		return func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithDeadline(ctx, at) }
	}
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		r := childtest.Start(t, k)
		base := context.Background() // the rig's own limit would be the shorter one
		for _, row := range []struct {
			name    string
			timeout time.Duration
			ctx     func(context.Context) (context.Context, context.CancelFunc)
			want    error         // nil: a value, after waiting for room and for a handler
			least   time.Duration // what the handler is told that it has
		}{
			{name: "no Timeout", ctx: context.WithCancel, least: -1},
			{name: "Timeout of a nanosecond", timeout: 1, want: supervisor.ErrTimeout},
			{name: "negative Timeout", timeout: -1, want: supervisor.ErrBadArgs},
			{name: "most negative Timeout", timeout: math.MinInt64, want: supervisor.ErrBadArgs},
			{name: "Timeout of all time", timeout: never, least: century},
			{name: "ctx of a nanosecond", ctx: withTimeout(1), want: supervisor.ErrTimeout},
			{name: "ctx of no time", ctx: withTimeout(0), want: supervisor.ErrTimeout},
			{name: "negative ctx", ctx: withTimeout(math.MinInt64), want: supervisor.ErrTimeout},
			{name: "ctx of all time", ctx: withTimeout(never), least: century},
			{name: "ctx that ends at time zero", ctx: withDeadline(time.Time{}), want: supervisor.ErrTimeout},
			{name: "ctx that ends in 1970", ctx: withDeadline(time.Unix(0, 0)), want: supervisor.ErrTimeout},
			{name: "ctx that ends in the year 9999", ctx: withDeadline(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)), least: century},
			{name: "ctx that ends after the last nanosecond", ctx: withDeadline(time.Unix(1<<55, 0)), least: century},
		} {
			if row.ctx == nil {
				row.ctx = context.WithCancel
			}
			ctx, cancel := row.ctx(base)
			p := supervisor.NewSendPayload(r.ID, "Remaining")
			p.Timeout = row.timeout
			var got supervisor.RecvPayload
			var err error
			testkit.Within(t, testkit.Limit, func() { got, err = r.Sup.Do(ctx, p) })
			cancel()
			if row.want != nil {
				require.ErrorIs(t, err, row.want, "%s", row.name)
				continue
			}
			require.NoError(t, err, "%s", row.name)
			if row.least < 0 {
				require.Equal(t, row.least, got.Data, "what the handler has with %s", row.name)
			} else {
				require.Greater(t, got.Data, row.least, "what the handler has with %s", row.name)
			}
		}
		// Nor do they in receiving.
		p := r.Send(t, r.ID, "Int", 1)
		forever, cancel := context.WithTimeout(base, never)
		defer cancel()
		got, err := r.Sup.RecvAll(forever, []supervisor.SendPayload{p}, supervisor.IdleTimeout(never))
		require.NoError(t, err, "RecvAll with limits of all time")
		require.Equal(t, 1, got[0].Data, "its value")
		_, err = r.Sup.Recv(base, supervisor.IdleTimeout(1))
		require.ErrorIs(t, err, supervisor.ErrTimeout, "Recv with an IdleTimeout of a nanosecond")
		for _, d := range []time.Duration{-1, math.MinInt64} {
			_, err = r.Sup.Recv(base, supervisor.IdleTimeout(d))
			require.ErrorIs(t, err, supervisor.ErrBadArgs, "Recv with an IdleTimeout of %v", d)
		}
		nothingLeft(t, r.Sup)
		r.Fine(t, r.ID)
	})
}
