package supervisor_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// scriptedGroup is a supervisor with scripted children under a strategy, on a fake clock.
type scriptedGroup struct {
	sup  *supervisor.Supervisor
	all  []*scripted
	seen *events
}

func withGroup(t *testing.T, st supervisor.Strategy, all []*scripted, opts ...supervisor.ChildOption) *scriptedGroup {
	t.Helper()
	g := &scriptedGroup{all: all, seen: &events{}}
	g.sup = newSupervisor(t, supervisor.Goroutine, supervisor.WithEvents(g.seen.take), supervisor.WithStrategy(st))
	for _, o := range all {
		_, err := g.sup.RegisterChild(t.Context(), o, opts...)
		require.NoError(t, err, "RegisterChild")
	}
	require.NoError(t, g.sup.StartLink(context.Background()), "StartLink")
	return g
}

func scriptedChildren(n int) (all []*scripted) {
	for range n {
		all = append(all, &scripted{})
	}
	return all
}

// starts are those of each child so far.
func (g *scriptedGroup) starts() (all []int) {
	synctest.Wait()
	for _, o := range g.all {
		all = append(all, o.starts())
	}
	return all
}

// states are those of each child.
func (g *scriptedGroup) states() (all []string) {
	synctest.Wait()
	for _, c := range g.sup.Snapshot().Children {
		all = append(all, c.State.String())
	}
	return all
}

// order lists the children of the events of a kind, so far.
func (g *scriptedGroup) order(kind supervisor.EventKind) (ids []int) {
	for _, e := range g.seen.of(kind) {
		ids = append(ids, e.ProcID)
	}
	return ids
}

// Who follows the third of five children, in which order, and what becomes of the others' requests.
func TestStrategies(t *testing.T) {
	for _, tt := range []struct {
		st      supervisor.Strategy
		stopped []int
		started []int
	}{
		{supervisor.OneForOne, nil, []int{2}},
		{supervisor.OneForAll, []int{4, 3, 1, 0}, []int{0, 1, 2, 3, 4}},
		{supervisor.RestForOne, []int{4, 3}, []int{2, 3, 4}},
	} {
		t.Run(tt.st.String(), func(t *testing.T) {
			eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
				r := withBrittle(t, kind, 5, tt.st)
				before := lives(r.sup)
				held, visitors := make([]supervisor.SendPayload, 5), make([]*childtest.Visitor, 5)
				for id := range held {
					method := "Hold"
					if id == 2 {
						method = "BreakAt"
					}
					held[id], visitors[id] = r.hold(t, id, method)
				}
				visitors[2].Release(t, "")
				require.ErrorIs(t, r.verdict(t, held[2]), errBrittle, "verdict of the request that breaks the child")
				for range 5 + len(tt.started) {
					r.seen.Wait(t, supervisor.EventStarted)
				}
				require.Equal(t, tt.stopped, r.ran(supervisor.EventStopped, 0), "order of the stops:\n%s", r.seen)
				started := r.ran(supervisor.EventStarted, 0)[5:]
				require.Equal(t, tt.started, started, "order of the starts:\n%s", r.seen)
				require.Equal(t, []int{2}, r.ran(supervisor.EventExited, 0), "who has fallen")
				require.Equal(t, []int{2}, r.ran(supervisor.EventRestarting, 0), "who is restarted by its policy")
				for id := range held {
					switch {
					case id == 2:
					case slices.Contains(tt.stopped, id):
						e := r.verdict(t, held[id])
						require.ErrorIs(t, e, supervisor.ErrRestarted, "verdict of child %d", id)
						require.False(t, e.Unexecuted, "%v", e)
						require.Equal(t, before[id], e.Incarnation, "life of %v", e)
						for _, word := range []string{`child 2 ("c")`, tt.st.String(), errBrittle.Error()} {
							require.ErrorContains(t, e, word, "the verdict of child %d says why", id)
						}
					default:
						require.Equal(t, before[id], lives(r.sup)[id], "life of child %d, which nobody touches", id)
						visitors[id].Release(t, "undisturbed")
						require.Equal(t, "undisturbed", r.value(t, held[id]), "reply of child %d", id)
					}
				}
				for id, c := range r.sup.Snapshot().Children {
					want := 0
					if id == 2 {
						want = 1
					}
					require.Equal(t, want, c.Restarts, "restarts of child %d: following counts for nothing", id)
					require.Equal(t, 1, r.count(t, id), "calls that the object of child %d has counted", id)
				}
				shutdown(t, r.sup)
			})
		})
	}
}

