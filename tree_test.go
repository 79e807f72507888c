package supervisor_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

// leaf is an object at the end of a branch; it notes its Close in a list that the whole tree shares.
type leaf struct {
	name  string
	book  *book
	awake chan struct{} // lets Sleep return
}

// book is what leaves write into.
type book struct {
	mu    sync.Mutex
	names []string
}

func (b *book) all() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.names
}

// Nap takes so long.
func (l *leaf) Nap(d time.Duration) string { <-time.After(d); return l.name }

// Sleep ignores its context.
func (l *leaf) Sleep() { <-l.awake }

// Close is the hook.
func (l *leaf) Close() error {
	l.book.mu.Lock()
	defer l.book.mu.Unlock()
	l.book.names = append(l.book.names, l.name)
	return nil
}

// tree has three levels: the root with the leaf first, the branch mid and the leaf last; mid with the leaf inner and the
// branch deep; deep with the leaf deepest.
type tree struct {
	root, mid, deep *supervisor.Supervisor
	book            *book
	awake           chan struct{}
	seen            *events // of the root
}

func newTree(t *testing.T, st supervisor.Strategy) *tree {
	t.Helper()
	tr := &tree{book: &book{}, awake: make(chan struct{}), seen: &events{}}
	object := func(s *supervisor.Supervisor, name string, opts ...supervisor.ChildOption) {
		register(t, s, supervisor.Object(&leaf{name, tr.book, tr.awake}), append(opts, supervisor.WithName(name))...)
	}
	branch := func(s, below *supervisor.Supervisor, name string) {
		_, err := s.RegisterChild(t.Context(), below.AsChild(), supervisor.WithName(name))
		require.NoError(t, err, "RegisterChild of %s", name)
	}
	tr.root = newSupervisor(t, supervisor.Goroutine, supervisor.WithStrategy(st), supervisor.WithEvents(tr.seen.take))
	tr.mid = newSupervisor(t, supervisor.Goroutine, supervisor.WithStrategy(st))
	tr.deep = newSupervisor(t, supervisor.Goroutine, supervisor.WithStrategy(st))
	object(tr.root, "first")
	branch(tr.root, tr.mid, "mid")
	object(tr.root, "last")
	object(tr.mid, "inner")
	branch(tr.mid, tr.deep, "deep")
	object(tr.deep, "deepest", supervisor.Stop{Grace: time.Hour})
	return tr
}

// running is newTree, started.
func runningTree(t *testing.T, st supervisor.Strategy) *tree {
	t.Helper()
	tr := newTree(t, st)
	require.NoError(t, tr.root.StartLink(context.Background()), "StartLink of the root")
	return tr
}

func TestTreeStartsAndDescribesItself(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		tr := newTree(t, supervisor.OneForOne)
		require.Equal(t, `supervisor, stopped, one-for-one
├─ 0 "first" goroutine, idle
├─ 1 "mid" supervisor, idle, one-for-one
│  ├─ 0 "inner" goroutine, idle
│  └─ 1 "deep" supervisor, idle, one-for-one
│     └─ 0 "deepest" goroutine, idle
└─ 2 "last" goroutine, idle
`, tr.root.Snapshot().String(), "the tree before StartLink")
		require.NoError(t, tr.root.StartLink(context.Background()), "StartLink of the root")
		for _, s := range []*supervisor.Supervisor{tr.root, tr.mid, tr.deep} {
			require.NoError(t, s.Healthy(), "Healthy of a part of the tree")
		}
		name, err := supervisor.Call[string](t.Context(), tr.deep, 0, "Nap", time.Second)
		require.NoError(t, err, "Call of a leaf, through its own supervisor")
		require.Equal(t, "deepest", name, "its reply")
		send(t, tr.deep, named("busy", 0, "Nap", time.Minute), named("behind", 0, "Nap", time.Minute))
		synctest.Wait()
		require.Equal(t, `supervisor, running, one-for-one
├─ 0 "first" goroutine, up
├─ 1 "mid" supervisor, up, one-for-one
│  ├─ 0 "inner" goroutine, up
│  └─ 1 "deep" supervisor, up, one-for-one
│     └─ 0 "deepest" goroutine, up, requests 1+1, oldest Nap for 0s
└─ 2 "last" goroutine, up
`, tr.root.Snapshot().String(), "the tree")
		shot := tr.root.Snapshot().Children[1]
		require.Equal(t, "supervisor", shot.Kind, "kind of a branch")
		require.Equal(t, tr.mid.Snapshot().Children[1].Tree.Children[0].Incarnation, shot.Tree.Children[1].Tree.Children[0].Incarnation,
			"a branch shows what its supervisor shows")

		p := named("a", 1, "Nap", time.Second)
		err = tr.root.Send(t.Context(), p)
		if err == nil { // then it is the verdict
			var got supervisor.RecvPayload
			got, err = tr.root.Recv(t.Context())
			require.Equal(t, "a", got.ReqID, "whose verdict it is")
		}
		requireRefused(t, err, supervisor.ErrNoSuchMethod, p)
		require.NoError(t, tr.root.Shutdown(context.Background()), "Shutdown")
	})
}

