package supervisor_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

// eachRecycling runs a test for both kinds, with lives that overlap and lives that do not.
func eachRecycling(t *testing.T, test func(t *testing.T, kind supervisor.ChildType, rolling bool)) {
	t.Helper()
	for _, rolling := range []bool{false, true} {
		t.Run(fmt.Sprintf("rolling %v", rolling), func(t *testing.T) {
			eachKind(t, func(t *testing.T, kind supervisor.ChildType) { test(t, kind, rolling) })
		})
	}
}

// requireNoCrash asserts that nothing looked like one.
func requireNoCrash(t *testing.T, r *childtest.Rig) {
	t.Helper()
	require.Zero(t, r.Child(t, r.ID).Restarts, "restarts by the policy")
	shutdown(t, r.Sup)
	for _, kind := range []supervisor.EventKind{supervisor.EventExited, supervisor.EventRestarting, supervisor.EventStuck, supervisor.EventHung} {
		require.NotContains(t, r.Events.Kinds(), kind, "events:\n%s", r.Events)
	}
}

func TestRecycleByRequests(t *testing.T) {
	for _, most := range []uint64{1, 20} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
				r := startSickly(t, kind, supervisor.Recycle{MaxRequests: most})
				served := make(map[uint64]uint64)
				var lives []uint64
				for n := range int(most) * 5 {
					got, err := r.Sup.Do(r.Ctx, supervisor.NewSendPayload(r.ID, "Echo", n))
					require.NoError(t, err, "request %d", n)
					require.Equal(t, n, got.Data, "result of request %d", n)
					if served[got.Incarnation]++; served[got.Incarnation] == 1 {
						lives = append(lives, got.Incarnation)
					}
				}
				require.GreaterOrEqual(t, len(lives), 5, "lives that took part")
				for _, life := range lives[:len(lives)-1] {
					require.LessOrEqual(t, served[life], most, "requests of life %d", life)
					require.GreaterOrEqual(t, served[life], most-most/10, "requests of life %d", life)
				}
				old := r.Events.Wait(t, supervisor.EventRecycled)
				require.Equal(t, lives[0], old.Incarnation, "the first life that was recycled")
				require.Contains(t, old.Text, "requests", "why")
				require.GreaterOrEqual(t, r.Child(t, r.ID).Recycled, len(lives)-1, "lives recycled, by the snapshot")
				requireNoCrash(t, r)
			})
		})
	}
}

func TestRecycleByAge(t *testing.T) {
	recycle := supervisor.Recycle{MaxAge: time.Hour}
	for name, start := range map[string]func(t *testing.T) (*supervisor.Supervisor, *events){
		"goroutine": func(t *testing.T) (*supervisor.Supervisor, *events) {
			t.Helper()
			return withCloser(t, newCloser(), recycle)
		},
		"outside": func(t *testing.T) (*supervisor.Supervisor, *events) {
			t.Helper()
			return withScripted(t, &scripted{}, recycle)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				sup, seen := start(t)
				began := time.Now()
				<-time.After(10*time.Hour + time.Minute)
				old := seen.of(supervisor.EventRecycled)
				require.GreaterOrEqual(t, len(old), 10, "lives recycled in ten hours")
				require.LessOrEqual(t, len(old), 11, "lives recycled in ten hours")
				for i, e := range old {
					age := e.Time.Sub(began)
					require.GreaterOrEqual(t, age, 54*time.Minute, "age of life %d", i)
					require.LessOrEqual(t, age, time.Hour+5*time.Second, "age of life %d", i)
					require.Contains(t, e.Text, "old", "why life %d was recycled", i)
					began = e.Time
				}
				shutdown(t, sup)
				require.Empty(t, seen.of(supervisor.EventExited), "ends that look like a crash")
			})
		})
	}
}

// entered are the ids in a ledger, in the order of their executions.
func entered(t *testing.T, l testkit.Ledger) []string {
	t.Helper()
	text, err := os.ReadFile(l.Path)
	require.NoError(t, err, "read the ledger")
	return strings.Fields(string(text))
}

func TestRecycleKeepsTheOrder(t *testing.T) {
	eachRecycling(t, func(t *testing.T, kind supervisor.ChildType, rolling bool) {
		r := startSickly(t, kind, supervisor.Recycle{MaxRequests: 7, Rolling: rolling})
		var reqs []supervisor.SendPayload
		var want []string
		for n := range 100 {
			reqs = append(reqs, send(t, r.Sup, supervisor.NewSendPayload(r.ID, "Enter", fmt.Sprint("n", n)))...)
			want = append(want, fmt.Sprint("n", n))
		}
		_, err := r.Sup.RecvAll(r.Ctx, reqs)
		require.NoError(t, err, "RecvAll")
		require.Equal(t, want, entered(t, r.Ledger), "executions in the order of the sends")
		testkit.Until(t, "a life is recycled", func() bool { return r.Child(t, r.ID).Recycled > 0 })
		requireNoCrash(t, r)
	})
}

