package supervisor_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/task"
)

// Which ends are followed by another life.
func TestRestartTypes(t *testing.T) {
	for _, tt := range []struct {
		of    supervisor.RestartType
		name  string
		end   error
		again bool
	}{
		{supervisor.Permanent, "permanent, in order", nil, true},
		{supervisor.Permanent, "permanent, by an error", errDied, true},
		{supervisor.Transient, "transient, in order", nil, false},
		{supervisor.Transient, "transient, by an error", errDied, true},
		{supervisor.Temporary, "temporary, in order", nil, false},
		{supervisor.Temporary, "temporary, by an error", errDied, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				o := &scripted{}
				sup, seen := withScripted(t, o, supervisor.Restart{Type: tt.of})
				o.last().die(tt.end)
				if tt.again {
					require.Equal(t, supervisor.StateUp, stateOf(sup), "state after the end")
					require.Equal(t, []string{"started", "exited", "restarting", "started"}, seen.kinds(), "events")
					return
				}
				require.Equal(t, supervisor.StateEnded, stateOf(sup), "state after the end")
				want, end := tt.end, "given up"
				if want == nil {
					want, end = supervisor.ErrClosed, "done"
				}
				require.Equal(t, []string{"started", "exited", end}, seen.kinds(), "events")
				p := named("late", 0, "Anything")
				err := sup.Send(context.Background(), p) // at once: nobody ends its ctx
				requireRefused(t, err, want, p)
				require.ErrorIs(t, err, supervisor.ErrClosed, "it will not come back")
				require.NotErrorIs(t, err, supervisor.ErrRestartLimit, "no limit was reached")
				requireRefused(t, sup.TrySend(p), want, p)
				if tt.end == nil {
					require.NoError(t, sup.Healthy(), "Healthy: its work is done")
				} else {
					require.ErrorIs(t, sup.Healthy(), want, "Healthy")
				}
				<-time.After(time.Hour)
				require.Equal(t, 1, o.starts(), "starts")
				require.NoError(t, sup.Restart(t.Context(), 0), "Restart brings it back")
				send(t, sup, p)
				synctest.Wait()
				require.Len(t, o.last().requests, 1, "requests of the life that follows")
			})
		})
	}
}

// A start that fails after an orderly end of a life is no orderly end, so a transient child goes on until the limit.
func TestTransientChildWhoseStartsFail(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		broken := errors.New("scripted: no start")
		o := &scripted{begin: func(_ context.Context, n int) error {
			if n == 1 {
				return nil
			}
			return broken
		}}
		sup, seen := withScripted(t, o, supervisor.Restart{Type: supervisor.Transient, Max: 3})
		o.last().die(errDied)
		<-time.After(time.Second)
		require.Equal(t, supervisor.StateEnded, stateOf(sup), "state")
		require.Equal(t, 4, o.starts(), "starts: one, and three restarts")
		given := seen.of(supervisor.EventGivenUp)
		require.Len(t, given, 1, "events of giving up")
		require.ErrorIs(t, given[0].Err, supervisor.ErrRestartLimit, "its error")
		require.ErrorIs(t, given[0].Err, broken, "its last cause")
		require.NotErrorIs(t, given[0].Err, errDied, "the first cause is not the last one")
	})
}

func TestBackoffOfItsOwn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		o := &scripted{}
		sup, _ := withScripted(t, o, supervisor.Restart{
			Max: 6, Within: time.Hour, Backoff: supervisor.Backoff{First: time.Second, Min: 2 * time.Second, Max: 5 * time.Second},
		})
		requireDelays(t, sup, o, time.Second, 2*time.Second, 4*time.Second, 5*time.Second, 5*time.Second)
		<-time.After(time.Hour - time.Minute) // no quiet time yet, and the window still has them all
		requireDelays(t, sup, o, 5*time.Second)
		o.last().die(errDied)
		require.Equal(t, supervisor.StateEnded, stateOf(sup), "state after the seventh end within the hour")
		p := named("late", 0, "Anything")
		requireRefused(t, sup.TrySend(p), supervisor.ErrRestartLimit, p)
	})
}

