package faulttest_test

// What the Python original does wrong when somebody receives: it waits for ever, loses replies or mixes them up. One test
// for each defect that was seen there.

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

// The original returns the first reply twice and leaves the second in its queue.
func TestOriginalTwoRequestsWithOneID(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		r := childtest.Start(t, k)
		held, v := r.Occupy(t, r.ID)
		first := r.Send(t, r.ID, "Int", 1)
		second := supervisor.NewSendPayload(r.ID, "Enter", "executed")
		second.ReqID = first.ReqID
		require.ErrorIs(t, r.Sup.Send(r.Ctx, second), supervisor.ErrDuplicateRequest, "Send while the first is open")
		v.Release(t, "")
		r.Recv(t, held)
		testkit.Until(t, "the first is answered", func() bool { return r.Sup.Snapshot().Unclaimed == 1 })
		require.ErrorIs(t, r.Sup.Send(r.Ctx, second), supervisor.ErrDuplicateRequest, "Send while its reply is unclaimed")
		got, err := r.Sup.RecvAll(r.Ctx, []supervisor.SendPayload{first})
		require.NoError(t, err, "RecvAll")
		require.Equal(t, 1, got[0].Data, "the reply to the first")
		require.Zero(t, r.Sup.Snapshot().Open+r.Sup.Snapshot().Unclaimed, "what is left")
		require.Empty(t, r.Ledger.Counts(t), "executions of the second")
	})
}

// The original fails an assertion.
func TestOriginalNothingToReceive(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		r := childtest.Start(t, k)
		kept := r.Send(t, r.ID, "Int", 1)
		got, err := r.Sup.RecvAll(r.Ctx, nil)
		require.NoError(t, err, "RecvAll of nothing")
		require.NotNil(t, got, "its result")
		require.Empty(t, got, "its result")
		require.Equal(t, 1, r.Recv(t, kept).Data, "a reply that nobody has asked for yet")
	})
}

// The original drops the replies that it had when another one is an error.
func TestOriginalErrorLosesCollectedReplies(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		r := childtest.Start(t, k)
		reqs := []supervisor.SendPayload{r.Send(t, r.ID, "Int", 1), r.Send(t, r.ID, "Fail", "sentinel")}
		held, v := r.Occupy(t, r.ID) // the two are answered
		reqs = append(reqs, held, r.Send(t, r.ID, "Int", 4))
		got, err := r.Sup.RecvAll(r.Ctx, reqs)
		require.ErrorIs(t, err, childtest.ErrSentinel, "RecvAll")
		require.Equal(t, reqs[1].ReqID, childtest.CallErrorOf(t, err, r.ID, "Fail").ReqID, "the request that failed")
		require.Len(t, got, 4, "entries")
		require.Equal(t, 1, got[0].Data, "what was collected")
		v.Release(t, "later")
		for i, want := range map[int]any{2: "later", 3: 4} {
			require.ErrorIs(t, got[i].Err, supervisor.ErrPending, "entry %d", i)
			require.Equal(t, want, r.Recv(t, reqs[i]).Data, "reply %d, asked for again", i)
		}
	})
}

// With each reply that it is not waiting for, the original begins its time anew.
func TestOriginalForeignRepliesExtendTheTime(t *testing.T) {
	for _, tt := range []struct {
		name string
		ctx  time.Duration
		opts []supervisor.RecvOption
	}{
		{"the time of the call", time.Second, []supervisor.RecvOption{supervisor.IgnoreErr()}},
		{"the time between two replies", time.Hour, []supervisor.RecvOption{supervisor.IgnoreErr(), supervisor.IdleTimeout(time.Second)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sup, s := newSupervisor(t, supervisor.Goroutine), newSleeper()
				register(t, sup, supervisor.Object(s))
				register(t, sup, newCrowdMember)
				require.NoError(t, sup.StartLink(context.Background()), "StartLink")
				reqs := send(t, sup, supervisor.NewSendPayload(0, "Wait"))
				foreign := task.Go(func(ctx context.Context) {
					for n := range 10 {
						<-time.After(300 * time.Millisecond)
						if err := sup.TrySend(supervisor.NewSendPayload(1, "Echo", n)); err != nil {
							t.Errorf("TrySend: %v", err)
						}
					}
				})
				ctx, cancel := context.WithTimeout(context.Background(), tt.ctx)
				defer cancel()
				began := time.Now()
				got, err := sup.RecvAll(ctx, reqs, tt.opts...)
				require.NoError(t, err, "RecvAll")
				require.Equal(t, time.Second, time.Since(began), "its time")
				require.ErrorIs(t, got[0].Err, supervisor.ErrTimeout, "the verdict")
				foreign.Wait()
				synctest.Wait()
				for n := range 10 {
					p, err := sup.Recv(context.Background())
					require.NoError(t, err, "Recv")
					require.Equal(t, n, p.Data, "a reply of others, in its turn")
				}
				close(s.wake)
				shutdown(t, sup)
			})
		})
	}
}

