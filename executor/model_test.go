package executor_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/executor"
	"github.com/workerlink/supervisor/future"
	"github.com/workerlink/supervisor/internal/testkit"
)

// counted executions of goroutine workers, by the task's id.
var executions sync.Map

// modelled is a task of the model: it notes its execution and then does what it says.
var (
	modelled  = executor.Define("test.modelled", runModelled)
	modelled3 = executor.Define("test.modelled with retries", runModelled, executor.Retries{Max: 2, Backoff: quick})
)

func runModelled(ctx context.Context, in entry) (string, error) {
	if in.Ledger != "" {
		if err := (testkit.Ledger{Path: in.Ledger}).Enter(in.ID); err != nil {
			return "", err
		}
	} else {
		n, _ := executions.LoadOrStore(in.ID, new(counter))
		n.(*counter).add()
	}
	switch in.Do {
	case "wait":
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-time.After(3 * time.Millisecond):
		}
	case "error":
		return "", errRefused
	case "panic":
		panic(errRefused)
	case "fatal":
		return "", supervisor.Fatal(errRefused)
	case "exit":
		os.Exit(3)
	}
	return in.ID, nil
}

type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

// machine submits, cancels, resizes, kills, rotates and shuts down, and at the end holds every verdict against what was
// executed.
type machine struct {
	t       *testing.T
	kind    supervisor.ChildType
	name    string
	ledger  testkit.Ledger
	leases  []*executor.Lease
	tasks   []*modelTask
	refused int
}

type modelTask struct {
	id      string
	do      string
	most    int // executions
	result  *future.Future[string]
	settled int
	mu      sync.Mutex
}

var modelRuns counter

func newMachine(t *testing.T, kind supervisor.ChildType) *machine {
	modelRuns.add()
	m := &machine{t: t, kind: kind, name: fmt.Sprint("model ", kind, " ", modelRuns.n)}
	if kind == supervisor.Process {
		m.ledger = testkit.NewLedger(t)
	}
	m.rotate(2, time.Second)
	return m
}

// rotate asks for the executor, which with another idle timeout is another one.
func (m *machine) rotate(size int, idle time.Duration) {
	l, err := executor.Reusable(context.Background(), executor.Options{
		Name: m.name, MaxWorkers: size, IdleTimeout: idle, Queue: 50, Workers: ofKind(m.kind),
		Breaker: executor.Breaker{Max: -1, Backoff: quick},
	})
	require.NoError(m.t, err, "Reusable")
	m.leases = append(m.leases, l)
}

func (m *machine) executor() *executor.Executor { return m.leases[len(m.leases)-1].Executor }

func (m *machine) submit(do string, retries bool) {
	task := &modelTask{id: fmt.Sprintf("%s/%d", m.name, len(m.tasks)), do: do, most: 1}
	f := modelled
	if retries {
		f, task.most = modelled3, 3
	}
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Limit)
	var err error
	if task.result, err = f.Submit(ctx, m.executor(), entry{m.ledger.Path, task.id, do}); err != nil {
		cancel()
		m.refused++
		task.most = 0
		m.tasks = append(m.tasks, task)
		return
	}
	task.result.Then(func(string, error) {
		cancel()
		task.mu.Lock()
		defer task.mu.Unlock()
		task.settled++
	})
	m.tasks = append(m.tasks, task)
}