// A child that dies again and again, but too seldom for the limit, is slowed down all the same, until it has lived for as
// long as the window.
func TestSlowCrashLoopBacksOff(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		o := &scripted{}
		sup, seen := withScripted(t, o)
		ms := time.Millisecond
		for _, delay := range []time.Duration{
			0, 100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 6400 * ms, 12800 * ms, 25600 * ms, 30000 * ms, 30000 * ms,
		} {
			<-time.After(4 * time.Second) // so that there are three ends in ten seconds at most
			requireDelays(t, sup, o, delay)
		}
		<-time.After(9 * time.Second)
		requireDelays(t, sup, o, 30*time.Second)
		<-time.After(10 * time.Second)
		requireDelays(t, sup, o, 0, 100*time.Millisecond)
		require.Empty(t, seen.of(supervisor.EventGivenUp), "it is never given up")
		require.Equal(t, 15, sup.Snapshot().Children[0].Restarts, "restarts")
		require.NoError(t, sup.Healthy(), "Healthy")
	})
}

// Whatever ends a delay ends it at once, and whoever waits for the next life is told.
func TestDelayIsCutShort(t *testing.T) {
	for _, tt := range []struct {
		name  string
		end   func(sup *supervisor.Supervisor, endLife func()) error
		state supervisor.State
	}{
		{"by Shutdown", func(sup *supervisor.Supervisor, _ func()) error { return sup.Shutdown(context.Background()) }, supervisor.StateIdle},
		{"by Close", func(sup *supervisor.Supervisor, _ func()) error { return sup.Close() }, supervisor.StateIdle},
		{"by Unregister", func(sup *supervisor.Supervisor, _ func()) error { return sup.Unregister(context.Background(), 0) }, -1},
		{"by the end of StartLink's ctx", func(sup *supervisor.Supervisor, endLife func()) error {
			endLife()
			<-sup.Done()
			return nil
		}, supervisor.StateIdle},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				o := &scripted{}
				sup := newSupervisor(t, supervisor.Goroutine)
				_, err := sup.RegisterChild(t.Context(), o, supervisor.Restart{Backoff: supervisor.Backoff{First: time.Hour, Max: time.Hour}})
				require.NoError(t, err, "RegisterChild")
				ctx, endLife := context.WithCancel(context.Background())
				defer endLife()
				require.NoError(t, sup.StartLink(ctx), "StartLink")
				o.last().die(errDied)
				require.Equal(t, supervisor.StateWaiting, stateOf(sup), "state")
				waiting := make(chan error, 1)
				task.Go(func(context.Context) { waiting <- sup.Send(context.Background(), named("patient", 0, "Anything")) })
				synctest.Wait()
				began := time.Now()
				require.NoError(t, tt.end(sup, endLife), "the end")
				require.ErrorIs(t, <-waiting, supervisor.ErrClosed, "a Send that waits for the next life")
				require.Zero(t, time.Since(began), "time of the end")
				children := sup.Snapshot().Children
				if tt.state >= 0 {
					require.Equal(t, tt.state, children[0].State, "state after the end")
				} else {
					require.Empty(t, children, "children after the end")
				}
				<-time.After(2 * time.Hour)
				require.Equal(t, 1, o.starts(), "starts")
			})
		})
	}
}

// Requests wait for the next life for as long as one may come, and are told at once when none does.
func TestRequestsThatWaitForALifeThatNeverComes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		broken := errors.New("scripted: no start")
		o := &scripted{begin: func(_ context.Context, n int) error {
			if n == 1 {
				return nil
			}
			return broken
		}}
		sup, _ := withScripted(t, o, supervisor.Restart{Max: 2, Within: time.Hour, Backoff: supervisor.Backoff{First: time.Second, Min: time.Minute}})
		began := time.Now()
		o.last().die(errDied)
		synctest.Wait()
		byDo, bySend := make(chan error, 1), make(chan error, 1)
		task.Go(func(context.Context) {
			_, err := sup.Do(context.Background(), named("by Do", 0, "Anything"))
			byDo <- err
		})
		task.Go(func(context.Context) { bySend <- sup.Send(context.Background(), named("by Send", 0, "Anything")) })
		limited := named("limited", 0, "Anything")
		requireRefused(t, sup.Send(within(t, 5*time.Second), limited), supervisor.ErrTimeout, limited)
		require.Equal(t, 5*time.Second, time.Since(began), "time of the Send whose ctx ended")
		for how, verdict := range map[string]chan error{"by Do": byDo, "by Send": bySend} {
			err := <-verdict
			requireRefused(t, err, supervisor.ErrRestartLimit, named(how, 0, "Anything"))
			require.ErrorIs(t, err, broken, "%s: the last cause", how)
		}
		took := time.Since(began)
		require.InDelta(t, 61, took.Seconds(), 0.2*61+1, "seconds until they are told: the two delays")
		began = time.Now()
		_, err := supervisor.Go[int](context.Background(), sup, 0, "Anything").Result(context.Background())
		require.ErrorIs(t, err, supervisor.ErrRestartLimit, "Go afterwards")
		require.Zero(t, time.Since(began), "time of Go afterwards")
		stats := sup.Snapshot()
		require.Zero(t, stats.Open+stats.Unclaimed, "requests that are left")
	})
}

