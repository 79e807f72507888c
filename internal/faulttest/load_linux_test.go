package faulttest_test

// Many children, and many lives.

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// bareWorker is a process that does nothing but say a word and wait for its end.
var bareWorker = testkit.Helper("bare worker", func() {
	_, _ = os.Stdout.WriteString("ready\n") // who does not hear it says so
	_, _ = io.Copy(io.Discard, os.Stdin)
})

// startBare starts that many bare processes and returns how long it took until all had said their word.
func startBare(t *testing.T, n int) time.Duration {
	t.Helper()
	began := time.Now()
	cmds := make([]*exec.Cmd, n)
	errs := make([]error, n)
	var starting sync.WaitGroup
	for i := range n {
		cmd := testkit.Command(t, bareWorker)
		cmds[i] = cmd
		_, err := cmd.StdinPipe()
		require.NoError(t, err, "StdinPipe")
		out, err := cmd.StdoutPipe()
		require.NoError(t, err, "StdoutPipe")
		starting.Go(func() {
			if errs[i] = cmd.Start(); errs[i] == nil {
				_, errs[i] = bufio.NewReader(out).ReadString('\n')
			}
		})
	}
	starting.Wait()
	took := time.Since(began)
	for i, cmd := range cmds {
		require.NoError(t, errs[i], "start of a bare process")
		require.NoError(t, cmd.Process.Kill(), "Kill")
		require.Error(t, cmd.Wait(), "Wait for what was killed")
	}
	return took
}

func TestL01ManyChildren(t *testing.T) {
	notShort(t)
	testkit.NoLeaks(t)
	n := times(40, 1000)
	bare := startBare(t, n)
	before := len(openDescriptors(t))
	sup := newSupervisor(t, supervisor.Process)
	for range n {
		register(t, sup, childtest.Spec(childtest.Job{}), supervisor.WithStartTimeout(time.Minute*testkit.Slowdown))
	}
	began := time.Now()
	require.NoError(t, sup.StartLink(context.Background()), "StartLink")
	start := time.Since(began)
	require.LessOrEqual(t, len(openDescriptors(t))-before, 6*n, "descriptors of %d children", n)
	for i := range 100 {
		results, err := supervisor.Broadcast[int](context.Background(), sup, "Int", i)
		require.NoError(t, err, "Int")
		require.Len(t, results, n, "results")
		for _, r := range results {
			require.Equal(t, i, r.Value, "result of child %d", r.ProcID)
		}
	}
	pids := make([]int, n)
	for i, c := range sup.Snapshot().Children {
		pids[i] = c.Pid
	}
	alive(t, pids)
	ending := time.Now()
	shutdown(t, sup)
	end := time.Since(ending)
	for _, pid := range pids {
		require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "process %d after Shutdown", pid)
	}
	testkit.Until(t, "as few descriptors as before", func() bool { return len(openDescriptors(t)) <= before })
	t.Logf("%d children: start %v, bare processes %v, end %v", n, start, bare, end)
	if soak {
		require.Less(t, start, 4*bare, "time to start %d children", n)
	}
}

// Ends of every kind, again and again.
func TestL03ManyLives(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		sup := started(t, k.Type, newTeller, supervisor.Restart{Max: 1 << 30, Backoff: supervisor.Backoff{Min: time.Millisecond, Max: time.Millisecond}})
		ctx := context.Background()
		rounds, lives := times(10, 3_400), 0
		stayFlat(t, rounds, func() {
			lives++
			require.NoError(t, sup.Restart(ctx, 0), "Restart")
			n, err := supervisor.Call[int](ctx, sup, 0, "Tell", lives)
			require.NoError(t, err, "Tell after Restart")
			require.Equal(t, lives, n, "its result")
			if !k.Can.Process {
				return
			}
			for range 2 {
				was := sup.Snapshot().Children[0]
				require.NoError(t, syscall.Kill(was.Pid, syscall.SIGKILL), "Kill")
				var c supervisor.ChildSnapshot
				defer func() {
					if t.Failed() {
						t.Logf("round %d: %+v", lives, c)
					}
				}()
				testkit.Until(t, "there is a next life", func() bool {
					c = sup.Snapshot().Children[0]
					return c.State == supervisor.StateUp && c.Incarnation > was.Incarnation
				})
				told, err := supervisor.Call[[]int](ctx, sup, 0, "Told")
				require.NoError(t, err, "Told after a kill")
				require.Equal(t, []int{0, 0}, told, "what a fresh life was told")
			}
		})
		c := sup.Snapshot().Children[0]
		if k.Can.Process {
			require.Equal(t, 2*lives, c.Restarts, "restarts by the policy")
		}
		require.NotZero(t, c.Incarnation, "the life after %d rounds", lives)
		shutdown(t, sup)
	})
}

// cpuOf is how much processor time this process spends in f.
func cpuOf(t *testing.T, f func()) time.Duration {
	t.Helper()
	spent := func() time.Duration {
		var u syscall.Rusage
		require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u), "Getrusage")
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := spent()
	f()
	return spent() - before
}

// A waiter costs the others nothing: no reply passes it more than once.
func TestL04WaitersBurnNothing(t *testing.T) {
	testkit.NoLeaks(t)
	r := childtest.StartTwo(t, childtest.Goroutines())
	flood := func() {
		for n := range times(5_000, 100_000) {
			require.NoError(t, r.Sup.Send(context.Background(), supervisor.NewSendPayload(r.Other, "Int", n)), "Send")
			_, err := r.Sup.Recv(context.Background())
			require.NoError(t, err, "Recv")
		}
	}
	flood() // pools fill
	slow, v := r.Occupy(t, r.ID)
	testkit.Until(t, "a flood beside fifty waiters takes no more than twice the processor time of one alone", func() bool {
		alone := cpuOf(t, flood)
		var waiting sync.WaitGroup
		ctx, cancel := context.WithCancel(context.Background())
		for range 50 {
			p := r.Send(t, r.ID, "Int", 1)
			waiting.Go(func() { _, _ = r.Sup.RecvAll(ctx, []supervisor.SendPayload{p}, supervisor.IgnoreErr()) }) // it ends with ctx
		}
		beside := cpuOf(t, flood)
		cancel()
		waiting.Wait()
		t.Logf("alone %v, beside waiters %v", alone, beside)
		return beside <= 2*alone
	})
	v.Release(t, "done")
	require.NoError(t, r.Recv(t, slow).Err, "the slow one")
	shutdown(t, r.Sup)
}