// The original gives the reply that comes after the timeout to whoever receives next.
func TestOriginalReplyAfterTheTimeout(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		r := childtest.Start(t, k)
		late := r.Send(t, r.ID, "HoldOn", "too long")
		v := r.Gate.Next(t)
		ctx, cancel := context.WithTimeout(r.Ctx, 20*time.Millisecond)
		defer cancel()
		got, err := r.Sup.RecvAll(ctx, []supervisor.SendPayload{late}, supervisor.IgnoreErr())
		require.NoError(t, err, "RecvAll")
		require.ErrorIs(t, got[0].Err, supervisor.ErrTimeout, "the verdict")
		again := supervisor.NewSendPayload(r.ID, "Int", 7)
		again.ReqID = late.ReqID
		send(t, r.Sup, again)
		v.Release(t, "too late")
		p, err := r.Sup.Recv(r.Ctx)
		require.NoError(t, err, "Recv")
		require.Equal(t, 7, p.Data, "the reply to the request of the same id that came after")
		e := r.Events.Wait(t, supervisor.EventLateReply)
		require.Equal(t, []any{"HoldOn", int64(1)}, []any{e.Text, e.N}, "the event about the late one")
		require.Zero(t, r.Sup.Snapshot().Unclaimed, "what is left")
	})
}

// Two receivers of the original take each other's replies and keep them, so that both wait.
func TestOriginalTwoReceivers(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		const receivers, rounds = 2, 20
		r := childtest.StartTwo(t, k)
		results := make(chan error, receivers)
		for n := range receivers {
			task.Go(func(context.Context) {
				results <- func() error {
					for round := range rounds {
						var reqs []supervisor.SendPayload
						for i := range 4 {
							p := supervisor.NewSendPayload((n+i)%2, "Int", 100*n+10*round+i)
							if err := r.Sup.Send(r.Ctx, p); err != nil {
								return fmt.Errorf("Send: %w", err)
							}
							reqs = append(reqs, p)
						}
						got, err := r.Sup.RecvAll(r.Ctx, reqs)
						if err != nil {
							return fmt.Errorf("RecvAll: %w", err)
						}
						for i, p := range got {
							if p.ReqID != reqs[i].ReqID || p.Data != 100*n+10*round+i {
								return fmt.Errorf("receiver %d, round %d: entry %d is %v", n, round, i, p)
							}
						}
					}
					return nil
				}()
			})
		}
		for range receivers {
			require.NoError(t, testkit.Receive(t, results, "a receiver"))
		}
		require.Zero(t, r.Sup.Snapshot().Open+r.Sup.Snapshot().Unclaimed, "what is left")
	})
}

// The original sends whatever it does not know to all children.
func TestOriginalMisspeltAttribute(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		r := childtest.StartTwo(t, k)
		held, v := r.Occupy(t, r.ID) // a child that was asked would not answer
		testkit.Within(t, shutdownSlack, func() {
			results, err := supervisor.GetAttr[int](r.Ctx, r.Sup, "Cuont")
			require.ErrorIs(t, err, supervisor.ErrNoSuchMethod, "GetAttr")
			for _, got := range results {
				require.ErrorIs(t, got.Err, supervisor.ErrNoSuchMethod, "child %d", got.ProcID)
			}
		})
		v.Release(t, "")
		require.NoError(t, r.Recv(t, held).Err, "what was under way")
	})
}

// EnvSupervisor's recv calls itself ten times a second, until the stack ends after about a hundred seconds.
func TestOriginalRecvForALongTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sup, s := newSupervisor(t, supervisor.Goroutine), newSleeper()
		register(t, sup, supervisor.Object(s))
		require.NoError(t, sup.StartLink(context.Background()), "StartLink")
		send(t, sup, supervisor.NewSendPayload(0, "Wait"))
		result := make(chan supervisor.RecvPayload, 1)
		task.Go(func(context.Context) {
			p, err := sup.Recv(context.Background())
			if err != nil {
				t.Errorf("Recv: %v", err)
			}
			result <- p
		})
		synctest.Wait()
		depth := func() int { return strings.Count(stackOf(t, "(*Supervisor).Recv"), "\n") }
		before := depth()
		<-time.After(24 * time.Hour)
		synctest.Wait()
		require.Equal(t, before, depth(), "lines of the stack of Recv after a day")
		close(s.wake)
		require.Equal(t, 1, (<-result).Data, "the reply that comes at last")
		shutdown(t, sup)
	})
}

// stackOf returns the stack of the goroutine that is in a function.
func stackOf(t testing.TB, function string) string {
	t.Helper()
	for _, stack := range moduleGoroutines() {
		if strings.Contains(stack, function+"(") {
			return stack
		}
	}
	t.Fatalf("nobody is in %s", function)
	return ""
}
