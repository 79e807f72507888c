package faulttest_test

// Deaths whose moment only Linux lets us choose.

import (
	"context"
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

func TestP03DeathWhileHostWrites(t *testing.T) {
	r := newDeathRig(t)
	c := r.worker(t, mayfly)
	deathFreeze(t, c.Pid)
	var large, behind supervisor.SendPayload
	testkit.Within(t, deathPrompt, func() { // neither waits for the reader
		large = r.Send(t, c.ProcID, "Bytes", make([]byte, 8<<20))
		behind = r.Send(t, c.ProcID, "Int", 1)
	})
	testkit.Until(t, "the pipe is full", func() bool { return inPipe(t, c.Pid) >= 32<<10 })
	require.Contains(t, testkit.Stacks(), "pipe.(*Writer).writeItem", "goroutine that waits for room in the pipe")
	deathSignal(t, c.Pid, syscall.SIGKILL)
	exit := deathVerdict(t, r.verdict(t, large).Err, c, "Bytes")
	require.Equal(t, syscall.SIGKILL, exit.Signal, "%v", exit)
	got := r.verdict(t, behind)
	_ = deathVerdict(t, got.Err, c, "Int")
	require.True(t, childtest.CallErrorOf(t, got.Err, c.ProcID, "Int").Unexecuted, "nothing of it was sent: %v", got.Err)
	testkit.Until(t, "nobody writes any more", func() bool { return !strings.Contains(testkit.Stacks(), "pipe.(*Writer).writeItem") })
}

// hungry takes memory until there is none.
type hungry struct{ hoard [][]byte }

var newHungry = supervisor.Define("faulttest.hungry", func(context.Context) (*hungry, error) { return &hungry{}, nil })

// Eat limits the address space of the process to so much more than it has, and takes that and more.
func (h *hungry) Eat(bytes int) error {
	debug.SetGCPercent(-1)
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return err
	}
	pages, err := strconv.Atoi(strings.Fields(string(statm))[0])
	if err != nil {
		return err
	}
	most := uint64(pages*os.Getpagesize() + bytes)
	if err := unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: most, Max: most}); err != nil {
		return err
	}
	for {
		meal := make([]byte, 16<<20)
		for i := 0; i < len(meal); i += os.Getpagesize() {
			meal[i] = 1
		}
		h.hoard = append(h.hoard, meal)
	}
}

func TestP16OutOfMemory(t *testing.T) {
	r := newDeathRig(t)
	c := r.Child(t, register(t, r.Sup, newHungry))
	var err error
	spent := allocatedBy(func() { err = r.call(t, c, "Eat", 256<<20) })
	exit := deathVerdict(t, err, c, "Eat")
	switch {
	case exit.Signal != 0:
		require.Contains(t, []syscall.Signal{syscall.SIGKILL, syscall.SIGABRT}, exit.Signal, "%v", exit)
	case testkit.Slowdown > 1: // the race detector may run out first, and ends the process in ways of its own
		require.NotZero(t, exit.Code, "%v", exit)
	default:
		require.Equal(t, 2, exit.Code, "%v", exit)
		require.Contains(t, exit.Trace, "memory", "the trace says why")
	}
	require.Empty(t, exit.KilledBy, "it was not the supervisor")
	require.Less(t, spent, uint64(8<<20), "bytes that the host allocated meanwhile")
	r.next(t, c)
}

// A worker is killed at any moment between its fork and its first words.
func TestP19KillWhileItStarts(t *testing.T) {
	r := newDeathRig(t)
	n := times(20, 200)
	failed := 0
	for i := range n {
		id, err := r.killAfter(t, 5*time.Millisecond*time.Duration(i)/time.Duration(n))
		if err == nil { // it was ready before it was killed
			r.Events.WaitFor(t, "end of the child", func(e supervisor.Event) bool {
				return e.Kind == supervisor.EventGivenUp && e.ProcID == id
			})
			require.NoError(t, r.Sup.Unregister(r.Ctx, id), "Unregister")
			continue
		}
		failed++
		var start *supervisor.StartError
		require.ErrorAs(t, err, &start, "start %d", i)
		var exit *supervisor.ExitError
		require.ErrorAs(t, err, &exit, "start %d", i)
		require.Equal(t, syscall.SIGKILL, exit.Signal, "start %d: %v", i, err)
		require.Empty(t, exit.KilledBy, "start %d: %v", i, err)
		require.False(t, errors.Is(err, supervisor.ErrProtocol) || errors.Is(err, supervisor.ErrDecode), "start %d: %v", i, err)
	}
	require.Positive(t, failed, "starts that the kill came before")
	require.Len(t, r.Sup.Snapshot().Children, 1, "children that are left")
}

// killAfter starts a child and kills its process so long after it has appeared.
func (r *deathRig) killAfter(t *testing.T, wait time.Duration) (id int, err error) {
	t.Helper()
	before := testkit.Children()
	starting := task.Go(func(context.Context) {
		id, err = r.Sup.Register(context.Background(), childtest.Spec(r.Job()), mayfly)
	})
	pid := 0
	for pid == 0 {
		select {
		case <-starting.Done():
			if err == nil { // it got ready while we looked away
				r.Kind.Kill(t, r.Sup, id)
			}
			return id, err
		default:
		}
		for _, p := range testkit.Children() {
			if !slices.Contains(before, p) {
				pid = p
			}
		}
	}
	for began := time.Now(); time.Since(began) < wait; {
		runtime.Gosched()
	}
	deathSignal(t, pid, syscall.SIGKILL)
	testkit.Within(t, deathPrompt, starting.Wait)
	return id, err
}
