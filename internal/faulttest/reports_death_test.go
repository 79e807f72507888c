//go:build linux || darwin

package faulttest_test

// Public bug reports about workers that die, as tests.

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// Whoever called a worker that died is told more than that a stream ended.
func TestC63DeathIsNoBareEOF(t *testing.T) {
	r := newDeathRig(t)
	for name, end := range map[string]func(c supervisor.ChildSnapshot) supervisor.SendPayload{
		"exit": func(c supervisor.ChildSnapshot) supervisor.SendPayload { return r.Send(t, c.ProcID, "Exit", 3) },
		"signal": func(c supervisor.ChildSnapshot) supervisor.SendPayload {
			held, _ := r.Occupy(t, c.ProcID)
			deathSignal(t, c.Pid, syscall.SIGKILL)
			return held
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := r.worker(t, mayfly)
			childtest.CallOf[any](t, r.Rig, c.ProcID, "Print", "", "cannot open the level\n")
			p := end(c)
			err := r.verdict(t, p).Err
			exit := deathVerdict(t, err, c, p.Method)
			require.NotErrorIs(t, err, io.EOF, "it is no matter of streams")
			require.Contains(t, exit.Tail, "cannot open the level", "its last words")
			for _, text := range []string{fmt.Sprint("child ", c.ProcID), fmt.Sprint("worker ", c.Pid), "cannot open the level"} {
				require.ErrorContains(t, err, text, "who it was, and its last words")
			}
		})
	}
}

// What follows from an error does not hide it.
func TestC64FirstErrorIsKept(t *testing.T) {
	t.Run("an error, then death", func(t *testing.T) {
		r := newDeathRig(t)
		c := r.worker(t, mayfly)
		fail := r.Send(t, c.ProcID, "Fail", "wrapped")
		testkit.Until(t, "the error is there", func() bool { return r.Sup.Snapshot().Unclaimed == 1 })
		last := r.Send(t, c.ProcID, "Exit", 1)
		r.event(t, supervisor.EventGivenUp, c.Incarnation)
		both := []supervisor.SendPayload{fail, last}
		_, err := r.Sup.RecvAll(r.Ctx, both)
		var remote *supervisor.RemoteError
		require.ErrorAs(t, err, &remote, "RecvAll")
		require.ErrorIs(t, err, childtest.ErrSentinel, "RecvAll")
		_ = deathVerdict(t, r.verdict(t, last).Err, c, "Exit")
	})
	t.Run("Shutdown of the dead", func(t *testing.T) {
		testkit.NoLeaks(t)
		r := childtest.Start(t, childtest.Processes(), mayfly)
		c := r.Child(t, r.ID)
		fail := r.Send(t, r.ID, "Fail", "sentinel")
		testkit.Until(t, "the error is there", func() bool { return r.Sup.Snapshot().Unclaimed == 1 })
		deathSignal(t, c.Pid, syscall.SIGKILL)
		require.NoError(t, r.Sup.Shutdown(r.Ctx), "Shutdown, whatever the worker is at")
		require.NoError(t, r.Sup.Err(), "Err")
		require.ErrorIs(t, r.Recv(t, fail).Err, childtest.ErrSentinel, "the reply, after Shutdown")
	})
	t.Run("replies with the last breath", func(t *testing.T) {
		const many = 1000
		r := newRawRig(t)
		for range 3 {
			r.played(t, "last breath", strconv.Itoa(many))
			r.echoAll(t, many)
			exit(t, r.ends(t))
		}
	})
}

func init() {
	rawPart("last breath", func(w *rawWorker) { // the answers to so many requests in one write, and then it exits
		w.ready()
		w.write(w.gather(w.number(0)))
	})
}

// The end of what a worker prints is never lost, however suddenly it dies.
func TestC05LastWordsAreKept(t *testing.T) {
	r := newDeathRig(t)
	c := r.mortal(t, mayfly)
	const lines = 300
	for i := range times(10, 100) {
		text := fmt.Sprint("panic number ", i)
		exit := deathVerdict(t, r.call(t, c, "PrintAndPanic", lines, text), c, "PrintAndPanic")
		require.Equal(t, 2, exit.Code, "%v", exit)
		require.True(t, strings.HasPrefix(exit.Trace, "panic: "+text+"\n"), "the trace begins with the reason:\n%s", exit.Trace)
		require.Contains(t, exit.Trace, "PrintAndPanic", "the trace says where")
		require.Contains(t, exit.Tail, fmt.Sprintf("line %d of %s\npanic: %s\n", lines-1, text, text), "the output goes on to the panic")
		ends := strings.Split(strings.TrimSpace(exit.Trace), "\n")
		require.True(t, strings.HasSuffix(strings.TrimSpace(exit.Tail), ends[len(ends)-1]), "the output goes on to the end:\n%s", exit.Tail)
		require.NoError(t, r.Sup.Restart(r.Ctx, c.ProcID), "Restart")
		c = r.Child(t, c.ProcID)
	}
}

func TestC11PanicBetweenCalls(t *testing.T) {
	r := newDeathRig(t)
	c := r.mortal(t)
	require.NoError(t, r.call(t, c, "PanicLater"), "PanicLater")
	r.Gate.Next(t).Release(t, "now")
	exit := deathOf(t, r.event(t, supervisor.EventExited, c.Incarnation).Err, c)
	require.Equal(t, 2, exit.Code, "%v", exit)
	require.Contains(t, exit.Trace, "assignment to entry in nil map", "the trace says why")
	require.Contains(t, exit.Trace, "writeToNilMap", "the trace says where")
	require.ErrorIs(t, syscall.Kill(c.Pid, 0), syscall.ESRCH, "process %d: not even a zombie", c.Pid)
	r.next(t, c)
	require.NoError(t, r.call(t, c, "Pid"), "call of the next life")
}

// guardian has started a process in a group of its own, which the library does not know of. It sees to its end itself.
type guardian struct {
	ledger testkit.Ledger
	ward   *exec.Cmd
}

var newGuardian = supervisor.DefineWith("faulttest.guardian", func(_ context.Context, ledger string) (*guardian, error) {
	g := &guardian{ledger: testkit.Ledger{Path: ledger}, ward: exec.CommandContext(context.Background(), "sleep", "1000")}
	g.ward.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return g, g.ward.Start()
})

// Ward returns the id of what it has started.
func (g *guardian) Ward() int { return g.ward.Process.Pid }

// Close ends that.
func (g *guardian) Close() error {
	_ = g.ward.Process.Kill() // if it has ended already, Wait says the same
	_ = g.ward.Wait()         // by the signal
	return g.ledger.Enter("closed")
}

func TestC14HookEndsWhatItHasStarted(t *testing.T) {
	testkit.NoLeaks(t)
	ledger := testkit.NewLedger(t)
	sup := started(t, supervisor.Process, newGuardian.With(ledger.Path))
	pid := sup.Snapshot().Children[0].Pid
	ward, err := supervisor.Call[int](testkit.Context(t), sup, 0, "Ward")
	require.NoError(t, err, "Ward")
	group, err := syscall.Getpgid(ward)
	require.NoError(t, err, "Getpgid(%d)", ward)
	require.Equal(t, ward, group, "group of what the worker has started")
	testkit.Within(t, deathPrompt, func() { shutdown(t, sup) })
	require.Equal(t, map[string]int{"closed": 1}, ledger.Counts(t), "runs of the hook")
	for _, p := range []int{pid, ward} {
		require.ErrorIs(t, syscall.Kill(p, 0), syscall.ESRCH, "process %d", p)
	}
}
