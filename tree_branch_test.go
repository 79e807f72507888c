package supervisor_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// A branch that gives up dies for the supervisor above, whose policy begins it afresh; when that limit is reached as well,
// the end goes on upwards with the first cause.
func TestBranchThatGivesUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		o, neighbour, seen := &scripted{}, &scripted{}, &events{}
		below := newSupervisor(t, supervisor.Goroutine)
		for _, c := range []*scripted{o, neighbour} {
			_, err := below.RegisterChild(t.Context(), c, supervisor.Restart{Max: 1, GiveUp: supervisor.GiveUpSupervisor})
			require.NoError(t, err, "RegisterChild")
		}
		root := newSupervisor(t, supervisor.Goroutine, supervisor.WithEvents(seen.take))
		_, err := root.RegisterChild(t.Context(), below.AsChild(), supervisor.WithName("below"),
			supervisor.Restart{Max: 2, GiveUp: supervisor.GiveUpSupervisor})
		require.NoError(t, err, "RegisterChild of the branch")
		require.NoError(t, root.StartLink(context.Background()), "StartLink")
		fall := func() {
			for range 2 {
				o.last().die(errDied)
				synctest.Wait()
			}
			<-time.After(time.Second) // for the delay of the branch
		}
		fall()
		exited := seen.of(supervisor.EventExited)
		require.Len(t, exited, 1, "deaths that the root has seen")
		require.Equal(t, []any{0, "below"}, []any{exited[0].ProcID, exited[0].Name}, "whose it was")
		require.ErrorIs(t, exited[0].Err, supervisor.ErrRestartLimit, "why")
		require.ErrorIs(t, exited[0].Err, errDied, "why")
		require.NoError(t, root.Healthy(), "Healthy")
		require.Equal(t, []int{3, 2}, []int{o.starts(), neighbour.starts()}, "starts: a fresh generation has all children")
		require.Equal(t, 1, root.Snapshot().Children[0].Restarts, "restarts of the branch")
		p := send(t, below, named("again", 0, "Anything"))
		synctest.Wait()
		o.last().answer(t, 1)
		_, err = below.RecvAll(t.Context(), p)
		require.NoError(t, err, "a request to the fresh generation")

		fall()
		fall()
		<-root.Done()
		for name, err := range map[string]error{"Err of the root": root.Err(), "Healthy": root.Healthy()} {
			require.ErrorIs(t, err, supervisor.ErrRestartLimit, name)
			require.ErrorIs(t, err, errDied, name)
		}
		<-time.After(time.Hour)
		require.Equal(t, []int{6, 3}, []int{o.starts(), neighbour.starts()}, "starts: three generations")
	})
}

// The same for children of both kinds, with real ends.
func TestBranchOfEachKind(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		below := withBrittleBelow(t, kind)
		before := lives(below.sup)
		for range 2 {
			_, err := supervisor.Call[int](testkit.Context(t), below.sup, 0, "Break", "below")
			require.ErrorIs(t, err, errBrittle, "Call of Break")
			below.below.Wait(t, supervisor.EventExited)
		}
		end := below.seen.Wait(t, supervisor.EventExited)
		require.ErrorIs(t, end.Err, supervisor.ErrRestartLimit, "the death of the branch")
		require.ErrorIs(t, end.Err, errBrittle, "the death of the branch")
		for range 2 {
			below.seen.Wait(t, supervisor.EventStarted)
		}
		after := lives(below.sup)
		for id := range after {
			require.Greater(t, after[id], before[id], "life of child %d", id)
			n, err := supervisor.Call[int](testkit.Context(t), below.sup, id, "Count")
			require.NoError(t, err, "Call of child %d", id)
			require.Equal(t, 1, n, "calls that its object has counted")
		}
		shutdown(t, below.root)
		require.Equal(t, []uint64{0, 0}, lives(below.sup), "lives after Shutdown of the root")
	})
}

type belowRig struct {
	*brittleRig
	root  *supervisor.Supervisor
	below *testkit.Recorder[supervisor.Event, supervisor.EventKind]
}

