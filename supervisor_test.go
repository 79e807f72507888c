package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// stepper counts its steps. FailAt makes the step with that number fail.
type stepper struct {
	ActionSpace int
	FailAt      int
	steps       int
}

// Step takes one step and returns how many were taken.
func (s *stepper) Step(int) (int, error) {
	s.steps++
	if s.steps == s.FailAt {
		return 0, fmt.Errorf("step %d failed", s.steps)
	}
	return s.steps, nil
}

// Block takes ten seconds, unless nobody waits any more.
func (s *stepper) Block(ctx context.Context) error { return pause(ctx, 10*time.Second) }

// BlockReset is Block under another name.
func (s *stepper) BlockReset(ctx context.Context) error { return pause(ctx, 10*time.Second) }

// BlockDeaf takes ten seconds whatever its caller does.
func (s *stepper) BlockDeaf() error { return pause(context.Background(), 10*time.Second) }

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var newStepper = supervisor.DefineWith("supervisor_test.stepper",
	func(_ context.Context, failAt int) (*stepper, error) {
		return &stepper{ActionSpace: 3, FailAt: failAt}, nil
	})

func init() { supervisor.RegisterType[stepper]() }

func steppers(failAt ...int) []supervisor.Spec {
	var specs []supervisor.Spec
	for _, n := range failAt {
		specs = append(specs, newStepper.With(n))
	}
	return specs
}

// bothKinds runs a scenario with goroutine children on a fake clock, and with processes on the real one.
func bothKinds(t *testing.T, scenario func(t *testing.T, kind supervisor.ChildType)) {
	t.Helper()
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			if kind == supervisor.Goroutine {
				synctest.Test(t, func(t *testing.T) { scenario(t, kind) })
				return
			}
			testkit.NoLeaks(t)
			scenario(t, kind)
		})
	}
}

// stepAll sends one step to each of n children.
func stepAll(t *testing.T, sup *supervisor.Supervisor, n int) []supervisor.SendPayload {
	t.Helper()
	var reqs []supervisor.SendPayload
	for id := range n {
		reqs = append(reqs, supervisor.NewSendPayload(id, "Step", id))
	}
	return send(t, sup, reqs...)
}

// recvSteps takes n values and returns the sums of their child ids and of their values.
func recvSteps(t *testing.T, sup *supervisor.Supervisor, n int) (ids, sum int) {
	t.Helper()
	for i := range n {
		p, err := sup.Recv(testkit.Context(t))
		require.NoError(t, err, "Recv %d of %d", i+1, n)
		ids += p.ProcID
		sum += p.Data.(int)
	}
	return ids, sum
}

func requireFirstSteps(t *testing.T, sup *supervisor.Supervisor) {
	t.Helper()
	stepAll(t, sup, 3)
	ids, sum := recvSteps(t, sup, 3)
	require.Equal(t, 3, ids, "sum of the child ids")
	require.Equal(t, 3, sum, "sum of three first steps")
}

func TestD1StepEach(t *testing.T) {
	bothKinds(t, func(t *testing.T, kind supervisor.ChildType) {
		sup := started(t, kind, steppers(0, 0, 0)...)
		requireFirstSteps(t, sup)
		shutdown(t, sup)
	})
}

func TestD2RecvAllLeavesTheRest(t *testing.T) {
	bothKinds(t, func(t *testing.T, kind supervisor.ChildType) {
		sup := started(t, kind, steppers(0, 0, 0)...)
		requireFirstSteps(t, sup)
		reqs := stepAll(t, sup, 3)
		got, err := sup.RecvAll(testkit.Context(t), reqs[1:])
		require.NoError(t, err, "RecvAll of the last two")
		require.Equal(t, idsOf(reqs[1:]), idsOf(got), "request ids in request order")
		p, err := sup.Recv(testkit.Context(t))
		require.NoError(t, err, "Recv of what RecvAll left")
		require.Equal(t, reqs[0].ReqID, p.ReqID, "the reply that was kept")
		require.Equal(t, 2, p.Data, "its value")
		shutdown(t, sup)
	})
}

