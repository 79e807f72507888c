package supervisor_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// inBubble runs a test on a fake clock.
func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// within is a context that ends after d.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// ended is a context that was cancelled.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// works sends a Work request of each name, whose id is the name, and lets the handlers begin.
func works(t testing.TB, sup *supervisor.Supervisor, names ...string) []supervisor.SendPayload {
	t.Helper()
	var reqs []supervisor.SendPayload
	for _, name := range names {
		reqs = append(reqs, named(name, 0, "Work", name))
	}
	send(t, sup, reqs...)
	synctest.Wait()
	return reqs
}

// finish ends handlers one after the other with their name's length as value.
func (d *desk) finish(names ...string) {
	for _, name := range names {
		d.end(name, deskEnd{value: len(name)})
		synctest.Wait()
	}
}

// fail ends handlers one after the other with an error.
func (d *desk) fail(names ...string) {
	for _, name := range names {
		d.end(name, deskEnd{err: errDesk})
		synctest.Wait()
	}
}

// requireRecv takes what arrives without the clock going on, which must be exactly the replies of ids.
func requireRecv(t testing.TB, sup *supervisor.Supervisor, ids ...string) {
	t.Helper()
	synctest.Wait()
	var got []string
	for {
		p, err := sup.Recv(ended(), supervisor.IgnoreErr())
		if err != nil {
			require.ErrorIs(t, err, supervisor.ErrCanceled, "Recv without a reply and a ctx that has ended")
			break
		}
		got = append(got, p.ReqID)
	}
	require.Equal(t, ids, got, "what Recv finds, in the order of arrival")
}

func TestRecvArrivalOrder(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup, d := withDesk(t, supervisor.WithConcurrency(4))
		works(t, sup, "a", "b", "ccc", "e")
		d.finish("ccc")
		d.fail("a")
		d.end("b", deskEnd{panic: "at the desk"})
		synctest.Wait()
		d.fail("e")

		p, err := sup.Recv(t.Context())
		require.NoError(t, err, "Recv of a value")
		require.Equal(t, []any{"ccc", "Work", 3, 0}, []any{p.ReqID, p.Method, p.Data, p.ProcID}, "the first to arrive")
		require.NotZero(t, p.Incarnation, "the life that answered")

		p, err = sup.Recv(t.Context())
		require.Equal(t, "a", p.ReqID, "payload of an error reply")
		require.Nil(t, p.Data, "data of an error reply")
		require.Same(t, p.Err, err, "the error is the payload's")
		require.Equal(t, p.Incarnation, verdictOf(t, p).Incarnation, "the life in the error")
		var remote *supervisor.RemoteError
		require.ErrorAs(t, err, &remote, "what the handler returned")
		require.Equal(t, errDesk.Error(), remote.Text, "its text")

		_, err = sup.Recv(t.Context())
		var panicked *supervisor.PanicError
		require.ErrorAs(t, err, &panicked, "a panic")
		require.Equal(t, "at the desk", panicked.Value, "its value")
		require.Contains(t, panicked.Stack, "(*desk).Work", "its stack")

		p, err = sup.Recv(t.Context(), supervisor.IgnoreErr())
		require.NoError(t, err, "Recv of an error with IgnoreErr")
		require.Error(t, p.Err, "the payload has it all the same")
	})
}

