package executor_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/executor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// nest is a task at the bottom of executors within each other.
type nest struct {
	Depth int
	Order order
	Sleep bool // start a process that outlives the task
}

var nested *executor.Func[nest, int]

func init() {
	nested = executor.Define("test.nested", func(ctx context.Context, n nest) (int, error) {
		if n.Sleep {
			p, err := os.StartProcess("/bin/sleep", []string{"sleep", "1000"}, &os.ProcAttr{Files: []*os.File{nil, nil, nil}})
			if err != nil {
				return 0, err
			}
			if err := (testkit.Ledger{Path: n.Order.Ledger}).Enter(fmt.Sprint("sleep-", n.Order.ID, "-", n.Depth, " ", p.Pid)); err != nil {
				return 0, err
			}
		}
		l, err := executor.Reusable(ctx, executor.Options{MaxWorkers: 2})
		if err != nil {
			return 0, err
		}
		defer l.Release()
		if n.Depth == 1 {
			f, err := obey.Submit(ctx, l.Executor, n.Order)
			if err != nil {
				return 0, err
			}
			return f.Result(ctx)
		}
		n.Depth--
		f, err := nested.Submit(ctx, l.Executor, n)
		if err != nil {
			return 0, err
		}
		return f.Result(ctx)
	})
}

// tree starts a tree of executors in a task of x: two of depth 3 whose processes have children of their own that ignore
// nothing and heed nobody. It returns when all of it runs, with all processes.
func tree(t testing.TB, ledger testkit.Ledger, start func(n nest)) (pids []int) {
	t.Helper()
	for _, id := range []string{"a", "b"} {
		start(nest{3, order{Ledger: ledger.Path, ID: id, Do: "deaf"}, true})
	}
	for _, id := range []string{"a", "b", "sleep-a-3", "sleep-a-2", "sleep-a-1", "sleep-b-3", "sleep-b-2", "sleep-b-1"} {
		pids = append(pids, pidIn(t, ledger, id))
	}
	return pids
}

// KillWorkers ends workers, their workers, and what all of them have started.
func TestE05KillWorkersWithATree(t *testing.T) {
	ledger := testkit.NewLedger(t)
	x := outermost(t, executor.Options{MaxWorkers: 2})
	var verdicts []func() error
	pids := tree(t, ledger, func(n nest) {
		f := submit(t, nested, x, n)
		verdicts = append(verdicts, func() error { return failure(t, f) })
	})
	testkit.Within(t, time.Second, func() { require.NoError(t, x.KillWorkers(), "KillWorkers") })
	for _, verdict := range verdicts {
		require.ErrorIs(t, verdict(), supervisor.ErrClosed, "an open future")
	}
	allEnded(t, 2*time.Second, pids...)
}

// treeHost is a host of a tree, which ends in the way that its first argument says.
var treeHost = testkit.Helper("tree host", func() {
	ledger := testkit.Ledger{Path: os.Args[2]}
	ctx := context.Background()
	x := must(executor.New(executor.Options{MaxWorkers: 2}))
	switch os.Args[1] {
	case "orderly":
		f := must(nested.Submit(ctx, x, nest{3, order{Ledger: ledger.Path, ID: "short"}, false}))
		must(f.Result(ctx))
		if err := x.Shutdown(ctx); err != nil {
			panic(err)
		}
		return
	default:
		for _, id := range []string{"a", "b"} {
			must(nested.Submit(ctx, x, nest{3, order{Ledger: ledger.Path, ID: id, Do: "deaf"}, true}))
		}
	}
	for range 1000 { // the queue is busy
		must(obey.Submit(ctx, x, order{Ledger: ledger.Path, ID: "never"}))
	}
	if os.Args[1] == "return" { // main returns while all of it runs
		for !exists(os.Args[3]) {
			<-time.After(time.Millisecond)
		}
		return
	}
	select {}
})

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// Whether the host of nested executors ends in order, in the middle of it all, or by SIGKILL: nothing is left of it.
func TestC37HostOfNestedExecutorsEnds(t *testing.T) { testEndOfHost(t, "orderly", "return") }

// Workers with a busy queue do not wait for a host that was killed.
func TestC40HostKilledWithABusyQueue(t *testing.T) { testEndOfHost(t, "killed") }

func testEndOfHost(t *testing.T, ways ...string) {
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			ledger, leave := testkit.NewLedger(t), filepath.Join(t.TempDir(), "leave")
			testkit.NoLeaks(t)
			h := startHost(t, treeHost, way, ledger.Path, leave)
			var pids []int
			if way == "orderly" {
				pids = append(pids, pidIn(t, ledger, "short"))
			} else {
				pids = tree(t, ledger, func(nest) {})
			}
			if create(t, leave); way == "killed" {
				strike(h.Process.Pid)
			}
			require.False(t, h.lines.Scan(), "output of the host")
			if err := h.Wait(); way == "killed" {
				require.ErrorContains(t, err, "killed", "end of the host")
			} else {
				require.NoError(t, err, "end of the host")
			}
			orphansEnd(t)
			allEnded(t, 2*time.Second, pids...)
			for line := range ledger.Counts(t) {
				require.NotContains(t, line, "never", "a task behind those that hang")
			}
		})
	}
}
