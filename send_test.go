package supervisor_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
)

// requireRefused checks an error of Send: typed, and surely not executed.
func requireRefused(t testing.TB, err, want error, p supervisor.SendPayload) {
	t.Helper()
	require.ErrorIs(t, err, want, "Send(%q, %s to child %d)", p.ReqID, p.Method, p.ProcID)
	var call *supervisor.CallError
	require.ErrorAs(t, err, &call, "a refusal")
	require.Equal(t, []any{p.ProcID, p.ReqID, p.Method, true}, []any{call.ProcID, call.ReqID, call.Method, call.Unexecuted},
		"child, request, method of the refusal, and that it was not executed")
}

func TestSendRefuses(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup, d := withDesk(t)
		gone := register(t, sup, supervisor.Object(newDesk()))
		require.NoError(t, sup.Unregister(t.Context(), gone), "Unregister")
		works(t, sup, "open")
		negative := named("negative", 0, "Double", 1)
		negative.Timeout = -1
		keywords := named("keywords", 0, "Double", 1)
		keywords.Kwargs = map[string]any{"N": 1}
		for _, tt := range []struct {
			name string
			req  supervisor.SendPayload
			want error
		}{
			{"a child that never was", named("1", 7, "Double", 1), supervisor.ErrNoSuchChild},
			{"a negative child, which is the last one in the original", named("2", -1, "Double", 1), supervisor.ErrNoSuchChild},
			{"a child that was unregistered", named("3", gone, "Double", 1), supervisor.ErrNoSuchChild},
			{"a method that is not there", named("4", 0, "Triple", 1), supervisor.ErrNoSuchMethod},
			{"an unexported method", named("5", 0, "begin", "x"), supervisor.ErrNoSuchMethod},
			{"no method", named("6", 0, ""), supervisor.ErrNoSuchMethod},
			{"too few arguments", named("7", 0, "Double"), supervisor.ErrBadArgs},
			{"too many arguments", named("8", 0, "Double", 1, 2), supervisor.ErrBadArgs},
			{"an argument of another type", named("9", 0, "Double", "1"), supervisor.ErrBadArgs},
			{"a number that does not fit", named("10", 0, "Double", 1.5), supervisor.ErrBadArgs},
			{"keywords without a struct", keywords, supervisor.ErrBadArgs},
			{"no id", named("", 0, "Double", 1), supervisor.ErrBadArgs},
			{"a negative timeout", negative, supervisor.ErrBadArgs},
			{"an id that is open", named("open", 0, "Double", 1), supervisor.ErrDuplicateRequest},
		} {
			t.Log(tt.name)
			requireRefused(t, sup.Send(t.Context(), tt.req), tt.want, tt.req)
			requireRefused(t, sup.TrySend(tt.req), tt.want, tt.req)
		}
		d.finish("open")
		p := named("open", 0, "Double", 1)
		requireRefused(t, sup.TrySend(p), supervisor.ErrDuplicateRequest, p) // its reply is unclaimed
		requireRecv(t, sup, "open")
		require.Zero(t, sup.Snapshot().Open+sup.Snapshot().Unclaimed, "places that refused requests have taken")
		require.NoError(t, sup.TrySend(p), "Send of an id whose reply was taken")
	})
}

func TestSendAroundGenerations(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup := newSupervisor(t, supervisor.Goroutine)
		register(t, sup, supervisor.Object(newDesk()))
		p := named("a", 0, "Double", 1)
		requireRefused(t, sup.Send(t.Context(), p), supervisor.ErrNotStarted, p)
		require.NoError(t, sup.StartLink(t.Context()), "StartLink")
		shutdown(t, sup)
		requireRefused(t, sup.Send(t.Context(), p), supervisor.ErrClosed, p)
		requireRefused(t, sup.TrySend(p), supervisor.ErrClosed, p)
		require.NoError(t, sup.Cancel(), "Cancel of nothing after Shutdown")
		require.ErrorIs(t, sup.Restart(t.Context(), 0), supervisor.ErrClosed, "Restart after Shutdown")
	})
}

func TestQueueLimit(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup, d := withDesk(t, supervisor.Limits{Queue: 2})
		works(t, sup, "a", "bb")
		p := named("third", 0, "Double", 1)
		requireRefused(t, sup.TrySend(p), supervisor.ErrBusy, p)

		began := time.Now()
		requireRefused(t, sup.Send(within(t, time.Minute), p), supervisor.ErrTimeout, p)
		require.Equal(t, time.Minute, time.Since(began), "Send waits for room until ctx ends")
		requireRefused(t, sup.Send(ended(), p), supervisor.ErrCanceled, p)

		limited := p
		limited.Timeout = time.Second
		requireRefused(t, sup.Send(t.Context(), limited), supervisor.ErrTimeout, limited)
		require.Equal(t, time.Minute+time.Second, time.Since(began), "Timeout counts from Send")

		time.AfterFunc(time.Hour, func() { d.end("a", deskEnd{}) })
		require.NoError(t, sup.Send(t.Context(), p), "Send without a limit")
		require.Equal(t, time.Minute+time.Second+time.Hour, time.Since(began), "a reply makes room")
		d.finish("bb")
		requireRecv(t, sup, "a", "bb", "third")
	})
}

