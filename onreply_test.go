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
)

// noting is OnReply with a note of the ids that it was called with.
func noting(ids *[]string, f func(w *supervisor.Waiting, p supervisor.RecvPayload) error) supervisor.RecvOption {
	return supervisor.OnReply(func(w *supervisor.Waiting, p supervisor.RecvPayload) error {
		*ids = append(*ids, p.ReqID)
		if f == nil {
			return nil
		}
		return f(w, p)
	})
}

func TestOnReplySeesEveryVerdict(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup, d := withDesk(t, supervisor.WithConcurrency(5))
		reqs := works(t, sup, "open", "bad", "a", "foreign", "late")
		d.finish("a", "foreign")
		d.fail("bad")
		time.AfterFunc(time.Second, func() { d.end("late", deskEnd{value: 4}) })
		var seen []string
		errs := make(map[string]error)
		got, err := sup.RecvAll(within(t, time.Minute), []supervisor.SendPayload{reqs[0], reqs[1], reqs[2], reqs[4]},
			supervisor.IgnoreErr(), noting(&seen, func(_ *supervisor.Waiting, p supervisor.RecvPayload) error {
				errs[p.ReqID] = p.Err
				return nil
			}))
		require.NoError(t, err, "RecvAll")
		require.Equal(t, []string{"a", "bad", "late", "open"}, seen, "the order of arrival, our own timeout last")
		require.ErrorIs(t, errs["open"], supervisor.ErrTimeout, "our own verdict")
		for _, p := range got {
			require.Equal(t, p.Err, errs[p.ReqID], "OnReply has seen the entry of %q", p.ReqID)
		}
	})
}

// The original does not call back for the reply that ends the wait.
func TestOnReplySeesTheErrorThatEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup, d := withDesk(t, supervisor.WithConcurrency(2))
		reqs := works(t, sup, "bad", "open")
		d.fail("bad")
		var seen []string
		_, err := sup.RecvAll(t.Context(), reqs, noting(&seen, nil))
		require.ErrorContains(t, err, errDesk.Error(), "RecvAll")
		require.Equal(t, []string{"bad"}, seen, "calls")
	})
}

func TestOnReplyErrorEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup, d := withDesk(t, supervisor.WithConcurrency(4))
		reqs := works(t, sup, "a", "bb", "ccc", "open")
		d.finish("a", "bb", "ccc")
		enough := errors.New("enough")
		var seen []string
		got, err := sup.RecvAll(t.Context(), reqs, supervisor.IgnoreErr(),
			noting(&seen, func(_ *supervisor.Waiting, p supervisor.RecvPayload) error {
				if p.ReqID == "bb" {
					return enough
				}
				return nil
			}))
		require.Same(t, enough, err, "RecvAll returns the function's own error")
		require.Equal(t, []string{"a", "bb"}, seen, "calls")
		require.Equal(t, []any{1, 2}, []any{got[0].Data, got[1].Data}, "entries that were collected")
		require.ErrorIs(t, got[2].Err, supervisor.ErrPending, "entry of what had arrived and was not taken")
		require.ErrorIs(t, got[3].Err, supervisor.ErrPending, "entry of what is open")
		requireRecv(t, sup, "ccc")
		d.finish("open")
		requireRecv(t, sup, "open")
	})
}

// R08: a panic passes through, nothing stays locked, the rest can be had.
func TestOnReplyPanics(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup, d := withDesk(t, supervisor.WithConcurrency(3))
		reqs := works(t, sup, "a", "bb", "open")
		d.finish("a", "bb")
		require.PanicsWithValue(t, "in the function", func() {
			_, _ = sup.RecvAll(t.Context(), reqs, supervisor.OnReply(func(w *supervisor.Waiting, _ supervisor.RecvPayload) error {
				require.NoError(t, w.Add(named("unsent", 0, "Work", "unsent")), "Add")
				panic("in the function")
			}))
		}, "the panic of OnReply")
		requireRecv(t, sup, "bb")
		d.finish("open")
		requireRecv(t, sup, "open")
		works(t, sup, "unsent") // no gather awaits it any more
		d.finish("unsent")
		requireRecv(t, sup, "unsent")
	})
}