func TestD3Attribute(t *testing.T) {
	bothKinds(t, func(t *testing.T, kind supervisor.ChildType) {
		sup := started(t, kind, steppers(0, 0, 0)...)
		got, err := supervisor.GetAttr[int](testkit.Context(t), sup, "ActionSpace")
		require.NoError(t, err, "GetAttr")
		require.Equal(t, []supervisor.Result[int]{{ProcID: 0, Value: 3}, {ProcID: 1, Value: 3}, {ProcID: 2, Value: 3}}, got,
			"one result per child, in their order")
		one, err := supervisor.GetChildAttr[int](testkit.Context(t), sup, 1, "ActionSpace")
		require.NoError(t, err, "GetChildAttr")
		require.Equal(t, 3, one, "the attribute of one child")
		shutdown(t, sup)
	})
}

func TestD4ReadyObjects(t *testing.T) {
	bothKinds(t, func(t *testing.T, kind supervisor.ChildType) {
		sup := started(t, kind, supervisor.Object(&stepper{}), supervisor.Object(&stepper{}), supervisor.Object(&stepper{}))
		requireFirstSteps(t, sup)
		shutdown(t, sup)
	})
}

// failThenRestart runs D5: it ends with every child having taken its steps.
func failThenRestart(t *testing.T, kind supervisor.ChildType) *supervisor.Supervisor {
	t.Helper()
	sup := started(t, kind, steppers(0, 0, 2)...)
	for range 2 {
		stepAll(t, sup, 3)
	}
	var failures []error
	for i := range 6 {
		p, err := sup.Recv(testkit.Context(t), supervisor.IgnoreErr())
		require.NoError(t, err, "Recv %d with IgnoreErr", i+1)
		if p.Err != nil {
			failures = append(failures, p.Err)
			require.Equal(t, 2, verdictOf(t, p).ProcID, "the child that failed")
			require.NoError(t, sup.Restart(testkit.Context(t), p.ProcID), "Restart")
		}
	}
	require.Len(t, failures, 1, "errors among six replies")
	var remote *supervisor.RemoteError
	require.ErrorAs(t, failures[0], &remote, "the failure")
	require.Equal(t, "step 2 failed", remote.Text, "its text")

	stepAll(t, sup, 3)
	_, sum := recvSteps(t, sup, 3)
	require.Equal(t, 3+3+1, sum, "the restarted child begins anew")
	return sup
}

func TestD5RestartOnError(t *testing.T) {
	bothKinds(t, func(t *testing.T, kind supervisor.ChildType) { shutdown(t, failThenRestart(t, kind)) })
}

func TestD6RecvReturnsTheError(t *testing.T) {
	bothKinds(t, func(t *testing.T, kind supervisor.ChildType) {
		sup := failThenRestart(t, kind)
		req := send(t, sup, supervisor.NewSendPayload(2, "Step", 0))[0]
		p, err := sup.Recv(testkit.Context(t))
		require.Error(t, err, "Recv without IgnoreErr")
		require.Same(t, p.Err, err, "Recv's error is the payload's")
		require.Equal(t, req.ReqID, verdictOf(t, p).ReqID, "the payload keeps the ids")
		shutdown(t, sup)
	})
}

func TestD7CallbackSendsMore(t *testing.T) {
	bothKinds(t, func(t *testing.T, kind supervisor.ChildType) {
		sup := started(t, kind, steppers(0, 0, 0)...)
		reqs := stepAll(t, sup, 3)
		sent := make(map[int]int)
		again := supervisor.OnReply(func(w *supervisor.Waiting, p supervisor.RecvPayload) error {
			if sent[p.ProcID] == 2 {
				return nil
			}
			sent[p.ProcID]++
			return w.Send(supervisor.NewSendPayload(p.ProcID, "Step", 0))
		})
		got, err := sup.RecvAll(testkit.Context(t), reqs, again)
		require.NoError(t, err, "RecvAll")
		require.Equal(t, idsOf(reqs), idsOf(got), "only the requests that were asked for are returned")
		require.Equal(t, map[int]int{0: 2, 1: 2, 2: 2}, sent, "steps sent again, by child")
		_, sum := func() (int, int) { stepAll(t, sup, 3); return recvSteps(t, sup, 3) }()
		require.Equal(t, 3*4, sum, "every added step was executed, and none is left unclaimed")
		shutdown(t, sup)
	})
}

