//go:build linux || darwin

package faulttest_test

// What the Python original does wrong when its processes end or do not want to. One test for each defect that was seen
// there.

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
	"github.com/workerlink/supervisor/internal/wire"
)

func init() {
	// Its reply has 50 MB, of which half comes.
	rawPart("half of a large reply", func(w *rawWorker) {
		w.ready()
		num := w.request().num
		sent := 0
		for head, piece := range wire.Pieces(wire.Header{Kind: wire.KindReply, Request: num}, make([]byte, 50<<20)) {
			if sent += len(piece); sent > 25<<20 {
				break
			}
			w.write(head[:])
			w.write(piece)
		}
		if _, err := childtest.WaitAt(context.Background(), w.args[0], "half"); err != nil {
			return
		}
		w.park()
	})
}

// A call of the original with a limit of a second does not return in 8 of 12 tries.
func TestOriginalKillInTheMiddleOfALargeReply(t *testing.T) {
	r, gate := newRawRig(t), childtest.NewGate(t)
	r.played(t, "half of a large reply", gate.Address)
	reqs := send(t, r.sup, supervisor.NewSendPayload(r.raw, "Echo", 1))
	pid := r.seen.WaitFor(t, "start of the raw worker", func(e supervisor.Event) bool {
		return e.Kind == supervisor.EventStarted && e.ProcID == r.raw
	}).Pid
	gate.Next(t) // half is on its way
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL), "Kill")
	testkit.Within(t, rawPrompt, func() {
		got, err := r.sup.RecvAll(testkit.Context(t), reqs, supervisor.IgnoreErr())
		require.NoError(t, err, "RecvAll")
		var exit *supervisor.ExitError
		require.ErrorAs(t, got[0].Err, &exit, "the verdict")
		require.Equal(t, []any{pid, syscall.SIGKILL}, []any{exit.Pid, exit.Signal}, "who ended, and by what")
	})
}

// Once a reply has begun to arrive the original waits for its end, whatever the limit.
func TestOriginalLimitWhileAReplyArrives(t *testing.T) {
	r, gate := newRawRig(t), childtest.NewGate(t)
	r.played(t, "half of a large reply", gate.Address)
	reqs := send(t, r.sup, supervisor.NewSendPayload(r.raw, "Echo", 1))
	gate.Next(t)
	const limit = 50 * time.Millisecond
	limited := func(receive func(ctx context.Context)) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		receive(ctx)
		shutdownTook(t, time.Since(began), limit)
	}
	limited(func(ctx context.Context) {
		_, err := r.sup.Recv(ctx)
		require.ErrorIs(t, err, supervisor.ErrTimeout, "Recv")
	})
	limited(func(ctx context.Context) {
		got, err := r.sup.RecvAll(ctx, reqs, supervisor.IgnoreErr())
		require.NoError(t, err, "RecvAll")
		require.ErrorIs(t, got[0].Err, supervisor.ErrTimeout, "the verdict")
	})
}

// In 13 of 15 tries a sibling of the original did not answer: the end had torn a frame, or taken a lock along.
func TestOriginalRestartWhileLargeRepliesAreSent(t *testing.T) {
	stop := supervisor.Stop{Grace: -1, TermGrace: -1}
	t.Run("half way", func(t *testing.T) {
		testkit.NoLeaks(t)
		gate := childtest.NewGate(t)
		sup := newSupervisor(t, supervisor.Process)
		id := register(t, sup, newRaw.With(0), rawProgram(t, "half of a large reply", gate.Address), stop)
		other := register(t, sup, newRaw.With(0), rawProgram(t, "honest"))
		require.NoError(t, sup.StartLink(context.Background()), "StartLink")
		for range times(2, 15) {
			reqs := send(t, sup, supervisor.NewSendPayload(id, "Echo", 1), supervisor.NewSendPayload(id, "Echo", 2))
			gate.Next(t)
			restartBesideSibling(t, sup, id, func(n int) (int, error) {
				return supervisor.Call[int](testkit.Context(t), sup, other, "Echo", n)
			})
			got, err := sup.RecvAll(testkit.Context(t), reqs, supervisor.IgnoreErr())
			require.NoError(t, err, "RecvAll")
			for _, p := range got {
				require.ErrorIs(t, p.Err, supervisor.ErrRestarted, "verdict of what was cut off")
			}
		}
	})
	t.Run("at any moment", func(t *testing.T) {
		testkit.NoLeaks(t)
		size := times(16, 50) << 20
		r := childtest.StartTwo(t, childtest.Processes(), stop)
		for range times(1, 15) {
			r.Recv(t, r.Send(t, r.ID, "Zeros", size))
			reqs := []supervisor.SendPayload{r.Send(t, r.ID, "Zeros", size), r.Send(t, r.ID, "Zeros", size)}
			restartBesideSibling(t, r.Sup, r.ID, func(n int) (int, error) {
				return supervisor.Call[int](r.Ctx, r.Sup, r.Other, "Int", n)
			})
			for _, p := range reqs {
				if got := r.Recv(t, p); got.Err != nil { // it may have been quick
					require.ErrorIs(t, got.Err, supervisor.ErrRestarted, "verdict of what was cut off")
				}
			}
			r.Fine(t, r.ID)
		}
	})
}

