package supervisor_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/task"
)

// pausing is a group whose second child has fallen, and which comes back after ten seconds, more or less.
func pausing(t *testing.T, st supervisor.Strategy) *scriptedGroup {
	t.Helper()
	g := withGroup(t, st, scriptedChildren(4), supervisor.Restart{Backoff: supervisor.Backoff{First: 10 * time.Second}})
	g.all[1].last().die(errDied)
	first := "waiting"
	if st == supervisor.RestForOne {
		first = "up"
	}
	require.Equal(t, []string{first, "waiting", "waiting", "waiting"}, g.states(), "states during the delay")
	return g
}

// What comes while a group waits for its delay.
func TestDuringADelayOfAGroup(t *testing.T) {
	const pause = 12 * time.Second // at most
	for _, tt := range []struct {
		name string
		st   supervisor.Strategy
		do   func(t *testing.T, g *scriptedGroup)
	}{
		{"Shutdown", supervisor.OneForAll, func(t *testing.T, g *scriptedGroup) {
			began := time.Now()
			require.NoError(t, g.sup.Shutdown(context.Background()), "Shutdown")
			require.Zero(t, time.Since(began), "time of Shutdown")
			<-time.After(time.Hour)
			require.Equal(t, []int{1, 1, 1, 1}, g.starts(), "starts")
			require.Equal(t, []string{"idle", "idle", "idle", "idle"}, g.states(), "states")
			require.NoError(t, g.sup.StartLink(context.Background()), "StartLink again")
			require.Equal(t, []int{2, 2, 2, 2}, g.starts(), "starts")
		}},
		{"Close", supervisor.RestForOne, func(t *testing.T, g *scriptedGroup) {
			began := time.Now()
			require.NoError(t, g.sup.Close(), "Close")
			require.Zero(t, time.Since(began), "time of Close")
			<-time.After(time.Hour)
			require.Equal(t, []int{1, 1, 1, 1}, g.starts(), "starts")
		}},
		{"Register", supervisor.OneForAll, func(t *testing.T, g *scriptedGroup) {
			began := time.Now()
			o := &scripted{}
			id, err := g.sup.RegisterChild(t.Context(), o)
			require.NoError(t, err, "RegisterChild")
			require.Zero(t, time.Since(began), "time of RegisterChild: it has nothing to wait for")
			require.Equal(t, 4, id, "its id")
			<-time.After(pause)
			require.Equal(t, []int{2, 2, 2, 2}, g.starts(), "starts")
			require.Equal(t, 1, o.starts(), "starts of the new child")
			require.Equal(t, []string{"up", "up", "up", "up", "up"}, g.states(), "states")
		}},
		{"Unregister of who has fallen", supervisor.OneForAll, func(t *testing.T, g *scriptedGroup) {
			require.NoError(t, g.sup.Unregister(context.Background(), 1), "Unregister")
			<-time.After(pause)
			require.Equal(t, []int{2, 1, 2, 2}, g.starts(), "starts")
			require.Equal(t, []string{"up", "up", "up"}, g.states(), "states")
		}},
		{"Unregister of who follows", supervisor.OneForAll, func(t *testing.T, g *scriptedGroup) {
			require.NoError(t, g.sup.Unregister(context.Background(), 3), "Unregister")
			<-time.After(pause)
			require.Equal(t, []int{2, 2, 2, 1}, g.starts(), "starts")
			require.Equal(t, []string{"up", "up", "up"}, g.states(), "states")
		}},
		{"Restart of who follows", supervisor.OneForAll, func(t *testing.T, g *scriptedGroup) {
			require.NoError(t, g.sup.Restart(context.Background(), 3), "Restart")
			require.Equal(t, []int{2, 2, 2, 2}, g.starts(), "starts: it waits for its turn")
			require.NoError(t, g.sup.Healthy(), "Healthy")
		}},
		{"Restart of who waits", supervisor.OneForAll, func(t *testing.T, g *scriptedGroup) {
			began := time.Now()
			require.NoError(t, g.sup.Restart(within(t, time.Second), 2), "Restart")
			require.Zero(t, time.Since(began), "time of Restart: it does not wait for the delay")
			require.Equal(t, []int{2, 2, 2, 2}, g.starts(), "starts: none without the others")
		}},
		{"Restart of who does not follow", supervisor.RestForOne, func(t *testing.T, g *scriptedGroup) {
			began := time.Now()
			require.NoError(t, g.sup.Restart(context.Background(), 0), "Restart")
			require.Zero(t, time.Since(began), "time of Restart")
			<-time.After(pause)
			require.Equal(t, []int{2, 2, 2, 2}, g.starts(), "starts")
		}},
		{"the end of who does not follow", supervisor.RestForOne, func(t *testing.T, g *scriptedGroup) {
			g.all[0].last().die(errDied)
			<-time.After(2 * pause)
			require.Equal(t, []string{"up", "up", "up", "up"}, g.states(), "states")
			require.LessOrEqual(t, g.starts()[0], 2, "starts of the first child")
			require.NoError(t, g.sup.Healthy(), "Healthy")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) { tt.do(t, pausing(t, tt.st)) })
		})
	}
}