// Depth first, in the reverse order on each level, and what was accepted is finished on all of them: a branch has as long as
// the supervisor above it.
func TestTreeStopsDepthFirst(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		tr := runningTree(t, supervisor.RestForOne)
		nap := send(t, tr.deep, named("nap", 0, "Nap", 20*time.Minute))
		began := time.Now()
		require.NoError(t, tr.root.Shutdown(context.Background()), "Shutdown of the root")
		require.Equal(t, 20*time.Minute, time.Since(began), "time of Shutdown")
		require.Equal(t, []string{"last", "deepest", "inner", "first"}, tr.book.all(), "order of the ends")
		got, err := tr.deep.RecvAll(t.Context(), nap)
		require.NoError(t, err, "RecvAll of what was under way")
		require.Equal(t, "deepest", got[0].Data, "its reply")
		for _, s := range []*supervisor.Supervisor{tr.mid, tr.deep} {
			require.False(t, s.Snapshot().Running, "a branch runs")
			require.NoError(t, s.Err(), "Err of a branch: its end was in order")
			require.ErrorIs(t, s.Send(t.Context(), named("late", 0, "Nap", time.Second)), supervisor.ErrClosed, "Send to a branch")
		}
		require.NoError(t, tr.root.StartLink(context.Background()), "StartLink of the root again")
		require.NoError(t, tr.root.Healthy(), "Healthy: the whole tree is there again")
	})
}

// One deadline for all: who is stuck two levels below is named by the root.
func TestTreeStopsUnderOneDeadline(t *testing.T) {
	for _, st := range []supervisor.Strategy{supervisor.OneForOne, supervisor.RestForOne} {
		t.Run(st.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				tr := runningTree(t, st)
				letGo := sync.OnceFunc(func() { close(tr.awake) })
				defer letGo()
				send(t, tr.deep, named("asleep", 0, "Sleep"))
				synctest.Wait()
				began := time.Now()
				err := tr.root.Shutdown(within(t, 3*time.Second))
				require.ErrorIs(t, err, supervisor.ErrTimeout, "Shutdown of the root")
				var stuck *supervisor.StuckError
				require.ErrorAs(t, err, &stuck, "Shutdown of the root")
				require.Equal(t, []any{0, "deepest", "Sleep", false}, []any{stuck.ProcID, stuck.Name, stuck.Method, stuck.Killed}, "what is stuck")
				require.Contains(t, stuck.Stack, "(*leaf).Sleep", "its stack")
				require.ErrorContains(t, err, "deepest", "the text of the error")
				took := time.Since(began)
				require.GreaterOrEqual(t, took, 3*time.Second, "time of Shutdown")
				require.LessOrEqual(t, took, 4*time.Second, "time of Shutdown: the deadline holds on every level")
				require.ElementsMatch(t, []string{"first", "inner", "last"}, tr.book.all(), "who has ended in order")
				letGo()
				synctest.Wait()
				require.Contains(t, tr.book.all(), "deepest", "who has ended at last")
			})
		})
	}
}