// Children start one after the other and stop the other way round, each when the one before it is done.
func TestOrderOfStartLinkAndShutdown(t *testing.T) {
	for _, tt := range []struct {
		st   supervisor.Strategy
		took time.Duration // of both
	}{
		{supervisor.OneForOne, time.Second},
		{supervisor.OneForAll, 4 * time.Second},
		{supervisor.RestForOne, 4 * time.Second},
	} {
		t.Run(tt.st.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				all := scriptedChildren(4)
				for _, o := range all {
					o.deaf = true // so that a stop takes as long as it may
					o.begin = func(context.Context, int) error { <-time.After(time.Second); return nil }
				}
				began := time.Now()
				g := withGroup(t, tt.st, all, supervisor.Stop{Grace: time.Second, TermGrace: -1})
				require.Equal(t, tt.took, time.Since(began), "time of StartLink")
				began = time.Now()
				require.NoError(t, g.sup.Shutdown(context.Background()), "Shutdown")
				require.Equal(t, tt.took, time.Since(began), "time of Shutdown")
				if tt.st != supervisor.OneForOne {
					require.Equal(t, []int{0, 1, 2, 3}, g.order(supervisor.EventStarted), "order of the starts")
					require.Equal(t, []int{3, 2, 1, 0}, g.order(supervisor.EventStopped), "order of the stops")
				}
			})
		})
	}
}

// A start that fails: the children behind it are not started at all, those before it are stopped again, the last one first.
func TestOrderOfAStartThatFails(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		broken := errors.New("scripted: broken")
		all := scriptedChildren(4)
		all[2].begin = func(context.Context, int) error { return broken }
		seen := &events{}
		sup := newSupervisor(t, supervisor.Goroutine, supervisor.WithEvents(seen.take), supervisor.WithStrategy(supervisor.RestForOne))
		for _, o := range all {
			_, err := sup.RegisterChild(t.Context(), o)
			require.NoError(t, err, "RegisterChild")
		}
		require.ErrorIs(t, sup.StartLink(context.Background()), broken, "StartLink")
		g := &scriptedGroup{sup: sup, all: all, seen: seen}
		require.Equal(t, []int{1, 1, 1, 0}, g.starts(), "starts")
		require.Equal(t, []int{1, 0}, g.order(supervisor.EventStopped), "order of the stops")
	})
}

// Two children fall in one moment: all are restarted once, not twice.
func TestTwoFallAtOnce(t *testing.T) {
	for st, want := range map[supervisor.Strategy][]int{
		supervisor.OneForAll:  {2, 2, 2, 2, 2},
		supervisor.RestForOne: {1, 2, 2, 2, 2},
	} {
		t.Run(st.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				g := withGroup(t, st, scriptedChildren(5), supervisor.Restart{Backoff: supervisor.Backoff{First: time.Second}})
				open := send(t, g.sup, named("0", 0, "Anything"), named("1", 1, "Anything"), named("2", 2, "Anything"), named("3", 3, "Anything"))
				synctest.Wait()
				g.all[3].last().die(errDied)
				g.all[1].last().die(errDied)
				<-time.After(2 * time.Second)
				require.Equal(t, want, g.starts(), "starts")
				require.Equal(t, []string{"up", "up", "up", "up", "up"}, g.states(), "states")
				started := g.order(supervisor.EventStarted)[5:]
				require.True(t, slices.IsSorted(started), "order of the starts: %v", started)
				for id, p := range open {
					if id == 0 && st == supervisor.RestForOne {
						continue
					}
					got, err := g.sup.RecvAll(t.Context(), []supervisor.SendPayload{p}, supervisor.IgnoreErr())
					require.NoError(t, err, "RecvAll")
					verdict := got[0].Err
					if (id == 1 || id == 3) && errors.Is(verdict, errDied) {
						continue // else it was stopped with the other before its own end was seen
					}
					require.ErrorIs(t, verdict, supervisor.ErrRestarted, "verdict of what child %d held", id)
				}
				require.NoError(t, g.sup.Healthy(), "Healthy")
			})
		})
	}
}

