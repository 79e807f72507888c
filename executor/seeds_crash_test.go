package executor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/executor"
	"github.com/workerlink/supervisor/future"
	"github.com/workerlink/supervisor/internal/testkit"
)

// crashes are ways to end a worker at each step that it takes, beside those of TestCrashMatrix.
var crashes = []struct {
	name, way string
	check     func(t *testing.T, err error)
}{
	{"memory fault", "fault", faulted},
	{"exit with 0", "exit 0", exited(0, 0)},
}

func faulted(t *testing.T, err error) {
	exited(2, 0)(t, err)
	var failed *executor.TaskError
	require.ErrorAs(t, err, &failed, "verdict")
	require.Contains(t, failed.Exit().Trace, "storeWildly", "trace of the fault")
}

// L3, L4, L6, L7, L9, L11, L12, L13: a worker that faults, or ends as if all were well, wherever that happens.
func TestL6EndsOfWorkers(t *testing.T) {
	if !processes(t) {
		return
	}
	for _, tt := range crashes {
		for _, step := range []string{"decode argument", "run", "encode result"} {
			t.Run(tt.name+"/"+step, func(t *testing.T) {
				testkit.NoLeaks(t)
				inMatrix(t, bomb{step, tt.way}, 1, tt.check)
			})
		}
	}
}

// leave ends its goroutine, which is what comes nearest to an exception that ends a program.
var leave = executor.Define("test.leave", func(context.Context, int) (int, error) {
	runtime.Goexit()
	return 0, nil
})

func TestL8TaskThatEndsItsGoroutine(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			x := newExecutor(t, executor.Options{MaxWorkers: 1, Workers: ofKind(kind)})
			pid := value(t, submit(t, getpid, x, 0))
			failed := failure(t, submit(t, leave, x, 0))
			require.False(t, failed.Unexecuted, "it had begun")
			require.Nil(t, failed.Exit(), "end of a worker")
			require.Equal(t, pid, value(t, submit(t, getpid, x, 0)), "process of the next task")
			shutdown(t, x)
			require.Zero(t, x.Stats().Workers.Crashed, "workers that died")
		})
	}
}

// killOf kills a process, its own as well.
var killOf = executor.Define("test.killOf", func(_ context.Context, pid int) (int, error) {
	p, err := os.FindProcess(pid)
	if err == nil {
		err = p.Kill()
	}
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return 0, err
	}
	if pid == os.Getpid() {
		select {}
	}
	return pid, nil
})

// started are the pids of n workers that are there before any task.
func started(t *testing.T, n int, o executor.Options) (*executor.Executor, []int) {
	t.Helper()
	events := testkit.NewRecorder(func(e executor.Event) executor.EventKind { return e.Kind })
	o.MaxWorkers, o.MinIdle, o.Events = n, n, events.Record
	x := newExecutor(t, o)
	var pids []int
	for range n {
		pids = append(pids, events.Wait(t, executor.EventStarted).Pid)
	}
	return x, pids
}

func TestL20WorkersThatKillEachOther(t *testing.T) {
	if !processes(t) {
		return
	}
	for _, n := range []int{1, 2, 5, 13} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			x, pids := started(t, n, executor.Options{})
			distinct := make(map[int]bool)
			for _, pid := range pids {
				distinct[pid] = true
			}
			require.Len(t, distinct, n, "processes")
			killed := func(yield func(int) bool) {
				for _, pid := range pids {
					if !yield(pid) {
						return
					}
				}
			}
			items := 0
			for item := range executor.Map(t.Context(), x, killOf, killed, executor.Chunk(1)) {
				items++
				if item.Err != nil { // its worker may have been killed before it did anything
					exited(-1, syscall.SIGKILL)(t, item.Err)
					delete(distinct, item.In)
				}
			}
			require.Equal(t, n, items, "items")
			for i := range 2 * n {
				pid := value(t, submit(t, getpid, x, i))
				require.False(t, distinct[pid], "a task of worker %d, which was killed", pid)
			}
			shutdown(t, x)
		})
	}
}

