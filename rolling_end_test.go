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
)

// givenUpWithSuccessor is a child that was given up while its successor, which is ready, takes seven seconds to stop.
func givenUpWithSuccessor(t *testing.T) (*supervisor.Supervisor, *scripted) {
	t.Helper()
	o := &scripted{}
	sup, seen := withScripted(t, o, supervisor.Restart{Type: supervisor.Temporary}, supervisor.Recycle{MaxRequests: 1, Rolling: true})
	first := o.last()
	o.deaf = true // from the second life on
	send(t, sup, named("open", 0, "Anything"))
	synctest.Wait()
	require.Equal(t, 2, o.starts(), "starts: the successor waits for what is open")
	first.die(errDied)
	_, err := sup.Recv(t.Context())
	require.ErrorIs(t, err, errDied, "verdict of what was open")
	require.Equal(t, supervisor.StateEnded, stateOf(sup), "state")
	require.Len(t, seen.of(supervisor.EventGivenUp), 1, "events of giving up")
	return sup, o
}

// What is asked of a child that was given up does not wait longer than its ctx for a successor to stop, and holds up nobody
// who only looks.
func TestWhileASuccessorIsDropped(t *testing.T) {
	for _, tt := range []struct {
		name  string
		do    func(ctx context.Context, sup *supervisor.Supervisor) error
		fails bool // because its ctx has ended
		after int  // starts in the end
	}{
		{"Restart", func(ctx context.Context, sup *supervisor.Supervisor) error { return sup.Restart(ctx, 0) }, true, 3},
		{"Unregister", func(ctx context.Context, sup *supervisor.Supervisor) error { return sup.Unregister(ctx, 0) }, false, 2},
		{"Shutdown", func(ctx context.Context, sup *supervisor.Supervisor) error { return sup.Shutdown(ctx) }, true, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				sup, o := givenUpWithSuccessor(t)
				began := time.Now()
				var took time.Duration
				var err error
				doing := task.Go(func(context.Context) {
					err = tt.do(within(t, time.Second), sup)
					took = time.Since(began)
				})
				<-time.After(time.Millisecond)
				looked := time.Now()
				sup.Snapshot()
				require.Error(t, sup.TrySend(named("late", 0, "Anything")), "TrySend")
				require.Zero(t, time.Since(looked), "time of Snapshot and TrySend")
				doing.Wait()
				require.Equal(t, time.Second, took, "time of it")
				if tt.fails {
					require.ErrorIs(t, err, supervisor.ErrTimeout, tt.name)
				} else {
					require.NoError(t, err, tt.name)
				}
				if tt.name == "Restart" {
					require.NoError(t, sup.Restart(context.Background(), 0), "Restart without a limit")
					require.Equal(t, 7*time.Second, time.Since(began), "time until the successor is gone and a new life is up")
					require.Equal(t, supervisor.StateUp, stateOf(sup), "state")
				}
				require.Equal(t, tt.after, o.starts(), "starts")
				require.NoError(t, sup.Close(), "Close")
			})
		})
	}
}

// roll is an object whose lives overlap, and whose Serve is deaf in the second of them.
type roll struct {
	mu     sync.Mutex
	serves int
	letGo  chan struct{}
}

// Serve is the loop.
func (r *roll) Serve(ctx context.Context) error {
	r.mu.Lock()
	r.serves++
	n := r.serves
	r.mu.Unlock()
	if n == 2 {
		<-r.letGo
	}
	<-ctx.Done()
	return nil
}

// Heed waits for the end of its context.
func (*roll) Heed(ctx context.Context) { <-ctx.Done() }

// A successor that cannot be stopped is named by an event and by Shutdown, as any life is.
func TestSuccessorThatIsStuck(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r, seen := &roll{letGo: make(chan struct{})}, &events{}
		letGo := sync.OnceFunc(func() { close(r.letGo) })
		defer letGo()
		sup := newSupervisor(t, supervisor.Goroutine, supervisor.WithEvents(seen.take))
		register(t, sup, supervisor.Object(r), supervisor.WithName("roll"), supervisor.Recycle{MaxRequests: 1, Rolling: true},
			supervisor.Stop{Grace: time.Second, TermGrace: time.Second})
		require.NoError(t, sup.StartLink(context.Background()), "StartLink")
		first := lives(sup)[0]
		send(t, sup, named("open", 0, "Heed"))
		synctest.Wait()
		err := sup.Shutdown(context.Background())
		var stuck *supervisor.StuckError
		require.ErrorAs(t, err, &stuck, "Shutdown")
		require.Equal(t, []any{0, "roll", "Serve"}, []any{stuck.ProcID, stuck.Name, stuck.Method}, "what is stuck")
		require.Greater(t, stuck.Incarnation, first, "the life that is stuck: the successor")
		require.Contains(t, stuck.Stack, "(*roll).Serve", "its stack")
		found := seen.of(supervisor.EventStuck)
		require.Len(t, found, 1, "events of being stuck")
		require.Equal(t, []any{stuck.Incarnation, stuck}, []any{found[0].Incarnation, found[0].Err}, "life and error of the event")
		require.Equal(t, 1, sup.Snapshot().Children[0].Stuck, "lives that are stuck")
		letGo()
		synctest.Wait()
		require.Zero(t, sup.Snapshot().Children[0].Stuck, "lives that are stuck once it has returned")
	})
}