// withBrittleBelow is two brittle children in a branch; seen has the events of the root.
func withBrittleBelow(t *testing.T, kind supervisor.ChildType) *belowRig {
	t.Helper()
	r := &belowRig{brittleRig: &brittleRig{seen: newRecorder()}, below: newRecorder()}
	r.sup = newSupervisor(t, kind, supervisor.WithEvents(r.below.Record))
	for range 2 {
		register(t, r.sup, newBrittle.With(""), supervisor.Restart{Max: 1, GiveUp: supervisor.GiveUpSupervisor})
	}
	r.root = newSupervisor(t, kind, supervisor.WithEvents(r.seen.Record))
	_, err := r.root.RegisterChild(t.Context(), r.sup.AsChild())
	require.NoError(t, err, "RegisterChild")
	require.NoError(t, r.root.StartLink(context.Background()), "StartLink")
	return r
}

// Somebody shuts a branch down who need not: for the supervisor above that is an end in order.
func TestShutdownOfABranch(t *testing.T) {
	for name, tt := range map[string]struct {
		of    supervisor.RestartType
		state supervisor.State
	}{
		"permanent": {supervisor.Permanent, supervisor.StateUp},
		"transient": {supervisor.Transient, supervisor.StateEnded},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				below, o, seen := newSupervisor(t, supervisor.Goroutine), &scripted{}, &events{}
				_, err := below.RegisterChild(t.Context(), o)
				require.NoError(t, err, "RegisterChild")
				root := newSupervisor(t, supervisor.Goroutine, supervisor.WithEvents(seen.take))
				_, err = root.RegisterChild(t.Context(), below.AsChild(), supervisor.Restart{Type: tt.of})
				require.NoError(t, err, "RegisterChild of the branch")
				require.NoError(t, root.StartLink(context.Background()), "StartLink")
				shutdown(t, below)
				require.Equal(t, tt.state, stateOf(root), "state of the branch")
				exited := seen.of(supervisor.EventExited)
				require.Len(t, exited, 1, "ends that the root has seen")
				require.NoError(t, exited[0].Err, "how it ended")
				require.Equal(t, tt.state == supervisor.StateUp, below.Healthy() == nil, "whether a fresh generation runs")
				require.NoError(t, root.Healthy(), "Healthy of the root: the branch runs, or is done")
				require.NoError(t, root.Restart(t.Context(), 0), "Restart of the branch")
				require.NoError(t, below.Healthy(), "Healthy of the branch")
			})
		})
	}
}

// Healthy says where in the tree something is wrong.
func TestHealthOfATree(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		tr := newTree(t, supervisor.OneForOne)
		o := &scripted{}
		_, err := tr.deep.RegisterChild(t.Context(), o, supervisor.WithName("mayfly"), supervisor.Restart{Type: supervisor.Temporary})
		require.NoError(t, err, "RegisterChild")
		require.NoError(t, tr.root.StartLink(context.Background()), "StartLink")
		require.NoError(t, tr.root.Healthy(), "Healthy")
		o.last().die(errDied)
		synctest.Wait()
		err = tr.root.Healthy()
		require.ErrorIs(t, err, errDied, "Healthy of the root")
		for _, name := range []string{"mid", "deep", "mayfly"} {
			require.ErrorContains(t, err, name, "the way to what is wrong")
		}
		require.NotContains(t, err.Error(), "inner", "what is well")
		require.Contains(t, tr.root.Snapshot().String(), `1 "mayfly" outside, ended, last: scripted: died`, "the tree")
	})
}

// A supervisor hangs below another one by its Serve, too, which then has one child more that it knows nothing of.
func TestTreeByServe(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		o, below := &scripted{}, newSupervisor(t, supervisor.Goroutine)
		_, err := below.RegisterChild(t.Context(), o, supervisor.Restart{Max: 1, GiveUp: supervisor.GiveUpSupervisor})
		require.NoError(t, err, "RegisterChild")
		seen := &events{}
		root := newSupervisor(t, supervisor.Goroutine, supervisor.WithEvents(seen.take))
		register(t, root, supervisor.Object(supervisor.ServeFunc(below.Serve)), supervisor.WithName("below"))
		require.NoError(t, root.StartLink(context.Background()), "StartLink")
		synctest.Wait()
		require.NoError(t, below.Healthy(), "Healthy of the supervisor below")
		for range 2 {
			o.last().die(errDied)
			synctest.Wait()
		}
		exited := seen.of(supervisor.EventExited)
		require.Len(t, exited, 1, "deaths that the root has seen")
		require.ErrorIs(t, exited[0].Err, supervisor.ErrRestartLimit, "why")
		require.NoError(t, below.Healthy(), "Healthy of the fresh generation")
		require.Equal(t, 3, o.starts(), "starts")
		shutdown(t, root)
		require.False(t, below.Snapshot().Running, "the supervisor below runs")
		require.NoError(t, root.Err(), "Err of the root")
	})
}