// L22: what cannot be sent keeps nothing from being sent. L23: and the error says what went wrong.
func TestL22ManyArgumentsThatCannotBeSent(t *testing.T) {
	if !processes(t) {
		return
	}
	x := newExecutor(t, executor.Options{MaxWorkers: 1, Queue: 20})
	var bad, good []*future.Future[result]
	for range 100 {
		bad = append(bad, submit(t, carry, x, argument{bomb{"encode argument", "error"}}))
	}
	for i := range 100 {
		good = append(good, submit(t, carry, x, argument{bomb{"none", fmt.Sprint(i)}}))
	}
	for i, f := range bad {
		failed := failure(t, f)
		require.ErrorIs(t, failed, supervisor.ErrEncode, "task %d", i)
		require.ErrorContains(t, failed, errBomb.Error(), "task %d", i)
		require.True(t, failed.Unexecuted, "task %d never ran", i)
	}
	for i, f := range good {
		require.Equal(t, fmt.Sprint(i), value(t, f).Way, "good task %d", i)
	}
	shutdown(t, x)
	require.Zero(t, x.Stats().Workers.Crashed, "workers that died")
}

func TestL23ErrorOfADecoderIsTold(t *testing.T) {
	if !processes(t) {
		return
	}
	x := newExecutor(t, executor.Options{MaxWorkers: 1})
	for _, step := range []string{"decode argument", "decode result"} {
		failed := failure(t, submit(t, carry, x, argument{bomb{step, "error"}}))
		require.ErrorIs(t, failed, supervisor.ErrDecode, step)
		require.ErrorContains(t, failed, errBomb.Error(), step)
		require.ErrorContains(t, failed, "test.carry", step)
	}
	shutdown(t, x)
}

// legacy leaves something behind that ends its worker when the memory of the task is collected.
var (
	legacy = executor.Define("test.legacy", func(_ context.Context, way string) (string, error) {
		runtime.SetFinalizer(&bomb{"finalizer", way}, func(b *bomb) { _ = b.off("finalizer") })
		return way, nil
	})
	collect = executor.Define("test.collect", func(context.Context, int) (int, error) {
		for {
			runtime.GC()
		}
	})
)

// What ends a worker later than the task that is to blame costs not that one.
func TestL28CrashWhenMemoryIsFreed(t *testing.T) {
	if !processes(t) {
		return
	}
	for _, tt := range crashes {
		t.Run(tt.name, func(t *testing.T) {
			x := newExecutor(t, executor.Options{MaxWorkers: 1})
			require.Equal(t, tt.way, value(t, submit(t, legacy, x, tt.way)), "the task that leaves it behind")
			_, err := submit(t, collect, x, 0).Result(testkit.Context(t))
			tt.check(t, err)
			require.Equal(t, 4, value(t, submit(t, square, x, 2)), "the next task")
			shutdown(t, x)
		})
	}
}

// readsInput starts a program that reads its standard input to the end.
var readsInput = executor.Define("test.readsInput", func(ctx context.Context, _ int) (string, error) {
	cmd := exec.CommandContext(ctx, "cat")
	cmd.Stdin = os.Stdin
	out, err := cmd.Output()
	return string(out) + "end", err
})

func TestL47ProgramThatReadsItsInput(t *testing.T) {
	if !processes(t) {
		return
	}
	x := newExecutor(t, executor.Options{MaxWorkers: 1})
	require.Equal(t, "end", value(t, submit(t, readsInput, x, 0)), "what the program read")
	shutdown(t, x)
}

// loose panics on a goroutine of its own, which nothing can recover.
var loose = executor.Define("test.loose", func(context.Context, int) (int, error) {
	go func() { panic("on the loose") }()
	select {}
})