// What comes while a bystander is being stopped, which takes it seven seconds.
func TestWhileABystanderStops(t *testing.T) {
	for _, tt := range []struct {
		name   string
		do     func(sup *supervisor.Supervisor) error
		took   time.Duration // at least
		starts []int
	}{
		{"Shutdown", func(sup *supervisor.Supervisor) error { return sup.Shutdown(context.Background()) }, 5 * time.Second, []int{1, 1, 1}},
		{"Close", func(sup *supervisor.Supervisor) error { return sup.Close() }, 0, []int{1, 1, 1}},
		{"Restart", func(sup *supervisor.Supervisor) error { return sup.Restart(context.Background(), 2) }, 5 * time.Second, []int{2, 2, 2}},
		{"Unregister", func(sup *supervisor.Supervisor) error { return sup.Unregister(context.Background(), 2) }, 5 * time.Second, []int{2, 2, 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				all := scriptedChildren(3)
				all[2].deaf = true
				g := withGroup(t, supervisor.OneForAll, all)
				g.all[0].last().die(errDied)
				<-time.After(2 * time.Second)
				require.Equal(t, []string{"waiting", "up", "up"}, g.states(), "states: the last one is being stopped")
				late := make(chan error, 1)
				task.Go(func(context.Context) { late <- g.sup.Send(context.Background(), named("late", 1, "Anything")) })
				synctest.Wait()
				began := time.Now()
				require.NoError(t, tt.do(g.sup), tt.name)
				require.GreaterOrEqual(t, time.Since(began), tt.took, "time of it")
				require.LessOrEqual(t, time.Since(began), 10*time.Second, "time of it")
				require.NoError(t, <-late, "a Send to a bystander whose turn to be stopped has not come")
				<-time.After(time.Minute)
				require.Equal(t, tt.starts, g.starts(), "starts")
			})
		})
	}
}

// A temporary child stops with the others, as it has to, but nobody starts it again; it can be brought back by hand.
func TestTemporaryBystander(t *testing.T) {
	for _, st := range []supervisor.Strategy{supervisor.OneForAll, supervisor.RestForOne} {
		t.Run(st.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				g := &scriptedGroup{all: scriptedChildren(4), seen: &events{}}
				g.sup = newSupervisor(t, supervisor.Goroutine, supervisor.WithEvents(g.seen.take), supervisor.WithStrategy(st))
				for id, o := range g.all {
					var opts []supervisor.ChildOption
					if id == 2 {
						opts = append(opts, supervisor.Restart{Type: supervisor.Temporary})
					}
					_, err := g.sup.RegisterChild(t.Context(), o, opts...)
					require.NoError(t, err, "RegisterChild")
				}
				require.NoError(t, g.sup.StartLink(context.Background()), "StartLink")
				open := send(t, g.sup, named("open", 2, "Anything"))
				g.all[0].last().die(errDied)
				require.Equal(t, []int{2, 2, 1, 2}, g.starts(), "starts")
				require.Equal(t, []string{"up", "up", "ended", "up"}, g.states(), "states")
				require.Equal(t, []int{3, 2, 1}, g.order(supervisor.EventStopped), "order of the stops")
				require.Equal(t, []int{2}, g.order(supervisor.EventGivenUp), "who does not come back")
				got, _ := g.sup.RecvAll(t.Context(), open, supervisor.IgnoreErr())
				p := named("late", 2, "Anything")
				for what, err := range map[string]error{"open": got[0].Err, "late": g.sup.Send(t.Context(), p)} {
					require.ErrorIs(t, err, supervisor.ErrClosed, "what becomes of the request %q", what)
					require.NotErrorIs(t, err, supervisor.ErrRestarted, "what becomes of the request %q", what)
					require.ErrorContains(t, err, "with child 0, by the strategy "+st.String(), "what becomes of the request %q", what)
				}
				require.NoError(t, g.sup.Restart(t.Context(), 2), "Restart by hand")
				g.all[3].last().die(errDied)
				want := []int{3, 3, 2, 3}
				if st == supervisor.RestForOne {
					want = []int{2, 2, 2, 3}
				}
				require.Equal(t, want, g.starts(), "starts after another one fell")
				shutdown(t, g.sup)
			})
		})
	}
}