// hidden is a branch that its supervisor does not know for one.
type hidden struct{ branch supervisor.Child }

// Start starts the branch.
func (h hidden) Start(ctx context.Context, life *supervisor.Life) (supervisor.Link, error) {
	return h.branch.Start(ctx, life)
}

// What would be a circle is refused at once, and names both.
func TestNoCircle(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sups := make([]*supervisor.Supervisor, 3)
		for i, name := range []string{"one", "two", "three"} {
			sups[i] = newSupervisor(t, supervisor.Goroutine)
			register(t, sups[i], supervisor.Object(newDesk()), supervisor.WithName(name))
		}
		for i := range 2 {
			_, err := sups[i].RegisterChild(t.Context(), sups[i+1].AsChild())
			require.NoError(t, err, "RegisterChild of a chain")
		}
		for i, words := range [][]string{{`"one"`, "the same"}, {`"one"`, `"two"`}, {`"one"`, `"three"`}} {
			id, err := sups[i].RegisterChild(t.Context(), sups[0].AsChild())
			require.ErrorIs(t, err, supervisor.ErrBadArgs, "RegisterChild that closes a circle of %d", i+1)
			for _, word := range words {
				require.ErrorContains(t, err, word, "RegisterChild that closes a circle of %d", i+1)
			}
			require.Equal(t, -1, id, "id of what was refused")
		}
		require.NoError(t, sups[0].StartLink(context.Background()), "StartLink of the chain")
		require.NoError(t, sups[1].Unregister(t.Context(), 1), "Unregister of the last link")
		_, err := sups[2].RegisterChild(t.Context(), sups[0].AsChild())
		require.NoError(t, err, "RegisterChild the other way round, once it is no circle any more")

		alone := newSupervisor(t, supervisor.Goroutine)
		_, err = alone.RegisterChild(t.Context(), hidden{alone.AsChild()})
		require.NoError(t, err, "RegisterChild of what is not known for a branch")
		require.ErrorIs(t, alone.StartLink(context.Background()), supervisor.ErrBadArgs, "StartLink of a supervisor below itself")
	})
}

// Of two that are hung below each other at the same time one is refused, or both.
func TestNoCircleOfTwoAtOnce(t *testing.T) {
	for range 200 {
		one, other := newSupervisor(t, supervisor.Goroutine), newSupervisor(t, supervisor.Goroutine)
		first := make(chan error, 1)
		go func() {
			_, err := one.RegisterChild(context.Background(), other.AsChild())
			first <- err
		}()
		_, second := other.RegisterChild(context.Background(), one.AsChild())
		refused := []error{second, <-first}
		require.Error(t, errors.Join(refused...), "RegisterChild of each below the other")
		for _, err := range refused {
			if err != nil {
				require.ErrorIs(t, err, supervisor.ErrBadArgs, "RegisterChild of each below the other")
			}
		}
		require.NotEmpty(t, one.Snapshot().String(), "the tree, which has an end")
	}
}

// One that runs by itself cannot be started by another one as well.
func TestNoTree(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		running := started(t, supervisor.Goroutine, supervisor.Object(newDesk()))
		above := newSupervisor(t, supervisor.Goroutine)
		_, err := above.RegisterChild(t.Context(), running.AsChild())
		require.NoError(t, err, "RegisterChild")
		require.ErrorContains(t, above.StartLink(context.Background()), "running already", "StartLink above one that runs")
		require.NoError(t, running.Healthy(), "Healthy of the one that runs: it is left alone")
	})
}
