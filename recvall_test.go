package supervisor_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
)

func TestRecvAllRequestOrder(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup, d := withDesk(t, supervisor.WithConcurrency(5))
		reqs := works(t, sup, "x", "a", "y", "bb", "ccc")
		d.finish("ccc", "y", "a", "x", "bb")
		got, err := sup.RecvAll(t.Context(), []supervisor.SendPayload{reqs[3], reqs[1], reqs[4]})
		require.NoError(t, err, "RecvAll")
		require.Equal(t, []string{"bb", "a", "ccc"}, idsOf(got), "entries in request order")
		require.Equal(t, []any{2, 1, 3}, []any{got[0].Data, got[1].Data, got[2].Data}, "their values")
		requireRecv(t, sup, "y", "x") // R15: the others keep the order of their arrival
	})
}

func TestRecvAllWaits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup, d := withDesk(t, supervisor.WithConcurrency(3))
		reqs := works(t, sup, "a", "bb", "foreign")
		go func() {
			for _, name := range []string{"bb", "foreign", "a"} {
				<-time.After(time.Minute)
				d.end(name, deskEnd{value: len(name)})
			}
		}()
		began := time.Now()
		got, err := sup.RecvAll(t.Context(), reqs[:2])
		require.NoError(t, err, "RecvAll")
		require.Equal(t, []string{"a", "bb"}, idsOf(got), "entries")
		require.Equal(t, 3*time.Minute, time.Since(began), "RecvAll returns with the last awaited reply")
		requireRecv(t, sup, "foreign")
	})
}

func TestRecvAllOfNothing(t *testing.T) {
	sup := newSupervisor(t, supervisor.Goroutine)
	for _, list := range [][]supervisor.SendPayload{nil, {}} {
		got, err := sup.RecvAll(context.Background(), list)
		require.NoError(t, err, "RecvAll of an empty list")
		require.Equal(t, []supervisor.RecvPayload{}, got, "its result")
	}
}

func TestRecvAllUnknown(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup, d := withDesk(t, supervisor.WithConcurrency(4))
		reqs := works(t, sup, "kept", "taken", "gathered", "awaited")
		d.finish("taken")
		requireRecv(t, sup, "taken")
		d.finish("gathered", "kept")
		_, err := sup.RecvAll(t.Context(), reqs[2:3])
		require.NoError(t, err, "RecvAll")
		elsewhere := make(chan error, 1)
		go func() {
			_, err := sup.RecvAll(t.Context(), reqs[3:])
			elsewhere <- err
		}()
		synctest.Wait()

		for _, tt := range []struct {
			name string
			req  supervisor.SendPayload
		}{
			{"never sent", named("never", 0, "Work", "never")},
			{"taken by Recv", reqs[1]},
			{"taken by RecvAll", reqs[2]},
			{"awaited by another", reqs[3]},
			{"no id", supervisor.SendPayload{}},
		} {
			began := time.Now()
			_, err := sup.RecvAll(t.Context(), []supervisor.SendPayload{reqs[0], tt.req})
			require.ErrorIs(t, err, supervisor.ErrNoSuchRequest, "RecvAll of a request that is %s", tt.name)
			require.ErrorContains(t, err, `"`+tt.req.ReqID+`"`, "the error names the id")
			require.Zero(t, time.Since(began), "it does not wait")
		}
		requireRecv(t, sup, "kept") // none of the refused calls has claimed it
		d.finish("awaited")
		require.NoError(t, <-elsewhere, "the RecvAll that awaits it is not disturbed")
	})
}

func TestRecvAllTwiceTheSame(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup, d := withDesk(t, supervisor.WithConcurrency(2))
		reqs := works(t, sup, "a", "bb")
		d.finish("bb", "a")
		calls := 0
		got, err := sup.RecvAll(t.Context(), []supervisor.SendPayload{reqs[1], reqs[0], reqs[1]},
			supervisor.OnReply(func(*supervisor.Waiting, supervisor.RecvPayload) error { calls++; return nil }))
		require.NoError(t, err, "RecvAll")
		require.Equal(t, []string{"bb", "a", "bb"}, idsOf(got), "the reply stands at both places")
		require.Equal(t, got[0], got[2], "and is the same")
		require.Equal(t, 2, calls, "OnReply has seen it once")
		requireRecv(t, sup)
	})
}