func TestWaitingSend(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup, d := withDesk(t)
		reqs := works(t, sup, "a")
		d.finish("a")
		var seen []string
		var refused []error
		got, err := sup.RecvAll(t.Context(), reqs, noting(&seen, func(w *supervisor.Waiting, p supervisor.RecvPayload) error {
			if p.ReqID != "a" {
				return nil
			}
			for _, p := range []supervisor.SendPayload{
				named("no child", 9, "Double", 1),
				named("no method", 0, "Missing"),
				named("", 0, "Double", 1),
			} {
				refused = append(refused, w.Send(p))
			}
			return w.Send(named("fails", 0, "Refuse", "again"))
		}))
		require.NoError(t, err, "RecvAll: the error of an added request does not end it")
		require.Equal(t, []string{"a"}, idsOf(got), "added requests are not returned")
		require.Equal(t, []string{"a", "fails"}, seen, "OnReply sees the added request that was sent")
		for i, want := range []error{supervisor.ErrNoSuchChild, supervisor.ErrNoSuchMethod, supervisor.ErrBadArgs} {
			require.ErrorIs(t, refused[i], want, "refusal %d of Waiting.Send", i)
			var call *supervisor.CallError
			require.ErrorAs(t, refused[i], &call, "refusal %d of Waiting.Send", i)
			require.True(t, call.Unexecuted, "refusal %d is surely not executed", i)
		}
	})
}

// A refused Waiting.Send leaves alone the request that has the id: its verdict is its sender's.
func TestWaitingSendOfTakenID(t *testing.T) {
	for _, arrived := range []bool{false, true} {
		t.Run(fmt.Sprintf("arrived %v", arrived), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				sup, d := withDesk(t, supervisor.WithConcurrency(2))
				reqs := works(t, sup, "a", "other")
				d.finish("a")
				if arrived {
					d.finish("other")
				}
				var seen []string
				var refused error
				_, err := sup.RecvAll(t.Context(), reqs[:1], noting(&seen, func(w *supervisor.Waiting, _ supervisor.RecvPayload) error {
					if refused == nil {
						refused = w.Send(named("other", 0, "Double", 1))
					}
					return nil
				}))
				require.NoError(t, err, "RecvAll")
				require.ErrorIs(t, refused, supervisor.ErrDuplicateRequest, "Waiting.Send of an id that is taken")
				require.Equal(t, []string{"a"}, seen, "what OnReply has seen")
				if !arrived {
					d.finish("other")
				}
				requireRecv(t, sup, "other")
			})
		})
	}
}

func TestWaitingAdd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup, d := withDesk(t, supervisor.WithConcurrency(6))
		reqs := works(t, sup, "a", "open", "arrived", "foreign", "awaited")
		d.finish("arrived", "a")
		elsewhere := make(chan error, 1)
		go func() {
			_, err := sup.RecvAll(t.Context(), reqs[4:])
			elsewhere <- err
		}()
		synctest.Wait()
		time.AfterFunc(time.Second, func() { d.end("open", deskEnd{value: 1}) })
		time.AfterFunc(2*time.Second, func() { _ = sup.TrySend(named("unsent", 0, "Double", 1)) })
		var seen []string
		var refused error
		got, err := sup.RecvAll(t.Context(), reqs[:1], noting(&seen, func(w *supervisor.Waiting, p supervisor.RecvPayload) error {
			if p.ReqID != "a" {
				return nil
			}
			refused = w.Add(reqs[4])
			return errors.Join(w.Add(reqs[1], reqs[2]), w.Add(named("unsent", 0, "Double", 1)), w.Add(reqs[1]))
		}))
		require.NoError(t, err, "RecvAll")
		require.ErrorIs(t, refused, supervisor.ErrNoSuchRequest, "Add of what another RecvAll awaits")
		require.Equal(t, []string{"a"}, idsOf(got), "entries")
		require.Equal(t, []string{"a", "arrived", "open", "unsent"}, seen, "what OnReply has seen, each once, as it came")
		d.finish("awaited", "foreign")
		require.NoError(t, <-elsewhere, "the other RecvAll")
		requireRecv(t, sup, "foreign")
	})
}

// After the end of ctx nothing may wait: what is added then has its verdict at once.
func TestWaitingAfterTheEnd(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(t *testing.T) context.Context
		want error
	}{
		{"deadline", func(t *testing.T) context.Context { return within(t, time.Second) }, supervisor.ErrTimeout},
		{"cancelled", func(*testing.T) context.Context { return ended() }, supervisor.ErrCanceled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				sup, d := withDesk(t, supervisor.WithConcurrency(4))
				reqs := works(t, sup, "open", "other", "arrived")
				d.finish("arrived")
				var seen []string
				var nested, sent error
				verdicts := make(map[string]error)
				ctx := tt.end(t)
				began := time.Now()
				_, err := sup.RecvAll(ctx, reqs[:1], supervisor.IgnoreErr(),
					noting(&seen, func(w *supervisor.Waiting, p supervisor.RecvPayload) error {
						verdicts[p.ReqID] = p.Err
						switch p.ReqID {
						case "open":
							sent = w.Send(named("sent", 0, "Double", 1))
							return w.Add(named("unsent", 0, "Double", 1), reqs[1], reqs[2])
						case "unsent":
							nested = w.Add(named("nested", 0, "Double", 1))
						}
						return nil
					}))
				require.NoError(t, err, "RecvAll with IgnoreErr")
				deadline, limited := ctx.Deadline()
				require.Equal(t, limited, time.Now().Equal(deadline) && !began.Equal(deadline), "nothing waits beyond the end")
				require.ElementsMatch(t, []string{"open", "unsent", "other", "arrived"}, seen, "OnReply has seen all, once")
				require.ErrorIs(t, verdicts["unsent"], tt.want, "added request that was never sent")
				require.ErrorIs(t, verdicts["other"], tt.want, "added request that was open")
				require.NoError(t, verdicts["arrived"], "added request whose reply was there")
				require.ErrorIs(t, sent, tt.want, "Waiting.Send after the end")
				require.ErrorIs(t, nested, tt.want, "Add in answer to such a verdict")
				requireRecv(t, sup)
				require.Zero(t, sup.Snapshot().Open, "open requests")
			})
		})
	}
}