func TestD8Blocked(t *testing.T) {
	bothKinds(t, func(t *testing.T, kind supervisor.ChildType) {
		sup := started(t, kind, steppers(0, 0, 0)...)
		var reqs []supervisor.SendPayload
		for id := range 3 {
			reqs = append(reqs, supervisor.NewSendPayload(id, "Block"))
		}
		send(t, sup, reqs...)
		second := func() context.Context {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			t.Cleanup(cancel)
			return ctx
		}
		_, err := sup.RecvAll(second(), reqs)
		require.ErrorIs(t, err, supervisor.ErrTimeout, "RecvAll while all are blocked")
		require.NoError(t, sup.Shutdown(second()), "Shutdown of abandoned handlers")

		require.NoError(t, sup.StartLink(context.Background()), "StartLink after Shutdown")
		reqs = send(t, sup, supervisor.NewSendPayload(0, "Block"), supervisor.NewSendPayload(1, "Step", 0))
		got, err := sup.RecvAll(second(), reqs, supervisor.IgnoreErr())
		require.NoError(t, err, "RecvAll with IgnoreErr")
		require.ErrorIs(t, got[0].Err, supervisor.ErrTimeout, "entry of the blocked child")
		require.NoError(t, got[1].Err, "entry of the other")
		require.Equal(t, 1, got[1].Data, "step of a fresh object")
		require.NoError(t, sup.Shutdown(second()), "Shutdown")
	})
}

// The original cannot stop a worker that does not listen. A process can always be ended, and the error names it.
func TestD8DeafWorkerIsKilled(t *testing.T) {
	testkit.NoLeaks(t)
	for _, kind := range kinds() {
		if kind == supervisor.Goroutine {
			continue // cannot be killed: see the tests of Stop
		}
		sup := started(t, kind, steppers(0, 0)...)
		reqs := send(t, sup, supervisor.NewSendPayload(0, "BlockDeaf"))
		soon, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		_, err := sup.RecvAll(soon, reqs)
		require.ErrorIs(t, err, supervisor.ErrTimeout, "RecvAll")

		began := time.Now()
		err = sup.Shutdown(soon)
		require.Less(t, time.Since(began), 2*time.Second, "time of a Shutdown whose ctx has ended")
		require.ErrorIs(t, err, supervisor.ErrTimeout, "Shutdown had to kill")
		var stuck *supervisor.StuckError
		require.ErrorAs(t, err, &stuck, "Shutdown names what it killed")
		require.Equal(t, 0, stuck.ProcID, "the child that was at work")
	}
}

func TestD9CallbackAwaitsUnsent(t *testing.T) {
	bothKinds(t, func(t *testing.T, kind supervisor.ChildType) {
		sup := started(t, kind, steppers(0, 0, 0)...)
		reqs := send(t, sup, supervisor.NewSendPayload(0, "Block"), supervisor.NewSendPayload(1, "Step", 0))
		flag := false
		resetInstead := supervisor.OnReply(func(w *supervisor.Waiting, p supervisor.RecvPayload) error {
			switch {
			case p.Method == "Block" && p.Err != nil:
				return w.Add(supervisor.NewSendPayload(p.ProcID, "BlockReset"))
			case p.Method == "BlockReset" && errors.Is(p.Err, supervisor.ErrTimeout):
				flag = true
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		began := time.Now()
		got, err := sup.RecvAll(ctx, reqs, supervisor.IgnoreErr(), resetInstead)
		require.NoError(t, err, "RecvAll with IgnoreErr")
		require.Less(t, time.Since(began), 1500*time.Millisecond, "an added request does not renew the limit")
		require.True(t, flag, "the added request has timed out, too")
		require.ErrorIs(t, got[0].Err, supervisor.ErrTimeout, "entry of the blocked child")
		require.NoError(t, got[1].Err, "entry of the other")
		shutdown(t, sup)
	})
}

func TestD11Throughput(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			testkit.NoLeaks(t)
			sup := started(t, kind, steppers(0, 0, 0)...)
			best := time.Hour
			for range 5 { // the machine may be busy with something else: the best round counts
				best = min(best, thousandSteps(t, sup))
				if best < time.Second {
					break
				}
			}
			require.Less(t, best, time.Second, "1000 times Recv and Send of a step")
			shutdown(t, sup)
		})
	}
}

// thousandSteps keeps one request open per child.
func thousandSteps(t *testing.T, sup *supervisor.Supervisor) time.Duration {
	t.Helper()
	ctx := testkit.Context(t)
	stepAll(t, sup, 3)
	began := time.Now()
	for range 1000 {
		p, err := sup.Recv(ctx)
		if err == nil {
			err = sup.Send(ctx, supervisor.NewSendPayload(p.ProcID, "Step", 0))
		}
		require.NoError(t, err, "Recv and Send")
	}
	took := time.Since(began)
	recvSteps(t, sup, 3)
	return took
}