// The original drops what it had collected when an error comes, and forgets about the rest.
func TestRecvAllFirstError(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup, d := withDesk(t, supervisor.WithConcurrency(5))
		reqs := works(t, sup, "slow", "bad", "ok", "worse", "foreign")
		d.finish("ok", "foreign")
		d.fail("bad")
		d.fail("worse")
		got, err := sup.RecvAll(t.Context(), reqs[:4])
		require.ErrorContains(t, err, errDesk.Error(), "the first error")
		require.Equal(t, []string{"slow", "bad", "ok", "worse"}, idsOf(got), "entries of all requests")
		require.Same(t, got[1].Err, err, "it is the entry's")
		require.Equal(t, 2, got[2].Data, "what was collected before is not lost")
		for _, i := range []int{0, 3} {
			require.ErrorIs(t, verdictOf(t, got[i]), supervisor.ErrPending, "entry of %q", got[i].ReqID)
		}
		require.Zero(t, d.runs("never"), "no other handler ran")

		d.finish("slow")
		again, err := sup.RecvAll(t.Context(), []supervisor.SendPayload{reqs[0]})
		require.NoError(t, err, "RecvAll of a pending entry")
		require.Equal(t, 4, again[0].Data, "its value")
		requireRecv(t, sup, "foreign", "worse")
	})
}

func TestRecvAllEndOfContext(t *testing.T) {
	for _, tt := range []struct {
		name  string
		limit func(ctx context.Context) (context.Context, context.CancelFunc)
		idle  time.Duration
		want  error
		also  error
	}{
		{
			name: "deadline", want: supervisor.ErrTimeout, also: context.DeadlineExceeded,
			limit: func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, time.Minute)
			},
		},
		{
			name: "cancel", want: supervisor.ErrCanceled, also: context.Canceled,
			limit: func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(time.Minute, cancel)
				return ctx, cancel
			},
		},
		{name: "idle", idle: time.Minute, want: supervisor.ErrTimeout, also: context.DeadlineExceeded, limit: context.WithCancel},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				sup, d := withDesk(t, supervisor.WithConcurrency(3))
				reqs := works(t, sup, "open", "ok", "foreign")
				deaf := named("deaf", 0, "Deaf", "deaf")
				reqs = append(reqs, send(t, sup, deaf)...)
				d.finish("ok")
				ctx, cancel := tt.limit(t.Context())
				defer cancel()
				opts := []supervisor.RecvOption{supervisor.IdleTimeout(tt.idle)}
				began := time.Now()
				got, err := sup.RecvAll(ctx, []supervisor.SendPayload{reqs[0], reqs[1], deaf}, opts...)
				require.Equal(t, time.Minute, time.Since(began), "time of RecvAll")
				require.ErrorIs(t, err, tt.want, "RecvAll")
				require.ErrorIs(t, err, tt.also, "RecvAll, in the words of package context")
				require.Same(t, got[0].Err, err, "it is the first entry's")
				require.NoError(t, got[1].Err, "entry of the reply that came in time")
				for _, i := range []int{0, 2} {
					require.ErrorIs(t, verdictOf(t, got[i]), tt.want, "entry of %q", got[i].ReqID)
					require.False(t, verdictOf(t, got[i]).Unexecuted, "nothing is said about %q", got[i].ReqID)
				}

				// The place is free, the id too, and the late reply goes to nobody.
				synctest.Wait()
				require.Equal(t, 1, sup.Snapshot().Open, "requests that are still open")
				d.end("deaf", deskEnd{value: 1})
				d.finish("foreign")
				requireRecv(t, sup, "foreign")
				late := sup.Snapshot().Children[0].Load.Late
				require.Equal(t, int64(2), late, "late replies: of the cancelled handler, and of the deaf one")
				reused := send(t, sup, named("open", 0, "Double", 4))
				got, err = sup.RecvAll(t.Context(), reused)
				require.NoError(t, err, "RecvAll of a later request with the same id")
				require.Equal(t, 8, got[0].Data, "its own value")
			})
		})
	}
}

func TestRecvAllTellsTheHandler(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup := newSupervisor(t, supervisor.Goroutine)
		causes := make(chan error, 2)
		register(t, sup, supervisor.Object(&confessor{causes}))
		require.NoError(t, sup.StartLink(t.Context()), "StartLink")
		reqs := send(t, sup, named("running", 0, "Wait"), named("queued", 0, "Wait"))
		_, err := sup.RecvAll(within(t, time.Second), reqs, supervisor.IgnoreErr())
		require.NoError(t, err, "RecvAll with IgnoreErr, also when ctx ended")
		synctest.Wait()
		require.ErrorIs(t, <-causes, supervisor.ErrTimeout, "cause of the handler's context")
		require.Empty(t, causes, "a request that was still queued is not executed any more")
	})
}

// confessor says why its handlers ended.
type confessor struct{ causes chan<- error }

// Wait waits for the end of its context.
func (c *confessor) Wait(ctx context.Context) error {
	<-ctx.Done()
	c.causes <- context.Cause(ctx)
	return nil
}

// What has arrived counts, even if ctx had ended before the call.
func TestRecvAllWithEndedContext(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup, d := withDesk(t, supervisor.WithConcurrency(3))
		reqs := works(t, sup, "a", "open", "bb")
		d.finish("bb", "a")
		got, err := sup.RecvAll(ended(), reqs, supervisor.IgnoreErr())
		require.NoError(t, err, "RecvAll with IgnoreErr")
		require.Equal(t, 1, got[0].Data, "a reply that had arrived")
		require.ErrorIs(t, got[1].Err, supervisor.ErrCanceled, "one that had not")
		require.Equal(t, 2, got[2].Data, "another that had arrived")
	})
}

