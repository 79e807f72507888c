package executor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/executor"
	"github.com/workerlink/supervisor/future"
	"github.com/workerlink/supervisor/internal/proc"
	"github.com/workerlink/supervisor/internal/testkit"
)

// kinds are the kinds of workers that this system has.
func kinds() []supervisor.ChildType {
	if proc.Supported {
		return []supervisor.ChildType{supervisor.Goroutine, supervisor.Process}
	}
	return []supervisor.ChildType{supervisor.Goroutine}
}

// ofKind are the options of workers of a kind.
func ofKind(kind supervisor.ChildType, more ...supervisor.ChildOption) []supervisor.ChildOption {
	return append([]supervisor.ChildOption{supervisor.WithType(kind)}, more...)
}

// newExecutor returns one that is killed at the end of the test, which must leave nothing.
func newExecutor(t testing.TB, o executor.Options) *executor.Executor {
	t.Helper()
	testkit.NoLeaks(t)
	return bare(t, o)
}

// bare is newExecutor without a look at what is left.
func bare(t testing.TB, o executor.Options) *executor.Executor {
	t.Helper()
	x, err := executor.New(o)
	require.NoError(t, err, "New")
	t.Cleanup(func() { _ = x.KillWorkers() }) // what a test expects of the end it says itself
	return x
}

// goroutines returns an executor whose workers are goroutines.
func goroutines(t testing.TB, o executor.Options, more ...supervisor.ChildOption) *executor.Executor {
	t.Helper()
	o.Workers = ofKind(supervisor.Goroutine, more...)
	return bare(t, o)
}

func submit[In, Out any](t testing.TB, f *executor.Func[In, Out], x *executor.Executor, in In) *future.Future[Out] {
	t.Helper()
	result, err := f.Submit(context.Background(), x, in)
	require.NoError(t, err, "Submit(%s, %v)", f.Name(), in)
	return result
}

// held submits a task that waits in its worker for the end of its context, and returns when it has begun there.
func held(t testing.TB, x *executor.Executor) *future.Future[string] {
	t.Helper()
	sign := filepath.Join(t.TempDir(), "begun")
	f := submit(t, misbehave, x, "wait "+sign)
	testkit.Until(t, "the task has begun", func() bool {
		_, err := os.Stat(sign)
		return err == nil
	})
	return f
}

func value[Out any](t testing.TB, f *future.Future[Out]) Out {
	t.Helper()
	v, err := f.Result(testkit.Context(t))
	require.NoError(t, err, "Result")
	return v
}

func failure[Out any](t testing.TB, f *future.Future[Out]) *executor.TaskError {
	t.Helper()
	_, err := f.Result(testkit.Context(t))
	var failed *executor.TaskError
	require.ErrorAs(t, err, &failed, "Result")
	return failed
}

func shutdown(t testing.TB, x *executor.Executor) {
	t.Helper()
	require.NoError(t, x.Shutdown(testkit.Context(t)), "Shutdown")
}

// until waits for what Stats shows.
func until(t testing.TB, x *executor.Executor, what string, holds func(executor.Stats) bool) {
	t.Helper()
	testkit.Until(t, what, func() bool { return holds(x.Stats()) })
}

type point struct {
	X, Y int
	Name string
}

