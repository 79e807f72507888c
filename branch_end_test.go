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
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

// lingering is an object whose Close waits at the gate, whatever happens.
type lingering struct{ gate string }

var newLingering = supervisor.DefineWith("supervisor_test.lingering", func(_ context.Context, gate string) (*lingering, error) {
	return &lingering{gate}, nil
})

// Nothing does nothing.
func (*lingering) Nothing() {}

// Close is the hook.
func (l *lingering) Close() error {
	_, err := childtest.WaitAt(context.Background(), l.gate, "close")
	return err
}

// startingBranch is a root whose branch is being started: its first child is up, the factory of the second one is at the gate.
type startingBranch struct {
	*belowRig
	factory *childtest.Visitor
	started *task.Task // ends with StartLink of the root
	err     error      // of that
}

func startBranch(t *testing.T, kind supervisor.ChildType) *startingBranch {
	t.Helper()
	r := &startingBranch{belowRig: &belowRig{brittleRig: &brittleRig{gate: childtest.NewGate(t), seen: newRecorder()}, below: newRecorder()}}
	r.sup = newSupervisor(t, kind, supervisor.WithEvents(r.below.Record), supervisor.WithStrategy(supervisor.RestForOne))
	register(t, r.sup, newLingering.With(r.gate.Address), supervisor.Stop{Grace: testkit.Limit})
	register(t, r.sup, newTardy.With(r.gate.Address), supervisor.WithStartTimeout(time.Hour))
	r.root = newSupervisor(t, kind, supervisor.WithEvents(r.seen.Record))
	_, err := r.root.RegisterChild(t.Context(), r.sup.AsChild())
	require.NoError(t, err, "RegisterChild")
	r.started = task.Go(func(context.Context) { r.err = r.root.StartLink(context.Background()) })
	r.factory = r.gate.Next(t)
	require.Equal(t, "factory", r.factory.Name, "who is at the gate")
	return r
}

// requireGone asserts that nothing of the tree is left, and nothing was called stuck.
func (r *startingBranch) requireGone(t *testing.T) {
	t.Helper()
	r.started.Wait()
	require.ErrorIs(t, r.err, supervisor.ErrClosed, "StartLink of the root")
	r.factory.Gone(t)
	for name, seen := range map[string]*testkit.Recorder[supervisor.Event, supervisor.EventKind]{"root": r.seen, "branch": r.below} {
		require.NotContains(t, seen.Kinds(), supervisor.EventStuck, "events of the %s:\n%s", name, seen)
	}
	for _, s := range []*supervisor.Supervisor{r.root, r.sup} {
		require.False(t, s.Snapshot().Running, "a part of the tree runs")
		testkit.Closed(t, s.Done(), "Done of a part of the tree")
	}
}

// requireNoneStuck asserts that whatever err names was killed, and so is gone.
func requireNoneStuck(t *testing.T, err error) {
	t.Helper()
	for _, one := range leaves(err) {
		var stuck *supervisor.StuckError
		if errors.As(one, &stuck) {
			require.True(t, stuck.Killed, "what is stuck: %v", stuck)
		}
	}
}

// leaves are the errors that err joins.
func leaves(err error) (all []error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			all = append(all, leaves(e)...)
		}
		return all
	}
	return []error{err}
}

// An end that cannot wait kills what a branch has started so far.
func TestHastyEndOfABranchThatStarts(t *testing.T) {
	if len(kinds()) == 1 {
		t.Skip("this system has no process children")
	}
	for name, end := range map[string]func(t *testing.T, r *startingBranch) error{
		"Close": func(t *testing.T, r *startingBranch) error {
			t.Helper()
			err := r.root.Close()
			require.NoError(t, err, "Close")
			return err
		},
		"Shutdown": func(t *testing.T, r *startingBranch) error {
			t.Helper()
			err := r.root.Shutdown(within(t, 100*time.Millisecond))
			require.ErrorIs(t, err, supervisor.ErrTimeout, "Shutdown")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.NoLeaks(t)
			r := startBranch(t, supervisor.Process)
			requireNoneStuck(t, end(t, r))
			r.requireGone(t)
		})
	}
}

// With time enough a branch that starts stops in order: what is up is closed, however long that takes.
func TestPatientEndOfABranchThatStarts(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		r := startBranch(t, kind)
		var err error
		ending := task.Go(func(context.Context) { err = r.root.Shutdown(context.Background()) })
		closing := r.gate.Next(t)
		require.Equal(t, "close", closing.Name, "who is at the gate")
		<-time.After(3500 * time.Millisecond) // longer than a factory has to notice that its time is over
		closing.Release(t, "")
		ending.Wait()
		require.NoError(t, err, "Shutdown")
		require.NoError(t, r.below.Wait(t, supervisor.EventStopped).Err, "how the first child ended")
		r.requireGone(t)
	})
}