func TestRecycleUnderLoad(t *testing.T) {
	eachRecycling(t, func(t *testing.T, kind supervisor.ChildType, rolling bool) {
		r := startSickly(t, kind, supervisor.Recycle{MaxRequests: 9, Rolling: rolling}, supervisor.WithConcurrency(2))
		var law testkit.Law
		var callers sync.WaitGroup
		for caller := range 6 {
			callers.Go(func() {
				for n := range 40 {
					id := fmt.Sprint(caller, "-", n)
					law.Accept(id)
					_, err := r.Sup.Do(r.Ctx, named(id, r.ID, "Enter", id))
					law.Verdict(id, childtest.OutcomeOf(err))
				}
			})
		}
		callers.Wait()
		law.Check(t, r.Ledger.Counts(t))
		_, verdicts := law.Counts()
		require.Equal(t, map[testkit.Outcome]int{testkit.Value: 240}, verdicts, "verdicts")
		testkit.Until(t, "a life is recycled", func() bool { return r.Child(t, r.ID).Recycled > 0 })
		requireNoCrash(t, r)
	})
}

// worn starts a child whose present life is due for recycling and holds a request at the gate.
func worn(t *testing.T, kind supervisor.ChildType, opts ...supervisor.ChildOption) (r *childtest.Rig, held supervisor.SendPayload, v *childtest.Visitor) {
	t.Helper()
	r = startSickly(t, kind, append(opts, supervisor.Recycle{MaxRequests: 1})...)
	held = r.Send(t, r.ID, "Heed", "the last")
	v = r.Gate.Next(t)
	clock := within(t, 300*time.Millisecond)
	require.ErrorIs(t, r.Sup.Send(clock, supervisor.NewSendPayload(r.ID, "Echo", 1)), supervisor.ErrTimeout, "Send to a life that takes no more")
	require.ErrorIs(t, r.Sup.TrySend(supervisor.NewSendPayload(r.ID, "Echo", 1)), supervisor.ErrBusy, "TrySend to it")
	return r, held, v
}

func TestRecycleNeverCutsAHandler(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		r, held, v := worn(t, kind, supervisor.Stop{Grace: time.Millisecond, TermGrace: time.Millisecond}) // it has worked for much longer
		require.NotContains(t, r.Events.Kinds(), supervisor.EventRecycled, "events while the handler works")
		var n int
		var err error
		waiting := task.Go(func(context.Context) { n, err = supervisor.Call[int](r.Ctx, r.Sup, r.ID, "Echo", 5) })
		v.Release(t, "done")
		got := r.Recv(t, held)
		require.NoError(t, got.Err, "the handler that was at work")
		require.Equal(t, "done", got.Data, "its result")
		waiting.Wait()
		require.NoError(t, err, "what waited for the next life")
		require.Equal(t, 5, n, "its result")
		require.Equal(t, got.Incarnation, r.Events.Wait(t, supervisor.EventRecycled).Incarnation, "the life that was recycled")
	})
}

func TestRecycleInterrupted(t *testing.T) {
	t.Run("Restart", func(t *testing.T) {
		eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
			r, held, v := worn(t, kind)
			require.NoError(t, r.Sup.Restart(r.Ctx, r.ID), "Restart")
			v.Left(t)
			require.ErrorIs(t, r.Recv(t, held).Err, supervisor.ErrRestarted, "what the life held")
			c := r.Child(t, r.ID)
			require.Equal(t, []int{0, 0}, []int{c.Restarts, c.Recycled}, "restarts by the policy, and lives recycled")
			require.Equal(t, 7, childtest.CallOf[int](t, r, r.ID, "Echo", 7), "the life after it")
			shutdown(t, r.Sup)
		})
	})
	t.Run("Shutdown", func(t *testing.T) {
		eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
			r, held, v := worn(t, kind, supervisor.Stop{Grace: testkit.Limit})
			ending := task.Go(func(context.Context) { shutdown(t, r.Sup) })
			testkit.Until(t, "Shutdown has begun", func() bool { return r.Child(t, r.ID).State == supervisor.StateStopping })
			v.Release(t, "done")
			ending.Wait()
			require.NoError(t, r.Recv(t, held).Err, "what the life held")
			require.Equal(t, []supervisor.EventKind{supervisor.EventStarted, supervisor.EventStopped, supervisor.EventShutdown},
				r.Events.Kinds(), "events")
		})
	})
	t.Run("kill", func(t *testing.T) {
		if len(kinds()) == 1 {
			t.Skip("this system has no process children")
		}
		testkit.NoLeaks(t)
		r, held, _ := worn(t, supervisor.Process)
		childtest.KillProcess(t, r.Sup, r.ID)
		var exit *supervisor.ExitError
		require.ErrorAs(t, r.Recv(t, held).Err, &exit, "what the life held")
		r.Events.Wait(t, supervisor.EventExited)
		require.Equal(t, 7, childtest.CallOf[int](t, r, r.ID, "Echo", 7), "the life after it")
		require.Equal(t, 1, r.Child(t, r.ID).Restarts, "restarts by the policy")
		shutdown(t, r.Sup)
	})
}
