package executor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/executor"
	"github.com/workerlink/supervisor/future"
	"github.com/workerlink/supervisor/internal/testkit"
)

// An error of the input is that item's, however many values travel together.
func TestL21ErrorOfTheInput(t *testing.T) {
	for _, tt := range []struct{ values, at, chunk int }{{10, 3, 1}, {20, 7, 2}, {20, 7, 4}} {
		for _, kind := range kinds() {
			t.Run(fmt.Sprintf("%v/%d of %d in chunks of %d", kind, tt.at, tt.values, tt.chunk), func(t *testing.T) {
				x := newExecutor(t, executor.Options{MaxWorkers: 2, Workers: ofKind(kind)})
				items := 0
				for item := range executor.Map(t.Context(), x, square, func(yield func(int, error) bool) {
					for i := range tt.values {
						var err error
						if i == tt.at {
							err = io.ErrUnexpectedEOF
						}
						if !yield(i, err) {
							return
						}
					}
				}, executor.Chunk(tt.chunk)) {
					if items == tt.at {
						require.Equal(t, io.ErrUnexpectedEOF, item.Err, "item %d", items)
					} else {
						require.NoError(t, item.Err, "item %d", items)
						require.Equal(t, items*items, item.Out, "item %d", items)
					}
					items++
				}
				require.Equal(t, tt.values, items, "items")
				shutdown(t, x)
			})
		}
	}
}

// Whoever waits for the tasks of an executor that breaks waits for none of them in vain.
func TestL42WaitForTasksOfABrokenExecutor(t *testing.T) {
	if !processes(t) {
		return
	}
	x := newExecutor(t, executor.Options{MaxWorkers: 2, Breaker: executor.Breaker{Max: 2, Backoff: quick}})
	var tasks []future.Any
	for range 10 {
		f, err := misbehave.Submit(t.Context(), x, "exit test")
		if err != nil {
			require.ErrorIs(t, err, executor.ErrBroken, "Submit")
			break
		}
		tasks = append(tasks, f)
	}
	done, pending, err := future.Wait(testkit.Context(t), future.All, tasks...)
	require.NoError(t, err, "Wait")
	require.Empty(t, pending, "tasks without a verdict")
	for i, f := range done {
		require.Error(t, f.Err(), "task %d", i)
	}
	require.ErrorIs(t, x.Health(t.Context()), executor.ErrBroken, "Health")
}

// meet notes that it has begun, and stays.
var meet = executor.Define("test.meet", func(ctx context.Context, in entry) (string, error) {
	if err := in.write(); err != nil {
		return "", err
	}
	<-ctx.Done()
	return "", context.Cause(ctx)
})

// There may be more workers than CPUs, and then they are all at work.
func TestL49MoreWorkersThanCPUs(t *testing.T) {
	if !processes(t) {
		return
	}
	for _, cpus := range []int{1, 2, 4} {
		t.Run(fmt.Sprint(cpus), func(t *testing.T) {
			t.Setenv("SUPERVISOR_MAX_WORKERS", fmt.Sprint(cpus))
			require.LessOrEqual(t, executor.CPUs(), cpus, "CPUs")
			n := 2*cpus + 2
			ledger := testkit.NewLedger(t)
			x := newExecutor(t, executor.Options{MaxWorkers: n})
			for i := range n {
				submit(t, meet, x, entry{Ledger: ledger.Path, ID: fmt.Sprint(i)})
			}
			testkit.Until(t, "all have met", func() bool { return len(ledger.Counts(t)) == n })
			require.NoError(t, x.KillWorkers(), "KillWorkers")
		})
	}
}

type luggage struct{ Text string }

var unpack = executor.Define("test.unpack", func(_ context.Context, l *luggage) (*luggage, error) {
	return &luggage{l.Text + "!"}, nil
})