// What had to be cut off below is named as well, as any child is.
func TestTreeNamesWhatItCutsOff(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		r := withBrittle(t, kind, 0, supervisor.OneForOne)
		mid, below := newSupervisor(t, kind), newSupervisor(t, kind)
		for i := range 2 {
			register(t, below, newBrittle.With(r.gate.Address), supervisor.WithName([]string{"one", "other"}[i]))
		}
		_, err := mid.RegisterChild(t.Context(), below.AsChild())
		require.NoError(t, err, "RegisterChild")
		_, err = r.sup.RegisterChild(t.Context(), mid.AsChild()) // r.sup runs, so this starts the branch
		require.NoError(t, err, "RegisterChild")
		reqs := send(t, below, supervisor.NewSendPayload(0, "Hold", "one"), supervisor.NewSendPayload(1, "Hold", "other"))
		r.gate.Next(t)
		r.gate.Next(t)
		err = r.sup.Shutdown(within(t, 50*time.Millisecond))
		require.ErrorIs(t, err, supervisor.ErrTimeout, "Shutdown of the root")
		for _, name := range []string{"one", "other"} {
			require.ErrorContains(t, err, name, "who was cut off")
		}
		var cut *supervisor.StuckError
		require.ErrorAs(t, err, &cut, "Shutdown of the root")
		require.Equal(t, []any{"Hold", true}, []any{cut.Method, cut.Killed}, "how")
		got, err := below.RecvAll(testkit.Context(t), reqs, supervisor.IgnoreErr())
		require.NoError(t, err, "RecvAll")
		for _, p := range got {
			require.ErrorIs(t, verdictOf(t, p), supervisor.ErrClosed, "verdict of what was cut off")
		}
	})
}

// Close ends the whole tree at once.
func TestTreeCloses(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		tr := runningTree(t, supervisor.OneForOne)
		send(t, tr.deep, named("nap", 0, "Nap", time.Hour))
		synctest.Wait()
		began := time.Now()
		_ = tr.root.Close() // it names what it could not cut off
		require.Less(t, time.Since(began), 2*time.Second, "time of Close")
		require.False(t, tr.deep.Snapshot().Running, "the deepest supervisor runs")
		<-time.After(time.Hour) // the handler is heedless, but returns
	})
}

// The end of the ctx of StartLink ends the tree as Shutdown does.
func TestTreeEndsWithItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		tr := newTree(t, supervisor.RestForOne)
		ctx, end := context.WithCancel(context.Background())
		served := make(chan error, 1)
		task.Go(func(context.Context) { served <- tr.root.Serve(ctx) })
		synctest.Wait()
		require.NoError(t, tr.root.Healthy(), "Healthy")
		end()
		require.NoError(t, <-served, "Serve of the root")
		require.Equal(t, []string{"last", "deepest", "inner", "first"}, tr.book.all(), "order of the ends")
	})
}

// A start that fails below fails the whole tree, by name, and leaves nothing.
func TestTreeWhoseLeafDoesNotStart(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		tr := newTree(t, supervisor.OneForOne)
		bad := &scripted{begin: func(context.Context, int) error { return errDied }}
		_, err := tr.deep.RegisterChild(t.Context(), bad, supervisor.WithName("rotten"))
		require.NoError(t, err, "RegisterChild")
		err = tr.root.StartLink(context.Background())
		require.ErrorIs(t, err, errDied, "StartLink of the root")
		for _, name := range []string{"mid", "deep", "rotten"} {
			require.ErrorContains(t, err, name, "the way to the child that failed")
		}
		for _, s := range []*supervisor.Supervisor{tr.root, tr.mid, tr.deep} {
			require.False(t, s.Snapshot().Running, "a part of the tree runs")
		}
		bad.begin = nil
		require.NoError(t, tr.root.StartLink(testkit.Context(t)), "StartLink, when the cause is gone")
		require.NoError(t, tr.root.Healthy(), "Healthy")
	})
}