// A handler must not wait for room in the queue that it is holding up itself.
func TestSendFromHandlerToOwnChild(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup := newSupervisor(t, supervisor.Goroutine)
		c := &caller{sup: sup}
		register(t, sup, supervisor.Object(c), supervisor.Limits{Queue: 1})
		other := register(t, sup, supervisor.Object(newDesk()))
		require.NoError(t, sup.StartLink(t.Context()), "StartLink")
		began := time.Now()
		_, err := supervisor.Call[int](t.Context(), sup, 0, "Ask", 0)
		var remote *supervisor.RemoteError
		require.ErrorAs(t, err, &remote, "the handler's own call")
		require.ErrorIs(t, err, supervisor.ErrBusy, "a full queue of one's own")
		require.Zero(t, time.Since(began), "time of the refusal")
		n, err := supervisor.Call[int](t.Context(), sup, 0, "Ask", other)
		require.NoError(t, err, "a handler that calls another child")
		require.Equal(t, 42, n, "its result")
	})
}

// caller is an object that calls children of its supervisor.
type caller struct{ sup *supervisor.Supervisor }

// Ask has 21 doubled by a child.
func (c *caller) Ask(ctx context.Context, id int) (int, error) {
	if id == 0 { // itself
		return supervisor.Call[int](ctx, c.sup, id, "Ask", 1)
	}
	return supervisor.Call[int](ctx, c.sup, id, "Double", 21)
}

func TestInboxLimit(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDesk()
		sup := newSupervisor(t, supervisor.Goroutine, supervisor.WithInboxLimit(2))
		register(t, sup, supervisor.Object(d), supervisor.WithConcurrency(2))
		require.NoError(t, sup.StartLink(t.Context()), "StartLink")
		works(t, sup, "a", "bb")
		p := named("third", 0, "Double", 1)
		began := time.Now()
		requireRefused(t, sup.Send(t.Context(), p), supervisor.ErrBusy, p)
		d.finish("a")
		requireRefused(t, sup.Send(t.Context(), p), supervisor.ErrBusy, p) // unclaimed replies count
		require.Zero(t, time.Since(began), "Send does not wait for a place in the inbox")
		got, err := sup.Do(t.Context(), named("", 0, "Double", 4))
		require.NoError(t, err, "Do takes no place")
		require.Equal(t, 8, got.Data, "its value")
		requireRecv(t, sup, "a")
		send(t, sup, p)
		requireRecv(t, sup, "third")
	})
}

// Deadlines are absolute: from Send on, whatever the request is waiting for.
func TestRequestTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup, d := withDesk(t)
		limited := func(id string, d time.Duration) supervisor.SendPayload {
			p := named(id, 0, "Work", id)
			p.Timeout = d
			return p
		}
		began := time.Now()
		send(t, sup, limited("running", 3*time.Second), limited("queued", time.Second), limited("answered", time.Minute))
		for _, want := range []struct {
			id string
			at time.Duration
		}{{"queued", time.Second}, {"running", 3 * time.Second}} {
			p, err := sup.Recv(t.Context())
			require.ErrorIs(t, err, supervisor.ErrTimeout, "Recv of %q", want.id)
			require.Equal(t, want.id, p.ReqID, "the request whose time is over")
			require.Equal(t, want.at, time.Since(began), "time of the verdict of %q", want.id)
		}
		synctest.Wait()
		require.Zero(t, d.runs("queued"), "executions of a request that was over before its turn")
		d.finish("answered")
		p, err := sup.Recv(t.Context())
		require.NoError(t, err, "Recv of the one in time")
		require.Equal(t, 8, p.Data, "its value")
		<-time.After(time.Hour)
		requireRecv(t, sup) // no second verdict
	})
}

func TestCancel(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup, d := withDesk(t, supervisor.WithConcurrency(2))
		require.ErrorIs(t, sup.Cancel("never"), supervisor.ErrNoSuchRequest, "Cancel of what was never sent")
		works(t, sup, "a", "running", "queued")
		d.finish("a")
		synctest.Wait()
		works(t, sup, "third")
		d.begun(t, "queued")
		err := sup.Cancel("never", "running", "a", "third")
		require.ErrorIs(t, err, supervisor.ErrNoSuchRequest, "Cancel with an id that is unknown")
		require.ErrorContains(t, err, "never", "the error names it")
		require.NotContains(t, err.Error(), "running", "and no other")

		p, err := sup.Recv(t.Context())
		require.NoError(t, err, "what was answered stays so")
		require.Equal(t, "a", p.ReqID, "the answered request")
		for _, id := range []string{"running", "third"} {
			p, err := sup.Recv(t.Context())
			require.ErrorIs(t, err, supervisor.ErrCanceled, "Recv of %q", id)
			require.Equal(t, id, p.ReqID, "the cancelled request")
		}
		d.finish("queued") // is not cancelled
		requireRecv(t, sup, "queued")
		require.Zero(t, d.runs("third"), "executions of a request that was cancelled while it was queued")
		require.ErrorIs(t, sup.Cancel("a"), supervisor.ErrNoSuchRequest, "Cancel of what was taken")
	})
}
