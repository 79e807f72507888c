package faulttest_test

// Reports of calls that got the answer of another one, two answers, or none.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/future"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// Each time limit has one owner and nothing is tried again behind the caller's back: only the end of a life has a new one
// follow, and only if the policy says so.
func TestC65OneOwnerOfEachTimeout(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		for _, policy := range []supervisor.RestartType{supervisor.Permanent, supervisor.Temporary} {
			r := childtest.Start(t, k, supervisor.Restart{Type: policy})
			for _, row := range []struct {
				name    string
				fail    func(t *testing.T, r *childtest.Rig) error // after one execution of "once"
				verdict func(err error) bool
				death   bool
			}{
				{name: "timeout", fail: func(t *testing.T, r *childtest.Rig) error {
					p := supervisor.NewSendPayload(r.ID, "Hold", "one")
					p.Timeout = 30 * time.Millisecond
					_, err := r.Sup.Do(r.Ctx, p)
					r.Gate.Next(t).Left(t)
					return err
				}, verdict: func(err error) bool { return errors.Is(err, supervisor.ErrTimeout) }},
				{name: "error", fail: func(_ *testing.T, r *childtest.Rig) error {
					_, err := supervisor.Call[int](r.Ctx, r.Sup, r.ID, "Fail", "sentinel")
					return err
				}, verdict: func(err error) bool { return errors.Is(err, childtest.ErrSentinel) }},
				{name: "death", death: true, fail: func(t *testing.T, r *childtest.Rig) error {
					held, v := r.Occupy(t, r.ID)
					r.Kind.Kill(t, r.Sup, r.ID)
					err := r.Recv(t, held).Err
					v.Gone(t)
					return err
				}, verdict: func(err error) bool { return errors.As(err, new(*supervisor.ExitError)) }},
			} {
				if row.death && k.Kill == nil {
					continue
				}
				what := fmt.Sprintf("%s of a child of type %d", row.name, policy)
				life := r.Child(t, r.ID).Incarnation
				require.True(t, row.verdict(row.fail(t, r)), "verdict after %s", what)
				switch {
				case !row.death:
					r.Fine(t, r.ID)
					require.Equal(t, life, r.Child(t, r.ID).Incarnation, "life after %s", what)
				case policy == supervisor.Permanent:
					r.Fine(t, r.ID)
					require.Equal(t, 1, r.Child(t, r.ID).Restarts, "restarts after %s", what)
				default:
					r.Events.Wait(t, supervisor.EventGivenUp)
					_, err := supervisor.Call[string](r.Ctx, r.Sup, r.ID, "Text", "hello")
					require.True(t, row.verdict(err), "Call after %s: %v", what, err)
				}
				r.Gate.Empty(t, "although it was executed before: "+what)
				nothingLeft(t, r.Sup)
			}
			require.NoError(t, r.Sup.Close(), "Close")
		}
	})
}

// Three limits end at the same moment. Each request has one ErrTimeout all the same, and nothing comes later.
func TestC72OneTimeoutPerRequest(t *testing.T) {
	const requests, limit = 50, 100 * time.Second
	synctest.Test(t, func(t *testing.T) {
		sup := clerks(t, childtest.Goroutines(), 1)
		var reqs []supervisor.SendPayload
		for i := range requests {
			p := supervisor.NewSendPayload(0, "Nap", i, time.Minute)
			p.Timeout = limit
			reqs = append(reqs, p)
		}
		send(t, sup, reqs...)
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		var law testkit.Law
		calls := make(map[string]int)
		got, err := sup.RecvAll(ctx, reqs, supervisor.IgnoreErr(), supervisor.IdleTimeout(40*time.Second),
			supervisor.OnReply(func(_ *supervisor.Waiting, p supervisor.RecvPayload) error {
				calls[p.ReqID]++
				return nil
			}))
		require.NoError(t, err, "RecvAll with IgnoreErr")
		for i, p := range got {
			law.Accept(reqs[i].ReqID)
			law.Verdict(p.ReqID, childtest.OutcomeOf(p.Err))
			require.Equal(t, 1, calls[p.ReqID], "verdicts of request %d that OnReply has seen", i)
			require.ErrorIs(t, p.Err, supervisor.ErrTimeout, "verdict of request %d", i)
		}
		law.Check(t, nil)
		later, cancel := context.WithTimeout(t.Context(), 2*requests*time.Minute)
		defer cancel()
		p, err := sup.Recv(later)
		require.ErrorIs(t, err, supervisor.ErrTimeout, "Recv, long after")
		require.Empty(t, p.ReqID, "the request of a second verdict")
		nothingLeft(t, sup)
		shutdown(t, sup)
	})
}