// Functions of every kind of worker.
var (
	square = executor.Define("test.square", func(_ context.Context, n int) (int, error) { return n * n, nil })
	moved  = executor.Define("test.moved", func(_ context.Context, p point) (point, error) { p.X++; return p, nil })
	refuse = executor.Define("test.refuse", func(_ context.Context, n int) (int, error) {
		if n < 0 {
			panic("negative")
		}
		return 0, fmt.Errorf("%w: %d", errRefused, n)
	})
	getpid = executor.Define("test.getpid", func(context.Context, int) (int, error) { return os.Getpid(), nil })
	getenv = executor.Define("test.getenv", func(_ context.Context, name string) (string, error) { return os.Getenv(name), nil })
	getwd  = executor.Define("test.getwd", func(context.Context, int) (string, error) { return os.Getwd() })

	// misbehave does what its value says, if that is not a number.
	misbehave = executor.Define("test.misbehave", func(ctx context.Context, what string) (string, error) {
		switch kind, arg, _ := strings.Cut(what, " "); kind {
		case "exit":
			fmt.Fprintln(os.Stderr, "the last words of", arg)
			os.Exit(3)
		case "kill":
			kill(os.Getpid())
			select {}
		case "panic":
			panic("misbehaved")
		case "hang":
			select {}
		case "wait":
			if arg != "" {
				if err := os.WriteFile(arg, nil, 0o600); err != nil {
					return "", err
				}
			}
			<-ctx.Done()
			return "", context.Cause(ctx)
		}
		return what, nil
	})

	// enter writes its value to a ledger, which it returns, and then does what misbehave does.
	enter = executor.Define("test.enter", func(_ context.Context, in entry) (string, error) { return in.ID, in.write() })
)

type entry struct{ Ledger, ID, Do string }

func (e entry) write() error {
	if err := (testkit.Ledger{Path: e.Ledger}).Enter(e.ID); err != nil {
		return err
	}
	switch e.Do {
	case "exit":
		os.Exit(3)
	case "error":
		return errRefused
	}
	return nil
}

var errRefused = errors.New("refused")

func init() { supervisor.RegisterError("test.errRefused", errRefused) }

// gate is what tests and the tasks of goroutine workers, which have its name as their value, have in common.
type gate struct {
	begun chan struct{} // closed by the task
	open  chan struct{} // closed by the test
	runs  int
}

var gates = struct {
	sync.Mutex
	byName map[string]*gate
}{byName: make(map[string]*gate)}

// newGate returns a gate that lasts as long as the test.
func newGate(t testing.TB, name string) *gate {
	t.Helper()
	g := &gate{begun: make(chan struct{}), open: make(chan struct{})}
	gates.Lock()
	defer gates.Unlock()
	require.NotContains(t, gates.byName, name, "gates")
	gates.byName[name] = g
	t.Cleanup(func() {
		gates.Lock()
		defer gates.Unlock()
		delete(gates.byName, name)
	})
	return g
}

// pass is a task that goes on when the test says so, or its context ends.
var pass = executor.Define("test.pass", func(ctx context.Context, name string) (string, error) {
	gates.Lock()
	g := gates.byName[name]
	if g != nil {
		g.runs++
	}
	gates.Unlock()
	if g == nil {
		return name, nil
	}
	close(g.begun)
	select {
	case <-g.open:
		return name, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
})

// deaf is pass that ignores its context.
var deaf = executor.Define("test.deaf", func(_ context.Context, name string) (string, error) {
	gates.Lock()
	g := gates.byName[name]
	gates.Unlock()
	close(g.begun)
	<-g.open
	return name, nil
}, executor.KillAfter(0))

func anyIs(err error, others ...error) bool {
	for _, other := range others {
		if errors.Is(err, other) {
			return true
		}
	}
	return false
}

// Executors that tasks of goroutine workers, and supervisors, find.
var (
	current  atomic.Pointer[executor.Executor]
	newPool  func(context.Context) (*executor.Executor, error)
	poolSpec = supervisor.Define("test.pool", func(ctx context.Context) (*executor.Executor, error) { return newPool(ctx) })

	// shutsDown is a task that shuts down its own executor.
	shutsDown = executor.Define("test.shutsDown", func(ctx context.Context, n int) (int, error) {
		return n, current.Load().Shutdown(ctx)
	})
)

// kill ends a process as nothing can prevent.
func kill(pid int) {
	p, err := os.FindProcess(pid)
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		panic(err)
	}
}

// ended reports whether a process does not run any more; a zombie does not.
func ended(pid int) bool {
	if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		_, rest, _ := strings.Cut(string(text), ") ")
		return strings.HasPrefix(rest, "Z")
	}
	p, err := os.FindProcess(pid)
	return err != nil || p.Signal(syscall.Signal(0)) != nil
}
