package supervisor_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
)

// closer notes when its handlers' contexts end and when it is closed, counted from its making.
type closer struct {
	made    time.Time
	release chan struct{} // lets Deaf return
	hold    chan struct{} // lets Close return; nil: at once

	mu sync.Mutex
	closerNotes
}

// closerNotes is what a closer has seen.
type closerNotes struct {
	ctxEnd time.Duration
	cause  error
	closed time.Duration
	closes int
}

func (c *closer) notes() closerNotes {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closerNotes
}

func newCloser() *closer { return &closer{made: time.Now(), release: make(chan struct{})} }

// Heed returns when its context ends.
func (c *closer) Heed(ctx context.Context) error {
	<-ctx.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ctxEnd, c.cause = time.Since(c.made), context.Cause(ctx)
	return nil
}

// Deaf returns when the test says so.
func (c *closer) Deaf(ctx context.Context) error {
	go func() {
		<-ctx.Done()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ctxEnd, c.cause = time.Since(c.made), context.Cause(ctx)
	}()
	<-c.release
	return nil
}

// Nap takes a second.
func (c *closer) Nap() int { <-time.After(time.Second); return 1 }

// Health is the hook: it is always well.
func (c *closer) Health(context.Context) error { return nil }

// Close is the hook.
func (c *closer) Close() error {
	if c.hold != nil {
		<-c.hold
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = time.Since(c.made)
	c.closes++
	return nil
}

func withCloser(t *testing.T, c *closer, opts ...supervisor.ChildOption) (*supervisor.Supervisor, *events) {
	t.Helper()
	seen := &events{}
	sup := newSupervisor(t, supervisor.Goroutine, supervisor.WithEvents(seen.take))
	register(t, sup, supervisor.Object(c), opts...)
	require.NoError(t, sup.StartLink(t.Context()), "StartLink")
	return sup, seen
}

// What was accepted is still executed, then Close runs.
func TestShutdownDrains(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCloser()
		sup, seen := withCloser(t, c)
		reqs := send(t, sup, named("a", 0, "Nap"), named("b", 0, "Nap"), named("c", 0, "Nap"))
		began := time.Now()
		refused := make(chan error, 1)
		time.AfterFunc(time.Millisecond, func() { refused <- sup.TrySend(named("late", 0, "Nap")) })
		shutdown(t, sup)
		require.Equal(t, 3*time.Second, time.Since(began), "time of Shutdown")
		require.ErrorIs(t, <-refused, supervisor.ErrClosed, "Send during Shutdown")
		require.Equal(t, []any{1, 3 * time.Second}, []any{c.notes().closes, c.notes().closed}, "calls of Close, and when")
		got, err := sup.RecvAll(t.Context(), reqs)
		require.NoError(t, err, "RecvAll after Shutdown")
		require.Equal(t, []string{"a", "b", "c"}, idsOf(got), "all were answered")
		require.Equal(t, []string{"started", "stopped", "shutdown"}, seen.kinds(), "events")
		require.NoError(t, sup.Err(), "Err after an orderly end")
	})
}