// rollingAfterElder is a group of an elder child and a rolling one that is worn out; made lists who was made, in order.
func rollingAfterElder(t *testing.T, st supervisor.Strategy, begin func(ctx context.Context, n int) error, opts ...supervisor.ChildOption) (g *scriptedGroup, made func() []string) {
	t.Helper()
	var mu sync.Mutex
	var names []string
	note := func(name string) {
		mu.Lock()
		defer mu.Unlock()
		names = append(names, name)
	}
	elder := &scripted{begin: func(context.Context, int) error { note("elder"); return nil }}
	younger := &scripted{begin: func(ctx context.Context, n int) error {
		if err := begin(ctx, n); err != nil {
			return err
		}
		note("younger")
		return nil
	}}
	g = &scriptedGroup{all: []*scripted{elder, younger}, seen: &events{}}
	g.sup = newSupervisor(t, supervisor.Goroutine, supervisor.WithEvents(g.seen.take), supervisor.WithStrategy(st))
	for _, o := range g.all {
		own := opts
		if o == younger {
			own = append(opts[:len(opts):len(opts)], supervisor.Recycle{MaxRequests: 1, Rolling: true})
		}
		_, err := g.sup.RegisterChild(t.Context(), o, own...)
		require.NoError(t, err, "RegisterChild")
	}
	require.NoError(t, g.sup.StartLink(context.Background()), "StartLink")
	send(t, g.sup, named("open", 1, "Anything"))
	require.Equal(t, []int{1, 2}, g.starts(), "starts: the younger one has a successor")
	return g, func() []string {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		return names
	}
}

// Who follows another child is made after that one's new life: a successor that was made before does not do.
func TestSuccessorUnderAStrategy(t *testing.T) {
	ready := func(context.Context, int) error { return nil }
	busy := func(ctx context.Context, n int) error {
		if n != 2 {
			return nil
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}
	for _, st := range []supervisor.Strategy{supervisor.OneForAll, supervisor.RestForOne} {
		for _, tt := range []struct {
			name  string
			begin func(ctx context.Context, n int) error
			made  []string
		}{
			{"ready", ready, []string{"elder", "younger", "younger", "elder", "younger"}},
			{"being made", busy, []string{"elder", "younger", "elder", "younger"}},
		} {
			t.Run(st.String()+" "+tt.name, func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					g, made := rollingAfterElder(t, st, tt.begin)
					g.all[0].last().die(errDied)
					require.Equal(t, tt.made, made(), "who was made, in order")
					require.Equal(t, []string{"up", "up"}, g.states(), "states")
					newest := g.all[1].last()
					for _, l := range g.all[1].lives {
						require.Equal(t, l != newest, hasEnded(l), "whether a life of the younger one has ended")
					}
					send(t, g.sup, named("next", 1, "Anything"))
					synctest.Wait()
					newest.answer(t, 1)
					shutdown(t, g.sup)
				})
			})
		}
	}
}

func hasEnded(l *scriptedLife) bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// A rolling child that falls itself while its successor is ready can be stopped during the delay of its group, at once.
func TestEndAfterASuccessorUnderAStrategy(t *testing.T) {
	for _, st := range []supervisor.Strategy{supervisor.OneForAll, supervisor.RestForOne} {
		for _, end := range ends() {
			t.Run(st.String()+" "+end.name, func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					g, made := rollingAfterElder(t, st, func(context.Context, int) error { return nil },
						supervisor.Restart{Backoff: supervisor.Backoff{First: 10 * time.Second}})
					g.all[1].lives[0].die(errDied)
					<-time.After(time.Second)
					require.Equal(t, "waiting", g.states()[1], "state of the younger one")
					g.requireEnds(t, end, 0)
					require.Equal(t, []string{"elder", "younger", "younger", "elder", "younger"}, made(), "who was made, in order")
				})
			})
		}
	}
}