func TestL48CrashComesWithItsStack(t *testing.T) {
	if !processes(t) {
		return
	}
	x := newExecutor(t, executor.Options{MaxWorkers: 1})
	failed := failure(t, submit(t, loose, x, 0))
	require.NotNil(t, failed.Exit(), "how the worker ended: %v", failed)
	require.Equal(t, 2, failed.Exit().Code, "exit code")
	require.Contains(t, failed.Exit().Trace, "panic: on the loose", "trace")
	require.Contains(t, failed.Exit().Trace, "seeds_crash_test.go", "trace")
	require.ErrorContains(t, failed, "on the loose", "its text")
	shutdown(t, x)
}

// A stray SIGTERM is sat out: the worker ends when its executor says so. What SIGKILL does is in
// TestCrashCostsTheRunningTask.
func TestL85StraySigterm(t *testing.T) {
	if !processes(t) {
		return
	}
	x, pids := started(t, 1, executor.Options{})
	running := submit(t, misbehave, x, "wait")
	until(t, x, "it runs", func(s executor.Stats) bool { return s.Running == 1 })
	p, err := os.FindProcess(pids[0])
	require.NoError(t, err, "the worker's process")
	require.NoError(t, p.Signal(syscall.SIGTERM), "SIGTERM")
	running.Cancel()
	require.ErrorIs(t, failure(t, running), supervisor.ErrCanceled, "the task that was running")
	for range 200 {
		require.Equal(t, pids[0], value(t, submit(t, getpid, x, 0)), "process of a later task")
	}
	shutdown(t, x)
	require.Zero(t, x.Stats().Workers.Crashed, "workers that died")
}

// writesFile writes to a descriptor that the worker was started with.
var writesFile = executor.Define("test.writesFile", func(_ context.Context, fd int) (int, error) {
	return os.NewFile(uintptr(fd), "extra").WriteString("through a descriptor")
})

// firstExtra is the number that a worker has the first of Proc.ExtraFiles as.
const firstExtra = 6

func TestL125DescriptorGivenAtTheStart(t *testing.T) {
	if !processes(t) {
		return
	}
	r, w, err := os.Pipe()
	require.NoError(t, err, "pipe")
	defer r.Close()
	x := bare(t, executor.Options{MaxWorkers: 1, Workers: []supervisor.ChildOption{supervisor.Proc{ExtraFiles: []*os.File{w}}}})
	require.Equal(t, 20, value(t, submit(t, writesFile, x, firstExtra)), "bytes written by the worker")
	shutdown(t, x)
	require.NoError(t, w.Close(), "close the host's end")
	text, err := io.ReadAll(r)
	require.NoError(t, err, "read the pipe, which nobody holds open any more")
	require.Equal(t, "through a descriptor", string(text))
}

// family starts processes within each other, so deep, and says so.
var family = executor.Define("test.family", func(_ context.Context, depth int) (int, error) {
	const script = `f() { if [ "$1" = 0 ]; then echo ready; exec sleep 1000; fi; (f $(($1 - 1))) & wait; }; f "$0"`
	cmd := exec.Command("/bin/sh", "-c", script, fmt.Sprint(depth))
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		_, err = io.ReadFull(out, make([]byte, len("ready")))
	}
	return cmd.Process.Pid, err
})

// Whatever way a worker ends, what its tasks have started goes with it; the look at what is left is in newExecutor.
func TestL141FamilyOfProcesses(t *testing.T) {
	if !processes(t) {
		return
	}
	for name, end := range map[string]func(t *testing.T, x *executor.Executor){
		"shut down": func(t *testing.T, x *executor.Executor) { shutdown(t, x) },
		"killed":    func(t *testing.T, x *executor.Executor) { require.NoError(t, x.KillWorkers(), "KillWorkers") },
		"crashed": func(t *testing.T, x *executor.Executor) {
			exited(-1, syscall.SIGKILL)(t, failure(t, submit(t, misbehave, x, "kill")))
			shutdown(t, x)
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newExecutor(t, executor.Options{MaxWorkers: 1})
			pid := value(t, submit(t, family, x, 5))
			testkit.Within(t, 5*time.Second, func() { end(t, x) })
			testkit.Until(t, "the head of the family has ended", func() bool { return ended(pid) })
		})
	}
}