// The steps of an orderly end: grace, cancelled contexts, abandonment.
func TestStopSteps(t *testing.T) {
	for _, tt := range []struct {
		name   string
		method string
		stop   supervisor.Stop
		cancel time.Duration // when the handler's context ends
		end    time.Duration // when Shutdown returns, give or take the last grace
		stuck  bool
	}{
		{name: "defaults, heeded", method: "Heed", cancel: 5 * time.Second, end: 5 * time.Second},
		{name: "defaults, ignored", method: "Deaf", cancel: 5 * time.Second, end: 7 * time.Second, stuck: true},
		{
			name: "given, ignored", method: "Deaf", stop: supervisor.Stop{Grace: time.Minute, TermGrace: time.Hour},
			cancel: time.Minute, end: time.Minute + time.Hour, stuck: true,
		},
		{name: "no grace", method: "Heed", stop: supervisor.Stop{Grace: -1}},
		{name: "no grace at all, ignored", method: "Deaf", stop: supervisor.Stop{Grace: -1, TermGrace: -1}, stuck: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c := newCloser()
				letGo := sync.OnceFunc(func() { close(c.release) })
				defer letGo()
				sup, seen := withCloser(t, c, tt.stop, supervisor.WithName("steps"))
				reqs := send(t, sup, named("running", 0, tt.method), named("queued", 0, "Nap"))
				synctest.Wait()
				began := time.Now()
				err := sup.Shutdown(context.Background())
				took := time.Since(began)
				require.GreaterOrEqual(t, took, tt.end, "time of Shutdown")
				require.LessOrEqual(t, took, tt.end+200*time.Millisecond, "time of Shutdown")
				require.Equal(t, tt.cancel, c.notes().ctxEnd, "when the handler's context ended")
				require.ErrorIs(t, c.notes().cause, supervisor.ErrClosed, "its cause")
				got, recvErr := sup.RecvAll(t.Context(), reqs, supervisor.IgnoreErr())
				require.NoError(t, recvErr, "RecvAll after Shutdown")
				require.ErrorIs(t, got[1].Err, supervisor.ErrClosed, "verdict of what was queued")
				require.True(t, verdictOf(t, got[1]).Unexecuted, "it was not executed")

				var stuck *supervisor.StuckError
				require.Equal(t, tt.stuck, errors.As(err, &stuck), "whether Shutdown reports %v as stuck", err)
				if !tt.stuck {
					require.NoError(t, err, "Shutdown")
					require.NoError(t, got[0].Err, "verdict of the handler that returned in time")
					require.Equal(t, 1, c.notes().closes, "calls of Close")
					return
				}
				require.NotErrorIs(t, err, supervisor.ErrTimeout, "no ctx of Shutdown has ended")
				require.Equal(t, []any{0, "steps", "Deaf"}, []any{stuck.ProcID, stuck.Name, stuck.Method}, "what is stuck")
				require.Contains(t, stuck.Stack, "(*closer).Deaf", "its stack")
				require.ErrorIs(t, got[0].Err, supervisor.ErrClosed, "verdict of the handler that was abandoned")
				require.Len(t, seen.of(supervisor.EventStuck), 1, "events that say so")

				letGo() // G02: what it still answers goes nowhere
				synctest.Wait()
				requireRecvClosed(t, sup)
			})
		})
	}
}

func requireRecvClosed(t testing.TB, sup *supervisor.Supervisor) {
	t.Helper()
	_, err := sup.Recv(context.Background())
	require.ErrorIs(t, err, supervisor.ErrClosed, "Recv after Shutdown, when all was taken")
}

func TestStuckClose(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCloser()
		c.hold = make(chan struct{})
		sup, _ := withCloser(t, c)
		err := sup.Shutdown(context.Background())
		var stuck *supervisor.StuckError
		require.ErrorAs(t, err, &stuck, "Shutdown, while Close does not return")
		require.Equal(t, "Close", stuck.Method, "what it is stuck in")
		close(c.hold)
		synctest.Wait()
		require.Equal(t, 1, c.notes().closes, "calls of Close")
	})
}

func TestShutdownContextEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		heeding, deaf, idle := newCloser(), newCloser(), newCloser()
		letGo := sync.OnceFunc(func() { close(deaf.release) })
		defer letGo()
		sup := started(t, supervisor.Goroutine, supervisor.Object(heeding), supervisor.Object(deaf), supervisor.Object(idle))
		send(t, sup, named("heed", 0, "Heed"), named("deaf", 1, "Deaf"))
		synctest.Wait()
		began := time.Now()
		err := sup.Shutdown(within(t, time.Second))
		require.ErrorIs(t, err, supervisor.ErrTimeout, "Shutdown whose ctx has ended")
		require.LessOrEqual(t, time.Since(began), time.Second+200*time.Millisecond, "its time")
		for id, method := range []string{"Heed", "Deaf"} {
			require.True(t, namesStuck(err, id, method), "Shutdown names child %d, which was at work in %s: %v", id, method, err)
		}
		require.False(t, namesStuck(err, 2, ""), "Shutdown says nothing of the child that was idle")
		require.Equal(t, time.Second, heeding.notes().ctxEnd, "when the contexts ended")
		synctest.Wait()
		require.Equal(t, 1, idle.notes().closes, "calls of the idle child's Close")
		letGo()
		synctest.Wait()
		<-sup.Done()
	})
}