// R09: the function may use the supervisor as it likes.
func TestOnReplyReenters(t *testing.T) {
	for _, tt := range []struct {
		name string
		call func(ctx context.Context, sup *supervisor.Supervisor) error
		then error // verdict of the request that is still open
	}{
		{name: "Recv", call: func(ctx context.Context, sup *supervisor.Supervisor) error {
			p, err := sup.Recv(ctx)
			if err == nil && p.ReqID != "foreign" {
				return fmt.Errorf("Recv took %q", p.ReqID)
			}
			return err
		}, then: supervisor.ErrTimeout},
		{name: "RecvAll", call: func(ctx context.Context, sup *supervisor.Supervisor) error {
			_, err := sup.RecvAll(ctx, []supervisor.SendPayload{named("foreign", 0, "Work")})
			return err
		}, then: supervisor.ErrTimeout},
		{name: "Send and Do", call: func(ctx context.Context, sup *supervisor.Supervisor) error {
			_, err := sup.Do(ctx, named("", 0, "Double", 1))
			return errors.Join(err, sup.Send(ctx, named("more", 0, "Double", 1)))
		}, then: supervisor.ErrTimeout},
		{name: "Cancel", call: func(_ context.Context, sup *supervisor.Supervisor) error { return sup.Cancel("open") }, then: supervisor.ErrCanceled},
		{name: "Restart", call: func(ctx context.Context, sup *supervisor.Supervisor) error { return sup.Restart(ctx, 0) }, then: supervisor.ErrRestarted},
		{name: "Unregister", call: func(ctx context.Context, sup *supervisor.Supervisor) error {
			return sup.Unregister(ctx, 0)
		}, then: supervisor.ErrClosed},
		{name: "Shutdown", call: func(ctx context.Context, sup *supervisor.Supervisor) error { return sup.Shutdown(ctx) }, then: supervisor.ErrClosed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				sup, d := withDesk(t, supervisor.WithConcurrency(4))
				reqs := works(t, sup, "a", "foreign", "open")
				d.finish("foreign", "a")
				var inner error
				got, err := sup.RecvAll(within(t, time.Minute), []supervisor.SendPayload{reqs[0], reqs[2]}, supervisor.IgnoreErr(),
					supervisor.OnReply(func(_ *supervisor.Waiting, p supervisor.RecvPayload) error {
						if p.ReqID == "a" {
							inner = tt.call(t.Context(), sup)
						}
						return nil
					}))
				require.NoError(t, err, "RecvAll")
				require.NoError(t, inner, "the call from OnReply")
				require.Equal(t, 1, got[0].Data, "entry that had arrived")
				require.ErrorIs(t, got[1].Err, tt.then, "entry that was open")
			})
		})
	}
}

// R10: a function that always sends again is bounded by ctx.
func TestOnReplySendsForEver(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup := started(t, supervisor.Goroutine, newStepper.With(0))
		reqs := send(t, sup, supervisor.NewSendPayload(0, "Block")) // ten seconds each
		steps := 0
		began := time.Now()
		const limit = 65 * time.Second // not at the moment of a reply
		_, err := sup.RecvAll(within(t, limit), reqs, supervisor.OnReply(
			func(w *supervisor.Waiting, p supervisor.RecvPayload) error {
				if steps++; errors.Is(p.Err, supervisor.ErrTimeout) {
					return nil
				}
				return w.Send(supervisor.NewSendPayload(0, "Block"))
			}))
		require.NoError(t, err, "RecvAll: the request itself was answered")
		require.Equal(t, limit, time.Since(began), "time of RecvAll")
		require.Equal(t, 7, steps, "six replies and the timeout of the last request")
		require.Zero(t, sup.Snapshot().Open+sup.Snapshot().Unclaimed, "what is left in the inbox")
		shutdown(t, sup)
	})
}