// A task that has ended keeps neither its argument nor its result, whoever still has its future.
func TestL83ArgumentsAreReleased(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			x := newExecutor(t, executor.Options{MaxWorkers: 1, Workers: ofKind(kind)})
			f, argument := submitLuggage(t, x)
			require.Equal(t, "packed!", value(t, f).Text, "result")
			released(t, "the argument", argument)

			var item weak.Pointer[luggage]
			for i := range executor.Map(t.Context(), x, unpack, func(yield func(*luggage) bool) { yield(&luggage{"packed"}) }) {
				item = weak.Make(i.In)
			}
			released(t, "the value of a Map", item)
			runtime.KeepAlive(f)
			require.Equal(t, 1, x.Stats().Workers.Idle, "the worker is still there")
			shutdown(t, x)
		})
	}
}

func submitLuggage(t *testing.T, x *executor.Executor) (*future.Future[*luggage], weak.Pointer[luggage]) {
	l := &luggage{"packed"}
	return submit(t, unpack, x, l), weak.Make(l)
}

func released[T any](t *testing.T, what string, p weak.Pointer[T]) {
	t.Helper()
	testkit.Until(t, what+" is released", func() bool {
		runtime.GC()
		return p.Value() == nil
	})
}

// Callbacks submit what their own callbacks go on with.
func TestL89ChainsOfCallbacks(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			x := newExecutor(t, executor.Options{MaxWorkers: 2, Workers: ofKind(kind)})
			ends := make(chan error, 3)
			for _, n := range []int{100, 50, 60} {
				chain(x, n, ends)
			}
			testkit.Within(t, 5*time.Second, func() {
				for range 3 {
					require.NoError(t, testkit.Receive(t, ends, "end of a chain"), "a chain")
				}
			})
			shutdown(t, x)
			require.EqualValues(t, 213, x.Stats().Done, "values")
		})
	}
}

// chain submits a task whose callback goes on with the chain, n times.
func chain(x *executor.Executor, n int, end chan<- error) {
	f, err := square.Submit(context.Background(), x, n)
	if err != nil {
		end <- err
		return
	}
	f.Then(func(got int, err error) {
		switch {
		case err != nil:
			end <- err
		case got != n*n:
			end <- fmt.Errorf("the square of %d is not %d", n, got)
		case n == 0:
			end <- nil
		default:
			chain(x, n-1, end)
		}
	})
}

var measure = executor.Define("test.measure", func(_ context.Context, s string) (int, error) { return len(s), nil })

// A large argument arrives, and one that is too large is an error of its task only.
func TestL93LargeArguments(t *testing.T) {
	if !processes(t) {
		return
	}
	x := newExecutor(t, executor.Options{MaxWorkers: 1, Workers: []supervisor.ChildOption{supervisor.Limits{Frame: 12 << 20}}})
	pid := value(t, submit(t, getpid, x, 0))
	large := strings.Repeat("x", 10<<20)
	require.Equal(t, len(large), value(t, submit(t, measure, x, large)), "length of a large argument")
	failed := failure(t, submit(t, measure, x, large+large))
	require.ErrorIs(t, failed, supervisor.ErrTooLarge, "an argument that is too large")
	require.True(t, failed.Unexecuted, "it was not executed")
	require.Equal(t, pid, value(t, submit(t, getpid, x, 0)), "process of the next task")
	shutdown(t, x)
}

// L105, L106, L107, L109, L110, L111: callbacks of tasks, given before or after the end.
func TestL107CallbacksOfTasks(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			x := newExecutor(t, executor.Options{MaxWorkers: 1, Workers: ofKind(kind)})
			for _, tt := range []struct {
				what string
				err  error
			}{{"value", nil}, {"wait", supervisor.ErrCanceled}, {"panic", errPanicked}} {
				f := submit(t, misbehave, x, tt.what)
				got := make(chan error, 2)
				call := func(text string, err error) {
					var panicked *supervisor.PanicError
					switch {
					case errors.As(err, &panicked):
						err = errPanicked
					case err == nil && text != tt.what:
						err = fmt.Errorf("value %q", text)
					}
					got <- err
				}
				f.Then(call)
				if tt.what == "wait" {
					f.Cancel()
				}
				require.ErrorIs(t, testkit.Receive(t, got, "callback"), tt.err, "%s: before the end", tt.what)
				f.Then(call)
				require.ErrorIs(t, testkit.Receive(t, got, "callback"), tt.err, "%s: after the end", tt.what)
			}
			shutdown(t, x)
		})
	}
}

var errPanicked = errors.New("panicked")
