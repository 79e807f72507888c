package supervisor_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/task"
)

// groupEnd is a way to end a supervisor.
type groupEnd struct {
	name string
	do   func(sup *supervisor.Supervisor) error
}

func ends() []groupEnd {
	return []groupEnd{
		{"Shutdown", func(sup *supervisor.Supervisor) error { return sup.Shutdown(context.Background()) }},
		{"Close", func(sup *supervisor.Supervisor) error { return sup.Close() }},
	}
}

// requireEnds ends the supervisor, which must take no longer than that, and leave nothing; and then start it again.
func (g *scriptedGroup) requireEnds(t *testing.T, end groupEnd, limit time.Duration) {
	t.Helper()
	began := time.Now()
	var err error
	ending := task.Go(func(context.Context) { err = end.do(g.sup) })
	select {
	case <-ending.Done():
	case <-time.After(time.Hour):
		require.Fail(t, "no end after an hour", "states %v", g.states())
	}
	require.NoError(t, err, end.name)
	require.LessOrEqual(t, time.Since(began), limit, "time of it")
	g.requireEnded(t)
}

// requireEnded asserts that the supervisor has ended as a whole, and starts it again.
func (g *scriptedGroup) requireEnded(t *testing.T) {
	t.Helper()
	select {
	case <-g.sup.Done():
	default:
		require.Fail(t, "Done is not closed")
	}
	before := g.starts()
	for id, o := range g.all {
		for n, l := range o.lives {
			require.True(t, hasEnded(l), "life %d of child %d has ended", n, id)
		}
	}
	<-time.After(time.Hour)
	require.Equal(t, before, g.starts(), "starts: nothing comes back by itself")
	require.NoError(t, g.sup.StartLink(context.Background()), "StartLink again")
	for id := range g.all {
		require.Equal(t, "up", g.states()[id], "state of child %d", id)
		require.Equal(t, before[id]+1, g.starts()[id], "starts of child %d", id)
	}
	require.NoError(t, g.sup.Shutdown(context.Background()), "Shutdown of the next generation")
}

// slowToReturn is a group whose second child does not come up again before the end of its context, once it has fallen.
func slowToReturn(t *testing.T, st supervisor.Strategy) *scriptedGroup {
	t.Helper()
	all := scriptedChildren(4)
	all[1].begin = func(ctx context.Context, n int) error {
		if n != 2 {
			return nil
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}
	g := withGroup(t, st, all, supervisor.WithStartTimeout(24*time.Hour))
	g.all[1].last().die(errDied)
	<-time.After(time.Second)
	first := "up"
	if st == supervisor.OneForAll {
		require.Equal(t, 2, g.starts()[0], "starts of the first child")
	}
	require.Equal(t, []string{first, "starting", "waiting", "waiting"}, g.states(), "states while the group is started again")
	return g
}

// An end that comes while a group is being started again is prompt and whole.
func TestEndDuringTheRestartOfAGroup(t *testing.T) {
	for _, st := range []supervisor.Strategy{supervisor.OneForAll, supervisor.RestForOne} {
		for _, end := range ends() {
			t.Run(st.String()+" "+end.name, func(t *testing.T) {
				inBubble(t, func(t *testing.T) { slowToReturn(t, st).requireEnds(t, end, 0) })
			})
		}
	}
}

// A child that dies too often while its group is being started again ends the supervisor, if that is what its policy says.
func TestGiveUpDuringTheRestartOfAGroup(t *testing.T) {
	for _, st := range []supervisor.Strategy{supervisor.OneForAll, supervisor.RestForOne} {
		t.Run(st.String(), func(t *testing.T) {
			for range 50 { // the child's end and the group's restart meet in more than one way
				inBubble(t, func(t *testing.T) {
					all := scriptedChildren(5)
					all[1].begin = func(_ context.Context, n int) error {
						if n == 2 {
							return errDied
						}
						return nil
					}
					g := withGroup(t, st, all, supervisor.Restart{Max: 1, GiveUp: supervisor.GiveUpSupervisor})
					g.all[1].last().die(errDied)
					select {
					case <-g.sup.Done():
					case <-time.After(time.Hour):
						require.Fail(t, "no end after an hour", "states %v", g.states())
					}
					require.ErrorIs(t, g.sup.Err(), supervisor.ErrRestartLimit, "Err")
					require.ErrorIs(t, g.sup.Err(), errDied, "Err")
					g.requireEnded(t)
				})
			}
		})
	}
}

// Restart ends the delay of a group, whoever of those that wait it is asked for.
func TestRestartEndsTheDelayOfAGroup(t *testing.T) {
	for _, st := range []supervisor.Strategy{supervisor.OneForAll, supervisor.RestForOne} {
		for name, id := range map[string]int{"who has fallen": 1, "who follows": 3} {
			t.Run(st.String()+" "+name, func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					g := pausing(t, st)
					began := time.Now()
					require.NoError(t, g.sup.Restart(context.Background(), id), "Restart")
					require.Zero(t, time.Since(began), "time of Restart")
					want := []int{2, 2, 2, 2}
					if st == supervisor.RestForOne {
						want[0] = 1
					}
					require.Equal(t, want, g.starts(), "starts: all that wait come back together")
					<-time.After(time.Hour)
					require.Equal(t, want, g.starts(), "starts, later")
					shutdown(t, g.sup)
				})
			})
		}
	}
}

// A life that was quiet for the window of its policy makes the delays begin anew, however it ends.
func TestQuietLifeResetsDelaysHoweverItEnds(t *testing.T) {
	for _, tt := range []struct {
		name string
		st   supervisor.Strategy
		end  func(t *testing.T, g *scriptedGroup)
	}{
		{"by Restart", supervisor.OneForOne, func(t *testing.T, g *scriptedGroup) {
			require.NoError(t, g.sup.Restart(t.Context(), 0), "Restart")
		}},
		{"by a strategy", supervisor.OneForAll, func(_ *testing.T, g *scriptedGroup) { g.all[1].last().die(errDied) }},
		{"by recycling", supervisor.OneForOne, func(t *testing.T, g *scriptedGroup) {
			send(t, g.sup, named("the last", 0, "Anything"))
			g.starts()
			g.all[0].last().answer(t, 1)
			require.Equal(t, 1, func() int { g.starts(); return g.sup.Snapshot().Children[0].Recycled }(), "lives recycled")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				g := withGroup(t, tt.st, scriptedChildren(2), supervisor.Recycle{MaxRequests: 1})
				o := g.all[0]
				requireDelays(t, g.sup, o, 0, 100*time.Millisecond, 200*time.Millisecond)
				<-time.After(10 * time.Second)
				before := g.starts()[0]
				tt.end(t, g)
				require.Equal(t, before+1, g.starts()[0], "starts after the end of a quiet life")
				requireDelays(t, g.sup, o, 0, 100*time.Millisecond)
			})
		})
	}
}
