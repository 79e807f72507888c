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

var errDied = errors.New("scripted: died")

// requireDelays has the child die until it was restarted len(want) times, and compares the delays, which are moved by
// up to a fifth.
func requireDelays(t *testing.T, sup *supervisor.Supervisor, o *scripted, want ...time.Duration) {
	t.Helper()
	for i, delay := range want {
		before := o.starts()
		began := time.Now()
		o.last().die(errDied)
		synctest.Wait()
		if delay > 0 {
			require.Equal(t, supervisor.StateWaiting, stateOf(sup), "state before restart %d", i+1)
		}
		for o.starts() == before {
			<-time.After(time.Millisecond)
			require.Less(t, time.Since(began), time.Hour, "time to restart %d", i+1)
		}
		require.Equal(t, supervisor.StateUp, stateOf(sup), "state after restart %d", i+1)
		took := time.Since(began)
		require.InDelta(t, delay.Seconds(), took.Seconds(), 0.21*delay.Seconds()+0.002, "delay of restart %d", i+1)
	}
}

func TestRestartDelaysAndLimit(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		o := &scripted{}
		sup, seen := withScripted(t, o)
		requireDelays(t, sup, o, 0, 100*time.Millisecond, 200*time.Millisecond, 400*time.Millisecond, 800*time.Millisecond)
		require.Equal(t, 5, sup.Snapshot().Children[0].Restarts, "restarts in Snapshot")
		require.NoError(t, sup.Healthy(), "Healthy after five restarts")

		send(t, sup, named("open", 0, "Anything"))
		o.last().die(errDied) // the sixth end within ten seconds
		p, err := sup.Recv(t.Context())
		require.ErrorIs(t, err, errDied, "verdict of a request that the life held")
		require.Equal(t, "open", p.ReqID, "its id")
		require.Equal(t, supervisor.StateEnded, stateOf(sup), "state after the last end")
		p2 := named("later", 0, "Anything")
		err = sup.Send(t.Context(), p2)
		requireRefused(t, err, supervisor.ErrRestartLimit, p2)
		require.ErrorIs(t, err, errDied, "the last cause is beside it")
		require.ErrorIs(t, sup.Healthy(), supervisor.ErrRestartLimit, "Healthy")
		given := seen.of(supervisor.EventGivenUp)
		require.Len(t, given, 1, "events of giving up")
		require.ErrorIs(t, given[0].Err, supervisor.ErrRestartLimit, "its error")
		require.Len(t, seen.of(supervisor.EventRestarting), 5, "events of restarting")
		require.Len(t, seen.of(supervisor.EventExited), 6, "events of ends")

		<-time.After(time.Hour)
		require.Equal(t, 6, o.starts(), "starts: nothing comes back by itself")
		require.NoError(t, sup.Restart(t.Context(), 0), "Restart of a child that was given up")
		require.NoError(t, sup.Healthy(), "Healthy again")
		send(t, sup, p2)
		synctest.Wait()
		o.last().answer(t, "value")
		requireRecv(t, sup, "later")
		requireDelays(t, sup, o, 0, 100*time.Millisecond) // its history is a new one
	})
}

func TestQuietTimeResetsDelays(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		o := &scripted{}
		sup, _ := withScripted(t, o)
		requireDelays(t, sup, o, 0, 100*time.Millisecond, 200*time.Millisecond)
		<-time.After(10 * time.Second)
		requireDelays(t, sup, o, 0, 100*time.Millisecond, 200*time.Millisecond, 400*time.Millisecond)
		require.NoError(t, sup.Healthy(), "seven restarts, but never more than five in ten seconds")
	})
}

// Starts that hang are no quiet time: the delays go on growing, however long each start took.
func TestSlowFailingStartsBackOff(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		o := &scripted{begin: func(ctx context.Context, n int) error {
			if n == 1 {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}}
		sup, seen := withScripted(t, o) // each start may take ten seconds
		o.last().die(errDied)
		<-time.After(55 * time.Second)
		var delays []time.Duration
		for _, e := range seen.of(supervisor.EventRestarting) {
			delays = append(delays, time.Duration(e.N))
		}
		require.GreaterOrEqual(t, len(delays), 4, "restarts in 55 seconds")
		require.Zero(t, delays[0], "delay of the first restart")
		for i, d := range delays[1:] {
			require.Greater(t, d, delays[i], "delay of restart %d in %v", i+2, delays)
		}
		require.NoError(t, sup.Close(), "Close during a start")
	})
}

func TestTemporaryEndsForGood(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		o := &scripted{}
		sup, seen := withScripted(t, o, supervisor.Restart{Type: supervisor.Temporary})
		o.last().die(errDied)
		require.Equal(t, supervisor.StateEnded, stateOf(sup), "state")
		p := named("a", 0, "Anything")
		err := sup.Send(t.Context(), p)
		requireRefused(t, err, errDied, p)
		require.NotErrorIs(t, err, supervisor.ErrRestartLimit, "a Temporary child has no limit to reach")
		require.Empty(t, seen.of(supervisor.EventRestarting), "restarts")
		require.ErrorIs(t, sup.Healthy(), errDied, "Healthy")
		require.NoError(t, sup.Restart(t.Context(), 0), "Restart")
		require.Equal(t, 2, o.starts(), "starts")
	})
}

