package executor_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/executor"
	"github.com/workerlink/supervisor/future"
	"github.com/workerlink/supervisor/internal/testkit"
)

// A loop over tasks that would take for ever ends when the executor is killed, with what went before it untouched.
func TestL25KillUnderAMap(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			x := newExecutor(t, executor.Options{MaxWorkers: 5, Workers: ofKind(kind)})
			for item := range executor.Map(t.Context(), x, square, upTo(100, nil)) {
				require.NoError(t, item.Err, "item %d of those that end", item.Index)
			}
			killed := make(chan error, 1)
			items := 0
			input := func(yield func(string) bool) {
				for i := 0; i < 100 && yield("wait"); i++ {
					if i == 10 {
						go func() { killed <- x.KillWorkers() }()
					}
				}
			}
			testkit.Within(t, 5*time.Second, func() {
				for item := range executor.Map(t.Context(), x, misbehave, input, executor.Prefetch(100)) {
					require.ErrorIs(t, item.Err, supervisor.ErrClosed, "item %d of those that do not end", item.Index)
					items++
				}
			})
			require.NoError(t, testkit.Receive(t, killed, "KillWorkers"), "KillWorkers")
			require.GreaterOrEqual(t, items, 11, "items")
		})
	}
}

// L54, L64: what cannot be sent holds up no end, whether that waits or not.
func TestL54ShutdownAfterWhatCannotBeSent(t *testing.T) {
	if !processes(t) {
		return
	}
	for range 3 {
		x := newExecutor(t, executor.Options{MaxWorkers: 4})
		f := submit(t, carry, x, argument{bomb{"encode argument", "error"}})
		shutdown(t, x)
		require.ErrorIs(t, failure(t, f), supervisor.ErrEncode, "verdict")
	}
}

// writesSlowly writes a file after a while.
var writesSlowly = executor.Define("test.writesSlowly", func(_ context.Context, path string) (int, error) {
	<-time.After(30 * time.Millisecond)
	text := filepath.Base(path)
	fmt.Println("apple", text)
	return len(text), os.WriteFile(path, []byte(text), 0o600)
})

// writer is a program that submits eight tasks and then ends, in order or just so. What its workers print it prints.
var writer = testkit.Helper("writer", func() {
	ctx := context.Background()
	x, err := executor.New(executor.Options{MaxWorkers: 2, Events: func(e executor.Event) {
		if e.Kind == executor.EventOutput {
			fmt.Println(e.Text)
		}
	}})
	for i := 0; i < 8 && err == nil; i++ {
		_, err = writesSlowly.Submit(ctx, x, filepath.Join(os.Args[1], fmt.Sprint("file ", i)))
	}
	if err == nil && os.Args[2] == "in order" {
		err = x.Shutdown(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
})

// L56, L65: a program that shuts down its executor ends when all is done, with all that was printed, and one that does
// not ends at once; its workers do too, which the files that never come say. Neither complains.
func TestL56EndOfTheProgram(t *testing.T) {
	if !processes(t) {
		return
	}
	for _, way := range []string{"in order", "just so"} {
		t.Run(way, func(t *testing.T) {
			testkit.NoLeaks(t)
			dir := t.TempDir()
			cmd := testkit.Command(t, writer, dir, way)
			var out, complaints strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &complaints
			require.NoError(t, cmd.Run(), "the program")
			require.Empty(t, complaints.String(), "standard error")
			files, err := os.ReadDir(dir)
			require.NoError(t, err, "read the directory")
			if way == "just so" {
				require.Less(t, len(files), 8, "files of a program that does not wait for its tasks")
				return
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			slices.Sort(lines)
			require.Len(t, files, 8, "files")
			require.Len(t, lines, 8, "lines that tasks have printed")
			for i, file := range files {
				text, err := os.ReadFile(filepath.Join(dir, file.Name()))
				require.NoError(t, err, "read a file")
				require.Equal(t, fmt.Sprint("file ", i), string(text), "its text")
				require.Equal(t, fmt.Sprint("apple file ", i), lines[i], "line of its task")
			}
		})
	}
}

// L59, L60, L62: an executor that nobody keeps does what it was given, also past a crash, and then has no workers.
func TestL59ForgottenExecutor(t *testing.T) {
	if !processes(t) {
		return
	}
	testkit.NoLeaks(t)
	events := testkit.NewRecorder(func(e executor.Event) executor.EventKind { return e.Kind })
	tasks, crash := forgotten(t, events.Record)
	exited(3, 0)(t, crash.Err())
	for i, f := range tasks {
		require.Equal(t, i*i, value(t, f), "task %d", i)
	}
	balance := func() (n int) {
		for _, e := range events.All() {
			switch e.Kind {
			case executor.EventStarted:
				n++
			case executor.EventLeft, executor.EventCrashed:
				n--
			}
		}
		return n
	}
	testkit.Until(t, "all workers have left", func() bool { return balance() == 0 })
}

// forgotten returns tasks of an executor of which nothing else is left, the last of them a crash that has ended.
func forgotten(t *testing.T, events func(executor.Event)) (tasks []*future.Future[int], crash *future.Future[string]) {
	x, err := executor.New(executor.Options{MaxWorkers: 2, IdleTimeout: time.Millisecond, Events: events})
	require.NoError(t, err, "New")
	for i := range 10 {
		tasks = append(tasks, submit(t, square, x, i))
	}
	crash = submit(t, misbehave, x, "exit test")
	testkit.Closed(t, crash.Done(), "end of the crash")
	return tasks, crash
}

// A Shutdown that has begun takes nothing more, and leaves all that is waiting as it is.
func TestL63ShutdownWhileTasksWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := goroutines(t, executor.Options{MaxWorkers: 2})
		gates, results := gated(t, x, 10)
		ended := make(chan error, 1)
		go func() { ended <- x.Shutdown(t.Context()) }()
		synctest.Wait()
		_, err := square.Submit(t.Context(), x, 1)
		require.ErrorIs(t, err, supervisor.ErrClosed, "Submit")
		for i, f := range results {
			select {
			case <-f.Done():
				t.Fatalf("task %d has ended", i)
			default:
			}
		}
		for i, g := range gates {
			close(g.open)
			require.Equal(t, fmt.Sprint("gated ", i), value(t, results[i]), "task %d", i)
		}
		require.NoError(t, <-ended, "Shutdown")
	})
}