// stuckTree is a tree whose deepest leaf does not end before letGo.
func stuckTree(t *testing.T, opts ...supervisor.ChildOption) (root, below *supervisor.Supervisor, o *scripted, seen *events, letGo func()) {
	t.Helper()
	awake := make(chan struct{})
	o, seen = &scripted{}, &events{}
	below = newSupervisor(t, supervisor.Goroutine)
	register(t, below, supervisor.Object(&leaf{"asleep", &book{}, awake}), supervisor.WithName("asleep"),
		supervisor.Stop{Grace: time.Second, TermGrace: time.Second})
	_, err := below.RegisterChild(t.Context(), o, opts...)
	require.NoError(t, err, "RegisterChild")
	root = newSupervisor(t, supervisor.Goroutine, supervisor.WithEvents(seen.take))
	_, err = root.RegisterChild(t.Context(), below.AsChild(), supervisor.WithName("below"))
	require.NoError(t, err, "RegisterChild of the branch")
	require.NoError(t, root.StartLink(context.Background()), "StartLink")
	send(t, below, named("asleep", 0, "Sleep"))
	synctest.Wait()
	return root, below, o, seen, sync.OnceFunc(func() { close(awake) })
}

// requireStuckBelow asserts that err says who is stuck below.
func requireStuckBelow(t *testing.T, err error) {
	t.Helper()
	var stuck *supervisor.StuckError
	require.ErrorAs(t, err, &stuck, "what is left behind")
	require.Equal(t, []any{"asleep", "Sleep", false}, []any{stuck.Name, stuck.Method, stuck.Killed}, "what is left behind")
}

// What a branch leaves behind counts above as long as it is there, and no longer.
func TestLeftBehindByABranch(t *testing.T) {
	for _, early := range []bool{true, false} {
		t.Run(map[bool]string{true: "gone before Shutdown", false: "still there at Shutdown"}[early], func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				root, _, _, seen, letGo := stuckTree(t)
				defer letGo()
				require.NoError(t, root.Restart(t.Context(), 0), "Restart of the branch")
				found := seen.of(supervisor.EventStuck)
				require.Len(t, found, 1, "events of being stuck")
				requireStuckBelow(t, found[0].Err)
				require.Equal(t, 1, root.Snapshot().Children[0].Stuck, "lives of the branch that are stuck")
				if early {
					letGo()
					synctest.Wait()
					require.Zero(t, root.Snapshot().Children[0].Stuck, "lives of the branch that are stuck once the handler has returned")
					require.NoError(t, root.Shutdown(context.Background()), "Shutdown")
					return
				}
				requireStuckBelow(t, root.Shutdown(context.Background()))
			})
		})
	}
}

// What a branch leaves behind does not hide why it gave up.
func TestBranchThatGivesUpAndLeavesSomethingBehind(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		root, _, o, seen, letGo := stuckTree(t, supervisor.Restart{Max: 1, GiveUp: supervisor.GiveUpSupervisor})
		defer letGo()
		for range 2 {
			o.last().die(errDied)
			synctest.Wait()
		}
		<-time.After(time.Minute)
		exited := seen.of(supervisor.EventExited)
		require.Len(t, exited, 1, "deaths that the root has seen")
		require.ErrorIs(t, exited[0].Err, supervisor.ErrRestartLimit, "why")
		require.ErrorIs(t, exited[0].Err, errDied, "why")
		requireStuckBelow(t, exited[0].Err)
		require.Equal(t, 1, root.Snapshot().Children[0].Stuck, "lives of the branch that are stuck")
		require.Equal(t, 3, o.starts(), "starts: a fresh generation has come")
		letGo()
		synctest.Wait()
		require.Zero(t, root.Snapshot().Children[0].Stuck, "lives of the branch that are stuck once the handler has returned")
		require.NoError(t, root.Shutdown(context.Background()), "Shutdown")
	})
}

// Who returns from Serve has been told everything, the end included.
func TestServeReturnsAfterItsEvents(t *testing.T) {
	for name, end := range map[string]func(cancel func(), sup *supervisor.Supervisor, o *scripted){
		"the end of its ctx": func(cancel func(), _ *supervisor.Supervisor, _ *scripted) { cancel() },
		"Shutdown":           func(_ func(), sup *supervisor.Supervisor, _ *scripted) { _ = sup.Shutdown(context.Background()) },
		"giving up":          func(_ func(), _ *supervisor.Supervisor, o *scripted) { o.last().die(errDied) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var mu sync.Mutex
				var told []supervisor.EventKind
				sup := newSupervisor(t, supervisor.Goroutine, supervisor.WithEvents(func(e supervisor.Event) {
					<-time.After(100 * time.Millisecond) // who is told is slow
					mu.Lock()
					defer mu.Unlock()
					told = append(told, e.Kind)
				}))
				o := &scripted{}
				_, err := sup.RegisterChild(t.Context(), o, supervisor.Restart{Max: 1, GiveUp: supervisor.GiveUpSupervisor})
				require.NoError(t, err, "RegisterChild")
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				var last []supervisor.EventKind
				serving := task.Go(func(context.Context) {
					_ = sup.Serve(ctx) // how it ends is another test's
					mu.Lock()
					defer mu.Unlock()
					last = told
				})
				<-time.After(time.Second)
				if name == "giving up" {
					o.last().die(errDied)
					<-time.After(time.Second)
				}
				end(cancel, sup, o)
				serving.Wait()
				require.NotEmpty(t, last, "what was told when Serve returned")
				require.Equal(t, supervisor.EventShutdown, last[len(last)-1], "the last of what was told when Serve returned: %v", last)
			})
		})
	}
}