// namesStuck reports whether a StuckError of child id is somewhere in err; an empty method stands for any.
func namesStuck(err error, id int, method string) bool {
	if stuck, ok := err.(*supervisor.StuckError); ok { //nolint:errorlint // this walks the whole tree
		return stuck.ProcID == id && (method == "" || stuck.Method == method)
	}
	switch e := err.(type) { //nolint:errorlint // likewise
	case interface{ Unwrap() error }:
		return namesStuck(e.Unwrap(), id, method)
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			if namesStuck(one, id, method) {
				return true
			}
		}
	}
	return false
}

// Close kills, and its error names what is not gone: nothing, if the handlers heed their contexts.
func TestCloseOfBusyChild(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCloser()
		sup, _ := withCloser(t, c)
		send(t, sup, named("a", 0, "Heed"))
		synctest.Wait()
		began := time.Now()
		require.NoError(t, sup.Close(), "Close: the child is gone")
		require.Zero(t, time.Since(began), "time of Close")
		require.ErrorIs(t, c.notes().cause, supervisor.ErrClosed, "cause of the handler's context")
		require.Equal(t, 1, c.notes().closes, "calls of the object's Close")
		require.NoError(t, sup.Close(), "Close again")
	})
}

func TestStartLinkContextIsTheLife(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		reason := errors.New("the day is over")
		ctx, end := context.WithCancelCause(context.Background())
		c := newCloser()
		sup := newSupervisor(t, supervisor.Goroutine)
		register(t, sup, supervisor.Object(c), supervisor.Stop{Grace: time.Minute})
		require.NoError(t, sup.StartLink(ctx), "StartLink")
		require.NoError(t, sup.StartLink(t.Context()), "StartLink again does nothing")
		send(t, sup, named("a", 0, "Heed"))
		synctest.Wait()
		began := time.Now()
		end(reason)
		require.NoError(t, sup.Err(), "Err while it stops")
		<-sup.Done()
		require.Equal(t, time.Minute, time.Since(began), "the end of ctx is an orderly one, with its grace")
		require.ErrorIs(t, sup.Err(), reason, "Err")
		require.ErrorIs(t, sup.Send(t.Context(), named("b", 0, "Nap")), supervisor.ErrClosed, "Send")
		require.NoError(t, sup.Shutdown(t.Context()), "Shutdown of what has ended")

		require.ErrorIs(t, sup.StartLink(ended()), supervisor.ErrCanceled, "StartLink with a ctx that has ended")
		require.NoError(t, sup.StartLink(context.Background()), "StartLink of a new generation")
		require.NoError(t, sup.Err(), "Err of the new generation")
		shutdown(t, sup)
	})
}

