//go:build linux || darwin

package faulttest_test

// Many deaths in one moment: each is counted once, for the child that it befell.

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// workers adds workers of the suite.
func (r *deathRig) workers(t *testing.T, n int, opts ...supervisor.ChildOption) (lives []supervisor.ChildSnapshot) {
	t.Helper()
	for range n {
		lives = append(lives, r.worker(t, opts...))
	}
	return lives
}

// kill kills all in one go.
func (r *deathRig) kill(t *testing.T, lives []supervisor.ChildSnapshot) {
	t.Helper()
	for _, c := range lives {
		deathSignal(t, c.Pid, syscall.SIGKILL)
	}
}

// counts are the events of each kind for a child so far.
func (r *deathRig) counts(id int) map[supervisor.EventKind]int {
	counts := make(map[supervisor.EventKind]int)
	for _, e := range r.Events.All() {
		if e.ProcID == id {
			counts[e.Kind]++
		}
	}
	return counts
}

func TestP20DeathsAtOnce(t *testing.T) {
	r := newDeathRig(t)
	lives := r.workers(t, times(10, 50))
	var law testkit.Law
	reqs := make(map[int][]supervisor.SendPayload)
	var all []supervisor.SendPayload
	for _, c := range lives {
		held, _ := r.Occupy(t, c.ProcID)
		queued := r.Send(t, c.ProcID, "Enter", held.ReqID)
		reqs[c.ProcID] = []supervisor.SendPayload{held, queued}
		all = append(all, held, queued)
	}
	for _, p := range all {
		law.Accept(p.ReqID)
	}
	r.kill(t, lives)
	var replies []supervisor.RecvPayload
	testkit.Within(t, deathPrompt, func() {
		var err error
		replies, err = r.Sup.RecvAll(r.Ctx, all, supervisor.IgnoreErr())
		require.NoError(t, err, "RecvAll")
	})
	for i, got := range replies {
		require.Equal(t, syscall.SIGKILL, deathVerdict(t, got.Err, lives[i/2], got.Method).Signal, "verdict %d", i)
		law.Verdict(got.ReqID, childtest.OutcomeOf(got.Err))
	}
	law.Check(t, r.Ledger.Counts(t))
	for _, c := range lives {
		next := r.next(t, c)
		require.Equal(t, next.Pid, childtest.CallOf[int](t, r.Rig, c.ProcID, "Pid"), "the process that answers")
	}
	for _, c := range lives {
		require.Equal(t, map[supervisor.EventKind]int{
			supervisor.EventStarted: 2, supervisor.EventExited: 1, supervisor.EventRestarting: 1,
		}, r.counts(c.ProcID), "events of child %d:\n%s", c.ProcID, r.Events)
		require.Equal(t, 1, r.Child(t, c.ProcID).Restarts, "restarts of child %d", c.ProcID)
	}
	require.NoError(t, r.Sup.Healthy(), "Healthy")
}

// phoenix works in its first life only.
type phoenix struct{}

var errBurnt = errors.New("faulttest: nothing but ashes")

func init() { supervisor.RegisterError("faulttest.errBurnt", errBurnt) }

var newPhoenix = supervisor.DefineWith("faulttest.phoenix", func(_ context.Context, egg string) (phoenix, error) {
	if err := os.Remove(egg); err != nil {
		panic(errBurnt)
	}
	return phoenix{}, nil
})

// Pid returns the id of the process.
func (phoenix) Pid() int { return os.Getpid() }

// Both die at once, and each of their further lives panics in its factory, which counts as a death.
func TestP10PanicsOfFactoriesAreCounted(t *testing.T) {
	r := newDeathRig(t)
	var lives []supervisor.ChildSnapshot
	for range 2 {
		egg := testkit.NewLedger(t)
		lives = append(lives, r.Child(t, register(t, r.Sup, newPhoenix.With(egg.Path))))
	}
	r.kill(t, lives)
	for _, c := range lives {
		e := r.Events.WaitFor(t, "giving up", func(e supervisor.Event) bool {
			return e.Kind == supervisor.EventGivenUp && e.ProcID == c.ProcID
		})
		err := r.call(t, c, "Pid")
		for name, err := range map[string]error{"event": e.Err, "call": err, "Healthy": r.Sup.Healthy()} {
			require.ErrorIs(t, err, supervisor.ErrRestartLimit, name)
			require.ErrorIs(t, err, errBurnt, "%s: the last cause", name)
			var p *supervisor.PanicError
			require.ErrorAs(t, err, &p, "%s: the last cause", name)
			require.Contains(t, p.Stack, "death_many_test.go", "%s: the stack names the factory", name)
		}
		require.True(t, childtest.CallErrorOf(t, err, c.ProcID, "Pid").Unexecuted, "%v", err)
	}
	for _, c := range lives {
		require.Equal(t, map[supervisor.EventKind]int{
			supervisor.EventStarted: 1, supervisor.EventExited: 1, supervisor.EventRestarting: 5,
			supervisor.EventStartFailed: 5, supervisor.EventGivenUp: 1,
		}, r.withoutOutput(c.ProcID), "events of child %d:\n%s", c.ProcID, r.Events)
	}
}

// withoutOutput is counts without the lines of output.
func (r *deathRig) withoutOutput(id int) map[supervisor.EventKind]int {
	counts := r.counts(id)
	delete(counts, supervisor.EventOutput)
	return counts
}

func TestC74OneOfEightDies(t *testing.T) {
	r := newDeathRig(t)
	lives := r.workers(t, 8)
	var reqs []supervisor.SendPayload
	visitors := make(map[string]*childtest.Visitor)
	for _, c := range lives {
		held, v := r.Occupy(t, c.ProcID)
		reqs = append(reqs, held)
		visitors[held.ReqID] = v
	}
	const dead = 3
	r.kill(t, lives[dead:dead+1])
	var got []supervisor.RecvPayload
	testkit.Within(t, deathPrompt, func() {
		var err error
		got, err = r.Sup.RecvAll(context.Background(), reqs) // without any deadline
		require.Equal(t, syscall.SIGKILL, deathVerdict(t, err, lives[dead], "Hold").Signal, "error of RecvAll")
	})
	for i, p := range got {
		if i != dead {
			require.ErrorIs(t, p.Err, supervisor.ErrPending, "entry %d", i)
			visitors[p.ReqID].Release(t, "alive")
		}
	}
	rest := append(reqs[:dead:dead], reqs[dead+1:]...)
	got, err := r.Sup.RecvAll(r.Ctx, rest)
	require.NoError(t, err, "RecvAll of the others")
	for i, p := range got {
		require.Equal(t, "alive", p.Data, "reply %d of the others", i)
	}
}