// Many use one supervisor in all the ways there are. Nobody eats another's answer.
func TestC75ManyCallersAtOnce(t *testing.T) {
	const callers = 16
	each := times(3200, 10_000) / callers
	ways := []func(ctx context.Context, sup *supervisor.Supervisor, id, n int) (int, error){
		func(ctx context.Context, sup *supervisor.Supervisor, id, n int) (int, error) {
			return supervisor.Call[int](ctx, sup, id, "Echo", n)
		},
		func(ctx context.Context, sup *supervisor.Supervisor, id, n int) (int, error) {
			return supervisor.Go[int](ctx, sup, id, "Echo", n).Result(ctx)
		},
		func(ctx context.Context, sup *supervisor.Supervisor, id, n int) (int, error) {
			p := supervisor.NewSendPayload(id, "Echo", n)
			if err := sup.Send(ctx, p); err != nil {
				return 0, err
			}
			got, err := sup.RecvAll(ctx, []supervisor.SendPayload{p})
			if err != nil {
				return 0, err
			}
			return supervisor.Value[int](got[0])
		},
		func(ctx context.Context, sup *supervisor.Supervisor, id, n int) (int, error) {
			got, err := sup.Do(ctx, clerkPayload("all use this one", id, "Echo", n))
			if err != nil {
				return 0, err
			}
			return supervisor.Value[int](got)
		},
	}
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		sup := clerks(t, k, 1)
		ctx := testkit.Context(t)
		var all sync.WaitGroup
		errs := make(chan error, callers)
		for c := range callers {
			all.Go(func() {
				for i := range each {
					n := c*each + i
					got, err := ways[i%len(ways)](ctx, sup, 0, n)
					if err != nil || got != n {
						errs <- fmt.Errorf("way %d: %d for %d, %w", i%len(ways), got, n, err)
						return
					}
				}
			})
		}
		all.Wait()
		close(errs)
		for err := range errs {
			require.NoError(t, err, "a call")
		}
		nothingLeft(t, sup)
		shutdown(t, sup)
	})
}

// Two wait for one result, and each no longer than it wants to.
func TestC75OneResultForTwo(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		r := childtest.Start(t, k)
		f := supervisor.Go[string](r.Ctx, r.Sup, r.ID, "Hold", "one")
		v := r.Gate.Next(t)
		patient := make(chan error, 1)
		var waiting sync.WaitGroup
		waiting.Go(func() {
			got, err := f.Result(r.Ctx)
			if err == nil && got != "done" {
				err = fmt.Errorf("its value is %q", got)
			}
			patient <- err
		})
		for _, limit := range []time.Duration{0, 10 * time.Millisecond} {
			ctx, cancel := context.WithTimeout(r.Ctx, limit)
			_, err := f.Result(ctx)
			cancel()
			require.ErrorIs(t, err, future.ErrTimeout, "Result with %v, while another one waits", limit)
		}
		require.Empty(t, patient, "the other one waits on")
		v.Release(t, "done")
		require.NoError(t, testkit.Receive(t, patient, "the result"), "Result of the patient one")
		waiting.Wait()
		got, err := f.Result(r.Ctx)
		require.NoError(t, err, "Result of the hasty one, again")
		require.Equal(t, "done", got, "its value")
	})
}