// The longest of the delays counts, for all.
func TestDelayOfAGroup(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := withGroup(t, supervisor.OneForAll, scriptedChildren(3), supervisor.Restart{Backoff: supervisor.Backoff{First: 10 * time.Second}})
		began := time.Now()
		g.all[1].last().die(errDied)
		require.Equal(t, []string{"waiting", "waiting", "waiting"}, g.states(), "states during the delay")
		require.NoError(t, g.sup.Healthy(), "Healthy: all come back")
		p := named("patient", 2, "Anything")
		requireRefused(t, g.sup.TrySend(p), supervisor.ErrBusy, p)
		send(t, g.sup, p)
		require.InDelta(t, 10, time.Since(began).Seconds(), 2, "seconds until a Send to a bystander is accepted")
		require.Equal(t, []int{2, 2, 2}, g.starts(), "starts")
	})
}

// A bystander that does not come up again falls itself, and all begin anew.
func TestBystanderWhoseStartFails(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		all := scriptedChildren(5)
		all[2].begin = func(_ context.Context, n int) error {
			if n == 2 {
				return errors.New("scripted: not now")
			}
			return nil
		}
		g := withGroup(t, supervisor.OneForAll, all)
		g.all[0].last().die(errDied)
		require.Equal(t, []int{3, 3, 3, 2, 2}, g.starts(), "starts: those behind it wait for it")
		require.Equal(t, []string{"up", "up", "up", "up", "up"}, g.states(), "states")
		require.Equal(t, []int{2}, g.order(supervisor.EventStartFailed), "starts that failed")
		require.Equal(t, []int{0, 2}, g.order(supervisor.EventRestarting), "restarts by a policy")
		require.Equal(t, []int{4, 3, 2, 1, 1, 0}, g.order(supervisor.EventStopped), "order of the stops")
	})
}

// A child that is given up takes nobody with it, and no longer follows anybody.
func TestGivenUpUnderAStrategy(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		r := withBrittle(t, kind, 3, supervisor.OneForAll, supervisor.Restart{Max: 1, Within: time.Hour})
		fall := func(id int) {
			t.Helper()
			_, err := supervisor.Call[int](testkit.Context(t), r.sup, id, "Break", "again")
			require.ErrorIs(t, err, errBrittle, "Call of Break")
		}
		fall(1)
		for range 6 {
			r.seen.Wait(t, supervisor.EventStarted)
		}
		before := lives(r.sup)
		fall(1)
		require.ErrorIs(t, r.seen.Wait(t, supervisor.EventGivenUp).Err, supervisor.ErrRestartLimit, "the event of giving up")
		require.Equal(t, []uint64{before[0], 0, before[2]}, lives(r.sup), "lives: the others stay")
		fall(0)
		for range 2 {
			r.seen.Wait(t, supervisor.EventStarted)
		}
		after := lives(r.sup)
		require.Zero(t, after[1], "life of the child that was given up")
		require.Greater(t, after[2], before[2], "life of the child that follows")
		require.NoError(t, r.sup.Restart(testkit.Context(t), 1), "Restart of the child that was given up")
		require.Equal(t, after[2], lives(r.sup)[2], "Restart concerns one child")
		shutdown(t, r.sup)
	})
}