// GiveUpSupervisor ends all children in order, and says why to whoever asks.
func TestGiveUpSupervisor(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		o, sibling, seen := &scripted{}, newCloser(), &events{}
		sup := newSupervisor(t, supervisor.Goroutine, supervisor.WithEvents(seen.take))
		_, err := sup.RegisterChild(t.Context(), o, supervisor.Restart{Max: 1, GiveUp: supervisor.GiveUpSupervisor})
		require.NoError(t, err, "RegisterChild")
		register(t, sup, supervisor.Object(sibling))
		result := make(chan error, 1)
		task.Go(func(context.Context) { result <- sup.Serve(context.Background()) })
		synctest.Wait()
		require.NoError(t, sup.Healthy(), "Healthy")
		nap := send(t, sup, named("nap", 1, "Nap"))
		o.last().die(errors.New("scripted: the first end"))
		synctest.Wait()
		open := send(t, sup, named("open", 0, "Anything"))
		began := time.Now()
		o.last().die(errDied)
		err = <-result
		require.Equal(t, time.Second, time.Since(began), "time of the end: the sibling finishes what it has")
		for name, err := range map[string]error{"Serve": err, "Err": sup.Err(), "Send": sup.Send(context.Background(), nap[0])} {
			require.ErrorIs(t, err, supervisor.ErrRestartLimit, name)
			require.ErrorIs(t, err, errDied, "%s: the last cause", name)
		}
		require.ErrorIs(t, sup.Send(context.Background(), nap[0]), supervisor.ErrClosed, "Send")
		got, err := sup.RecvAll(context.Background(), append(nap, open...), supervisor.IgnoreErr())
		require.NoError(t, err, "RecvAll of what was open")
		require.Equal(t, 1, got[0].Data, "the sibling's reply")
		require.ErrorIs(t, got[1].Err, errDied, "what the life held that was the last")
		require.Equal(t, 1, sibling.notes().closes, "calls of the sibling's Close")
		shutdowns := seen.of(supervisor.EventShutdown)
		require.Len(t, shutdowns, 1, "events of the end")
		require.ErrorIs(t, shutdowns[0].Err, supervisor.ErrRestartLimit, "its error")
		require.NoError(t, sup.StartLink(context.Background()), "StartLink again")
		require.NoError(t, sup.Healthy(), "Healthy again: its history is a new one")
		require.NoError(t, sup.Err(), "Err again")
	})
}

func TestPoliciesOutOfRange(t *testing.T) {
	sup := newSupervisor(t, supervisor.Goroutine)
	for name, r := range map[string]supervisor.Restart{
		"type":            {Type: 3},
		"negative type":   {Type: -1},
		"OnPanic":         {OnPanic: 2},
		"GiveUp":          {GiveUp: 2},
		"Max":             {Max: -1},
		"Within":          {Within: -1},
		"First":           {Backoff: supervisor.Backoff{First: -1}},
		"First above Max": {Backoff: supervisor.Backoff{First: 2, Max: 1}},
	} {
		_, err := sup.Register(t.Context(), supervisor.Object(newDesk()), r)
		require.ErrorIs(t, err, supervisor.ErrBadArgs, name)
	}
	require.Empty(t, sup.Snapshot().Children, "children")
	_, err := sup.RegisterChild(t.Context(), &scripted{}, supervisor.Restart{OnPanic: supervisor.EndLife})
	require.ErrorIs(t, err, supervisor.ErrUnsupported, "OnPanic of a kind whose handlers are not ours")
}