func TestRecvOwnErrors(t *testing.T) {
	nothing := func(*supervisor.Waiting, supervisor.RecvPayload) error { return nil }
	for _, tt := range []struct {
		name string
		ctx  func(t *testing.T) context.Context
		opts []supervisor.RecvOption
		end  func(sup *supervisor.Supervisor) // what comes while Recv waits
		want error
		also error
		took time.Duration
	}{
		{name: "cancelled", ctx: func(*testing.T) context.Context { return ended() }, want: supervisor.ErrCanceled, also: context.Canceled},
		{
			name: "deadline", ctx: func(t *testing.T) context.Context { return within(t, time.Minute) },
			want: supervisor.ErrTimeout, also: context.DeadlineExceeded, took: time.Minute,
		},
		{name: "idle", opts: []supervisor.RecvOption{supervisor.IdleTimeout(time.Hour)}, want: supervisor.ErrTimeout, took: time.Hour},
		{name: "closed while it waits", end: func(s *supervisor.Supervisor) { _ = s.Close() }, want: supervisor.ErrClosed},
		{name: "negative idle", opts: []supervisor.RecvOption{supervisor.IdleTimeout(-1)}, want: supervisor.ErrBadArgs},
		{name: "nil option", opts: []supervisor.RecvOption{nil}, want: supervisor.ErrBadArgs},
		{name: "OnReply", opts: []supervisor.RecvOption{supervisor.OnReply(nothing)}, want: supervisor.ErrBadArgs},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				sup, _ := withDesk(t)
				ctx := t.Context()
				if tt.ctx != nil {
					ctx = tt.ctx(t)
				}
				if tt.end != nil {
					go func() {
						synctest.Wait()
						tt.end(sup)
					}()
				}
				began := time.Now()
				_, err := sup.Recv(ctx, tt.opts...)
				require.ErrorIs(t, err, tt.want, "Recv")
				if tt.also != nil {
					require.ErrorIs(t, err, tt.also, "Recv, in the words of package context")
				}
				var call *supervisor.CallError
				require.NotErrorAs(t, err, &call, "Recv's own errors are no verdicts")
				require.Equal(t, tt.took, time.Since(began), "time that Recv took")
			})
		})
	}
}

func TestRecvAroundGenerations(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup := newSupervisor(t, supervisor.Goroutine)
		register(t, sup, supervisor.Object(newDesk()))
		_, err := sup.Recv(t.Context())
		require.ErrorIs(t, err, supervisor.ErrNotStarted, "Recv before StartLink")
		_, err = sup.RecvAll(t.Context(), []supervisor.SendPayload{named("a", 0, "Double", 1)})
		require.ErrorIs(t, err, supervisor.ErrNotStarted, "RecvAll before StartLink")

		require.NoError(t, sup.StartLink(t.Context()), "StartLink")
		reqs := send(t, sup, named("a", 0, "Double", 1), named("b", 0, "Double", 2), named("c", 0, "Double", 3))
		shutdown(t, sup)
		p, err := sup.Recv(t.Context())
		require.NoError(t, err, "Recv after Shutdown, of what had arrived")
		require.Equal(t, "a", p.ReqID, "the reply")
		got, err := sup.RecvAll(t.Context(), reqs[1:2])
		require.NoError(t, err, "RecvAll after Shutdown, of what had arrived")
		require.Equal(t, 4, got[0].Data, "the reply")

		require.NoError(t, sup.StartLink(t.Context()), "StartLink again")
		requireRecv(t, sup) // "c" belongs to the generation before
		send(t, sup, named("c", 0, "Double", 5))
		p, err = sup.Recv(t.Context())
		require.NoError(t, err, "Recv in the next generation")
		require.Equal(t, 10, p.Data, "the reply to the later request of this id")
		shutdown(t, sup)
		_, err = sup.Recv(t.Context())
		require.ErrorIs(t, err, supervisor.ErrClosed, "Recv when nothing is left")
	})
}

// R13: one reply that a Recv and a RecvAll want. Exactly one of them gets it.
func TestRecvAndRecvAllRace(t *testing.T) {
	testkit.NoLeaks(t)
	sup, _ := withDesk(t)
	byRecv, byAll := 0, 0
	for range 2000 {
		req := send(t, sup, supervisor.NewSendPayload(0, "Double", 1))
		ctx, cancel := context.WithCancel(context.Background())
		var recvErr, allErr error
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, recvErr = sup.Recv(ctx)
		}()
		_, allErr = sup.RecvAll(testkit.Context(t), req)
		cancel()
		<-done
		switch {
		case recvErr == nil:
			require.ErrorIs(t, allErr, supervisor.ErrNoSuchRequest, "RecvAll, when Recv has the reply")
			byRecv++
		default:
			require.NoError(t, allErr, "RecvAll, when Recv returned %v", recvErr)
			require.ErrorIs(t, recvErr, supervisor.ErrCanceled, "Recv, when RecvAll has the reply")
			byAll++
		}
	}
	require.Equal(t, 2000, byRecv+byAll, "replies that one of the two got")
	shutdown(t, sup)
}