// end ends all executors and checks what has become of the tasks.
func (m *machine) end(kill bool) {
	for _, l := range m.leases {
		l.Release()
		if kill {
			_ = l.KillWorkers() // some were killed before
		} else {
			_ = l.Shutdown(testkit.Context(m.t))
		}
	}
	counts := make(map[string]int)
	if m.kind == supervisor.Process {
		counts = m.ledger.Counts(m.t)
	} else {
		executions.Range(func(id, n any) bool {
			if strings.HasPrefix(id.(string), m.name+"/") {
				counts[id.(string)] = n.(*counter).n
				executions.Delete(id)
			}
			return true
		})
	}
	for _, task := range m.tasks {
		n := counts[task.id]
		require.LessOrEqual(m.t, n, task.most, "executions of %s, which is to %q", task.id, task.do)
		if task.result == nil {
			continue
		}
		v, err := task.result.Result(testkit.Context(m.t))
		testkit.Until(m.t, "one verdict of "+task.id, func() bool {
			task.mu.Lock()
			defer task.mu.Unlock()
			return task.settled == 1
		})
		var failed *executor.TaskError
		switch {
		case err == nil:
			require.Equal(m.t, task.id, v, "value")
			require.GreaterOrEqual(m.t, n, 1, "executions of %s, which has a value", task.id)
		default:
			require.ErrorAs(m.t, err, &failed, "verdict of %s", task.id)
			if failed.Unexecuted {
				require.Zero(m.t, n, "executions of %s: %v", task.id, err)
			}
			known := errors.Is(err, errRefused) || failed.Exit() != nil || anyIs(err, supervisor.ErrCanceled, supervisor.ErrClosed)
			require.True(m.t, known, "verdict of %s: %v", task.id, err)
		}
	}
}

// modelChecks sets how many plans rapid draws for workers that are processes, unless the command line does.
func modelChecks(t *testing.T, kind supervisor.ChildType) {
	t.Helper()
	checks := flag.Lookup("rapid.checks")
	given := checks.DefValue != "100" || kind == supervisor.Goroutine
	flag.Visit(func(f *flag.Flag) { given = given || f == checks })
	if given {
		return
	}
	before := checks.Value.String()
	require.NoError(t, flag.Set(checks.Name, "8"), "fewer checks")
	t.Cleanup(func() { require.NoError(t, flag.Set(checks.Name, before), "as many as before") })
}

func TestModel(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			testkit.NoLeaks(t)
			does := []string{"", "", "", "wait", "wait", "error", "panic", "fatal"}
			if kind == supervisor.Process {
				does = append(does, "exit")
			}
			modelChecks(t, kind)
			rapid.Check(t, func(rt *rapid.T) {
				m := newMachine(t, kind)
				for range rapid.IntRange(1, 40).Draw(rt, "steps") {
					switch rapid.SampledFrom([]string{"submit", "submit", "submit", "burst", "cancel", "resize", "rotate", "release", "kill", "map"}).Draw(rt, "step") {
					case "submit":
						m.submit(rapid.SampledFrom(does).Draw(rt, "do"), rapid.Bool().Draw(rt, "retries"))
					case "burst":
						do := rapid.SampledFrom(does).Draw(rt, "do")
						for i := range rapid.IntRange(1, 60).Draw(rt, "tasks") {
							if i%7 == 3 {
								m.submit(do, false)
							} else {
								m.submit("", false)
							}
						}
					case "cancel":
						if len(m.tasks) > 0 {
							if task := m.tasks[rapid.IntRange(0, len(m.tasks)-1).Draw(rt, "task")]; task.result != nil {
								task.result.Cancel()
							}
						}
					case "resize":
						_ = m.executor().Resize(rapid.IntRange(1, 4).Draw(rt, "size")) // it may have been killed
					case "rotate":
						m.rotate(rapid.IntRange(1, 3).Draw(rt, "size"), time.Duration(rapid.IntRange(1, 2).Draw(rt, "idle"))*time.Millisecond)
					case "release":
						m.leases[rapid.IntRange(0, len(m.leases)-1).Draw(rt, "lease")].Release()
					case "kill":
						if rapid.IntRange(0, 4).Draw(rt, "really") == 0 {
							_ = m.executor().KillWorkers()
						}
					case "map":
						stop := rapid.IntRange(1, 60).Draw(rt, "stop")
						for item := range executor.MapUnordered(context.Background(), m.executor(), square, upTo(50, nil)) {
							if item.Err == nil && item.Out != item.In*item.In {
								rt.Fatalf("item %+v", item)
							}
							if stop--; stop == 0 {
								break
							}
						}
					}
				}
				m.end(rapid.Bool().Draw(rt, "end by a kill"))
			})
		})
	}
}