// restartBesideSibling restarts a child while a sibling is asked again and again.
func restartBesideSibling(t *testing.T, sup *supervisor.Supervisor, id int, ask func(n int) (int, error)) {
	t.Helper()
	restarted := make(chan error, 1)
	task.Go(func(context.Context) { restarted <- sup.Restart(context.Background(), id) })
	for n := 0; ; n++ {
		testkit.Within(t, 2*time.Second, func() {
			got, err := ask(n)
			require.NoError(t, err, "call %d of the sibling", n)
			require.Equal(t, n, got, "its answer")
		})
		select {
		case err := <-restarted:
			require.NoError(t, err, "Restart")
			return
		default:
		}
	}
}

// Nobody watches the original's processes: without a limit both ways to receive wait for ever.
func TestOriginalAbruptDeath(t *testing.T) {
	testkit.NoLeaks(t)
	r := childtest.Start(t, childtest.Processes())
	for _, sig := range []syscall.Signal{syscall.SIGSEGV, syscall.SIGKILL} {
		for _, how := range []string{"Recv", "RecvAll"} {
			held, _ := r.Occupy(t, r.ID)
			require.NoError(t, syscall.Kill(r.Child(t, r.ID).Pid, sig), "Kill")
			var err error
			testkit.Within(t, rawPrompt, func() {
				if how == "Recv" {
					_, err = r.Sup.Recv(context.Background())
				} else {
					_, err = r.Sup.RecvAll(context.Background(), []supervisor.SendPayload{held})
				}
			})
			var exit *supervisor.ExitError
			require.ErrorAs(t, err, &exit, "%s after %v", how, sig)
			require.Equal(t, held.ReqID, childtest.CallErrorOf(t, err, r.ID, "Hold").ReqID, "the request that it was")
		}
	}
	r.Fine(t, r.ID)
}

// The original fails to close a process that survives SIGTERM, leaves everything in place, and fails the same way again.
func TestOriginalShutdownOfWhatIgnoresSIGTERM(t *testing.T) {
	testkit.NoLeaks(t)
	gate := childtest.NewGate(t)
	sup := started(t, supervisor.Process, newDervish.With(gate.Address), supervisor.Stop{Grace: 50 * time.Millisecond, TermGrace: 50 * time.Millisecond})
	pid := sup.Snapshot().Children[0].Pid
	reqs := send(t, sup, supervisor.NewSendPayload(0, "Whirl"))
	gate.Next(t).Release(t, "")
	for range 3 {
		testkit.Within(t, shutdownSlack, func() { require.NoError(t, sup.Shutdown(context.Background()), "Shutdown") })
		require.NotContains(t, testkit.Children(), pid, "processes")
	}
	got, err := sup.RecvAll(testkit.Context(t), reqs, supervisor.IgnoreErr())
	require.NoError(t, err, "RecvAll")
	require.ErrorIs(t, got[0].Err, supervisor.ErrClosed, "verdict of what it was busy with")
	require.NoError(t, sup.StartLink(context.Background()), "StartLink")
	send(t, sup, supervisor.NewSendPayload(0, "Whirl"))
	gate.Next(t).Release(t, "")
}