// heavy is an argument that takes long to encode.
type heavy struct{ Takes time.Duration }

func (h heavy) GobEncode() ([]byte, error) {
	<-time.After(h.Takes)
	return []byte(h.Takes.String()), nil
}

func (h *heavy) GobDecode(text []byte) (err error) {
	h.Takes, err = time.ParseDuration(string(text))
	return err
}

var weigh = executor.Define("test.weigh", func(_ context.Context, h heavy) (time.Duration, error) { return h.Takes, nil })

// L102, L103, L104: arguments that take longer to encode than a worker may be idle.
func TestL103SlowArgumentsAndShortIdleTimeouts(t *testing.T) {
	if !processes(t) {
		return
	}
	for _, tt := range []struct{ idle, takes time.Duration }{
		{10 * time.Millisecond, 20 * time.Millisecond},
		{10 * time.Millisecond, 100 * time.Millisecond},
		{100 * time.Millisecond, 100 * time.Millisecond},
		{time.Millisecond, 100 * time.Millisecond},
	} {
		t.Run(fmt.Sprint(tt.idle, " ", tt.takes), func(t *testing.T) {
			x := newExecutor(t, executor.Options{MaxWorkers: 2, IdleTimeout: tt.idle})
			var results []*future.Future[time.Duration]
			for range 5 {
				results = append(results, submit(t, weigh, x, heavy{tt.takes}))
			}
			require.Equal(t, tt.takes, value(t, results[0]), "the first task")
			last := submit(t, weigh, x, heavy{tt.takes})
			shutdown(t, x)
			for i, f := range append(results, last) {
				require.Equal(t, tt.takes, value(t, f), "task %d", i)
			}
			require.Zero(t, x.Stats().Workers.Crashed, "workers that died")
		})
	}
}

func TestL90WorkersThatLeaveBetweenMaps(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			x := newExecutor(t, executor.Options{MaxWorkers: 2, IdleTimeout: 10 * time.Millisecond, Workers: ofKind(kind)})
			for range 5 {
				for item := range executor.Map(t.Context(), x, square, upTo(8, nil)) {
					require.NoError(t, item.Err, "item %d", item.Index)
				}
				until(t, x, "no worker is left", func(s executor.Stats) bool { return s.Workers.Now == 0 })
			}
			shutdown(t, x)
		})
	}
}

// L88: many submit, cancel and map at once.
func TestL88ManyThreads(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			x := newExecutor(t, executor.Options{MaxWorkers: 2, Workers: ofKind(kind)})
			var threads sync.WaitGroup
			for range 10 {
				threads.Go(func() {
					mapSquares(t, x, 40)
					submitAndCancel(t, x, 20)
					mapSquares(t, x, 40)
				})
			}
			threads.Wait()
			shutdown(t, x)
			require.Zero(t, x.Stats().Workers.Crashed, "workers that died")
		})
	}
}

func mapSquares(t *testing.T, x *executor.Executor, n int) {
	at := 0
	for item := range executor.Map(context.Background(), x, square, upTo(n, nil)) {
		if item.Err != nil || item.Out != at*at {
			t.Errorf("item %d: %+v", at, item)
		}
		at++
	}
	if at != n {
		t.Errorf("%d items of %d", at, n)
	}
}

// submitAndCancel submits n tasks, of which it cancels every other one.
func submitAndCancel(t *testing.T, x *executor.Executor, n int) {
	var tasks []*future.Future[int]
	for i := range n {
		f, err := square.Submit(context.Background(), x, i)
		if err != nil {
			t.Errorf("Submit: %v", err)
			return
		}
		if i%2 == 0 {
			f.Cancel()
		}
		tasks = append(tasks, f)
	}
	for i, f := range tasks {
		got, err := f.Result(context.Background())
		switch {
		case err == nil && got == i*i:
		case i%2 == 0 && anyIs(err, supervisor.ErrCanceled):
		default:
			t.Errorf("task %d: %d, %v", i, got, err)
		}
	}
}