// In the original any message renews the limit, and the limit is per message.
func TestRecvAllLimits(t *testing.T) {
	ticking := func(t *testing.T, sup *supervisor.Supervisor, d *desk, foreign bool) []supervisor.SendPayload {
		names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
		reqs := works(t, sup, names...)
		last := works(t, sup, "last")
		for i, name := range names {
			time.AfterFunc(time.Duration(i+1)*30*time.Second, func() { d.end(name, deskEnd{value: 1}) })
		}
		if foreign {
			return last
		}
		return append(reqs, last...)
	}
	for _, tt := range []struct {
		name    string
		foreign bool // the replies that come are not those that are awaited
		limit   time.Duration
		idle    time.Duration
		took    time.Duration
		replies int
	}{
		{name: "deadline is not renewed by foreign replies", foreign: true, limit: 100 * time.Second, took: 100 * time.Second},
		{name: "deadline is not renewed by awaited replies", limit: 100 * time.Second, took: 100 * time.Second, replies: 3},
		{name: "idle is not renewed by foreign replies", foreign: true, limit: time.Hour, idle: 40 * time.Second, took: 40 * time.Second},
		{name: "idle is renewed by awaited replies", limit: time.Hour, idle: 40 * time.Second, took: 280 * time.Second, replies: 8},
		{name: "the shorter one counts", limit: 20 * time.Second, idle: 40 * time.Second, took: 20 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				sup, d := withDesk(t, supervisor.WithConcurrency(9))
				reqs := ticking(t, sup, d, tt.foreign)
				began := time.Now()
				got, err := sup.RecvAll(within(t, tt.limit), reqs, supervisor.IgnoreErr(), supervisor.IdleTimeout(tt.idle))
				require.NoError(t, err, "RecvAll with IgnoreErr")
				require.Equal(t, tt.took, time.Since(began), "time of RecvAll")
				values := 0
				for _, p := range got {
					if p.Err == nil {
						values++
					} else {
						require.ErrorIs(t, p.Err, supervisor.ErrTimeout, "entry of %q", p.ReqID)
					}
				}
				require.Equal(t, tt.replies, values, "replies in time")
			})
		})
	}
}

func TestRecvAllDuringClose(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup, d := withDesk(t, supervisor.WithConcurrency(2))
		reqs := works(t, sup, "a", "bb")
		d.finish("bb")
		reqs = append(reqs, works(t, sup, "cc", "queued")...)
		go func() { _ = sup.Close() }()
		got, err := sup.RecvAll(t.Context(), reqs, supervisor.IgnoreErr())
		require.NoError(t, err, "RecvAll with IgnoreErr")
		require.ErrorContains(t, got[0].Err, "closed", "entry of a request that was running")
		require.Equal(t, 2, got[1].Data, "entry of the one that was answered")
		require.ErrorIs(t, got[3].Err, supervisor.ErrClosed, "entry of a request that was queued")
		require.True(t, verdictOf(t, got[3]).Unexecuted, "it was not executed")
		require.Zero(t, d.runs("queued"), "executions of the queued one")
	})
}

// R16: three children, three ways to end.
func TestRecvAllMixed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		desks := []*desk{newDesk(), newDesk(), newDesk(), newDesk()}
		var specs []supervisor.Spec
		for _, d := range desks {
			specs = append(specs, supervisor.Object(d))
		}
		sup := started(t, supervisor.Goroutine, specs...)
		var reqs []supervisor.SendPayload
		for id, name := range []string{"value", "error", "restart", "timeout"} {
			reqs = append(reqs, named(name, id, "Work", name))
		}
		send(t, sup, reqs...)
		synctest.Wait()
		desks[0].finish("value")
		desks[1].fail("error")
		require.NoError(t, sup.Restart(t.Context(), 2), "Restart")
		got, err := sup.RecvAll(within(t, time.Minute), reqs, supervisor.IgnoreErr())
		require.NoError(t, err, "RecvAll with IgnoreErr")
		require.Equal(t, idsOf(reqs), idsOf(got), "entries in request order")
		require.NoError(t, got[0].Err, "the value")
		var remote *supervisor.RemoteError
		require.ErrorAs(t, got[1].Err, &remote, "the handler's error")
		require.ErrorIs(t, got[2].Err, supervisor.ErrRestarted, "the restarted child")
		require.ErrorIs(t, got[3].Err, supervisor.ErrTimeout, "the one that took too long")
		for _, p := range got[1:] {
			require.NotZero(t, verdictOf(t, p).Incarnation, "the life that held %q", p.ReqID)
		}
	})
}