func TestServe(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(sup *supervisor.Supervisor, cancel context.CancelFunc)
	}{
		{"ctx ends", func(_ *supervisor.Supervisor, cancel context.CancelFunc) { cancel() }},
		{"Shutdown", func(sup *supervisor.Supervisor, _ context.CancelFunc) { _ = sup.Shutdown(context.Background()) }},
		{"Close", func(sup *supervisor.Supervisor, _ context.CancelFunc) { _ = sup.Close() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c := newCloser()
				sup := newSupervisor(t, supervisor.Goroutine)
				register(t, sup, supervisor.Object(c))
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				served := make(chan error, 1)
				go func() { served <- sup.Serve(ctx) }()
				synctest.Wait()
				require.NoError(t, sup.Healthy(), "Healthy while it serves")
				require.Empty(t, served, "Serve waits for the end")
				tt.end(sup, cancel)
				require.NoError(t, <-served, "Serve after an orderly end")
				require.Equal(t, 1, c.notes().closes, "calls of Close: all has stopped when Serve returns")
			})
		})
	}
	t.Run("start fails", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			broken := errors.New("scripted: broken")
			sup := newSupervisor(t, supervisor.Goroutine)
			_, err := sup.RegisterChild(t.Context(), &scripted{begin: func(context.Context, int) error { return broken }})
			require.NoError(t, err, "RegisterChild")
			require.ErrorIs(t, sup.Serve(t.Context()), broken, "Serve")
		})
	})
}

// X01, X04: Shutdown before the start, again, and by many.
func TestShutdownIdempotent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCloser()
		sup := newSupervisor(t, supervisor.Goroutine)
		register(t, sup, supervisor.Object(c))
		shutdown(t, sup)
		<-sup.Done()
		require.ErrorIs(t, sup.Healthy(), supervisor.ErrClosed, "Healthy after Shutdown")
		for generation := range 3 {
			require.NoError(t, sup.StartLink(context.Background()), "StartLink %d", generation)
			send(t, sup, named("a", 0, "Nap"))
			var all sync.WaitGroup
			for range 32 {
				all.Go(func() {
					if err := sup.Shutdown(context.Background()); err != nil {
						t.Errorf("one of 32 Shutdowns: %v", err)
					}
				})
			}
			all.Wait()
			shutdown(t, sup)
			require.Equal(t, generation+1, c.notes().closes, "one teardown a generation")
			requireRecvOne(t, sup, "a")
		}
	})
}

func requireRecvOne(t testing.TB, sup *supervisor.Supervisor, id string) {
	t.Helper()
	p, err := sup.Recv(context.Background())
	require.NoError(t, err, "Recv")
	require.Equal(t, id, p.ReqID, "the reply")
	requireRecvClosed(t, sup)
}

// S06: after Shutdown nothing runs, whatever restarts came in between.
func TestRestartRacesShutdown(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCloser()
		sup, _ := withCloser(t, c)
		for range 200 {
			var both sync.WaitGroup
			both.Go(func() { _ = sup.Restart(context.Background(), 0) })
			both.Go(func() { _ = sup.Shutdown(context.Background()) })
			both.Wait()
			require.Equal(t, supervisor.StateIdle, stateOf(sup), "state after Shutdown")
			require.NoError(t, sup.StartLink(context.Background()), "StartLink")
		}
		shutdown(t, sup)
	})
}

func TestUnregister(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCloser()
		sup := started(t, supervisor.Goroutine, supervisor.Object(c), supervisor.Object(newDesk()))
		send(t, sup, named("a", 0, "Nap"), named("b", 0, "Heed"))
		began := time.Now()
		require.NoError(t, sup.Unregister(t.Context(), 0), "Unregister")
		require.Equal(t, 5*time.Second, time.Since(began), "time of Unregister: the child's grace")
		require.ErrorIs(t, sup.Unregister(t.Context(), 0), supervisor.ErrNoSuchChild, "Unregister again")
		require.ErrorIs(t, sup.Restart(t.Context(), 0), supervisor.ErrNoSuchChild, "Restart")
		requireRecv(t, sup, "a", "b")
		require.NoError(t, sup.Healthy(), "Healthy without the child")
		id := register(t, sup, supervisor.Object(newDesk()))
		require.Equal(t, 2, id, "id of the next child: none is used twice")
		n, err := supervisor.Call[int](t.Context(), sup, id, "Double", 4)
		require.NoError(t, err, "Call of a child that was registered late")
		require.Equal(t, 8, n, "its result")
		shutdown(t, sup)
	})
}