// An end without an error counts as one all the same: a Permanent child has to be there.
func TestOrderlyEndOfPermanentChild(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		o := &scripted{}
		sup, _ := withScripted(t, o)
		send(t, sup, named("open", 0, "Anything"))
		o.last().die(nil)
		_, err := sup.Recv(t.Context())
		require.ErrorIs(t, err, supervisor.ErrClosed, "verdict of a request that was open at an orderly end")
		require.Equal(t, supervisor.StateUp, stateOf(sup), "state")
		require.Equal(t, 2, o.starts(), "starts")
	})
}

func TestRequestsBetweenTwoLives(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		o := &scripted{}
		sup, _ := withScripted(t, o)
		requireDelays(t, sup, o, 0, 100*time.Millisecond)
		o.last().die(errDied) // and now 200 ms, more or less
		synctest.Wait()
		busy := named("busy", 0, "Anything")
		requireRefused(t, sup.TrySend(busy), supervisor.ErrBusy, busy)
		hasty := named("hasty", 0, "Anything")
		requireRefused(t, sup.Send(within(t, time.Millisecond), hasty), supervisor.ErrTimeout, hasty)
		began := time.Now()
		send(t, sup, named("patient", 0, "Anything"))
		require.Greater(t, time.Since(began), 100*time.Millisecond, "Send waits for the next life")
		synctest.Wait()
		require.Len(t, o.last().requests, 1, "requests that the next life has got")
		o.last().answer(t, 1)
		requireRecv(t, sup, "patient")
	})
}

func TestRestartEndsTheDelay(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		o := &scripted{}
		sup, _ := withScripted(t, o)
		requireDelays(t, sup, o, 0, 100*time.Millisecond, 200*time.Millisecond)
		o.last().die(errDied)
		require.Equal(t, supervisor.StateWaiting, stateOf(sup), "state after the end")
		began := time.Now()
		require.NoError(t, sup.Restart(t.Context(), 0), "Restart")
		require.Zero(t, time.Since(began), "time of Restart")
		require.Equal(t, supervisor.StateUp, stateOf(sup), "state")

		o.last().die(errDied)
		require.Equal(t, supervisor.StateWaiting, stateOf(sup), "state after the next end")
		require.NoError(t, sup.Shutdown(t.Context()), "Shutdown during the delay")
		require.Zero(t, time.Since(began), "time of Shutdown")
		<-time.After(time.Hour)
		require.Equal(t, 5, o.starts(), "starts")
	})
}

func TestStartTimeout(t *testing.T) {
	for _, tt := range []struct {
		name  string
		heeds bool          // the start ends with its context
		more  time.Duration // than its limit, at most
	}{
		{"a start that heeds its context", true, 0},
		{"a start that does not", false, 3 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				release := make(chan struct{})
				letGo := sync.OnceFunc(func() { close(release) })
				defer letGo()
				o := &scripted{begin: func(ctx context.Context, _ int) error {
					if tt.heeds {
						<-ctx.Done()
						return ctx.Err()
					}
					<-release
					return nil
				}}
				sup := newSupervisor(t, supervisor.Goroutine)
				_, err := sup.RegisterChild(t.Context(), o, supervisor.WithStartTimeout(3*time.Second), supervisor.WithName("slow"))
				require.NoError(t, err, "RegisterChild")
				began := time.Now()
				err = sup.StartLink(t.Context())
				require.GreaterOrEqual(t, time.Since(began), 3*time.Second, "time of StartLink")
				require.LessOrEqual(t, time.Since(began), 3*time.Second+tt.more, "time of StartLink")
				require.ErrorIs(t, err, supervisor.ErrTimeout, "StartLink")
				var start *supervisor.StartError
				require.ErrorAs(t, err, &start, "StartLink")
				require.Equal(t, []any{0, "slow"}, []any{start.ProcID, start.Name}, "the child in the error")
				var stuck *supervisor.StuckError
				require.Equal(t, !tt.heeds, errors.As(err, &stuck), "whether something was left behind")
				require.ErrorIs(t, sup.Send(t.Context(), named("a", 0, "X")), supervisor.ErrClosed, "Send after a failed StartLink")

				letGo() // what comes up too late must not stay
				synctest.Wait()
				if !tt.heeds {
					require.Equal(t, 1, o.last().stops, "Stops of the life that came up too late")
				}
			})
		})
	}
}

// All or none: the children that are up are stopped again.
func TestFailedStartLeavesNone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		broken := errors.New("scripted: broken")
		fine, bad := &scripted{}, &scripted{begin: func(context.Context, int) error { return broken }}
		sup := newSupervisor(t, supervisor.Goroutine)
		for _, o := range []*scripted{fine, bad, {}} {
			_, err := sup.RegisterChild(t.Context(), o)
			require.NoError(t, err, "RegisterChild")
		}
		err := sup.StartLink(t.Context())
		var start *supervisor.StartError
		require.ErrorAs(t, err, &start, "StartLink")
		require.ErrorIs(t, err, broken, "StartLink")
		require.Equal(t, 1, start.ProcID, "the child that failed")
		require.Equal(t, 1, bad.starts(), "starts of the child that failed: a first start is not repeated")
		if fine.starts() > 0 {
			select {
			case <-fine.last().done:
			default:
				require.Fail(t, "a child is still alive after a failed StartLink")
			}
		}
		bad.begin = nil
		require.NoError(t, sup.StartLink(t.Context()), "StartLink, when the cause is gone")
		require.NoError(t, sup.Healthy(), "Healthy")
	})
}
