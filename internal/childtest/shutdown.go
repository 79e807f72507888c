package childtest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

var shutdownRules = []rule{
	{"what was accepted is executed and can be received after", shutdownDrains},
	{"Shutdown may be called again, and by many", shutdownByMany},
	{"Shutdown before the start is the end of that generation", shutdownEarly},
	{"StartLink after Shutdown starts fresh children", shutdownAndStart},
	{"the grace ends with the handlers' contexts", shutdownGrace},
	{"a handler that heeds nothing is ended or named", shutdownStuck},
	{"when its ctx ends Shutdown kills, and names what was at work", shutdownCtx},
	{"Close kills at once", closeKills},
	{"those who wait are woken", shutdownWakes},
}

func shutdownDrains(t *testing.T, k Kind) {
	r := start(t, k)
	held, v := r.occupy(t, r.id)
	var reqs []supervisor.SendPayload
	for range 20 {
		reqs = append(reqs, r.send(t, r.id, "Add", 1))
	}
	done := make(chan error, 1)
	task.Go(func(context.Context) { done <- r.sup.Shutdown(r.ctx) })
	testkit.Until(t, "the supervisor takes no more", func() bool { return !r.sup.Snapshot().Running })
	require.ErrorIs(t, r.sup.Send(r.ctx, supervisor.NewSendPayload(r.id, "Add", 1)), supervisor.ErrClosed, "Send while it stops")
	v.release(t, "last")
	require.NoError(t, testkit.Receive(t, done, "Shutdown"))
	replies, err := r.sup.RecvAll(r.ctx, append(reqs, held))
	require.NoError(t, err)
	for i, p := range replies[:20] {
		require.Equal(t, 11+i, p.Data, "reply %d", i)
	}
	require.Equal(t, "last", replies[20].Data)
	_, err = r.sup.Recv(r.ctx)
	require.ErrorIs(t, err, supervisor.ErrClosed, "when nothing is left")
	require.Equal(t, map[string]int{"close": 1}, r.ledger.Counts(t))
	require.NoError(t, r.sup.Err(), "an orderly end has no cause")
}

func shutdownByMany(t *testing.T, k Kind) {
	r := startTwo(t, k)
	results := make(chan error, 32)
	for range cap(results) {
		task.Go(func(context.Context) { results <- r.sup.Shutdown(r.ctx) })
	}
	for range cap(results) {
		require.NoError(t, testkit.Receive(t, results, "Shutdown"))
	}
	testkit.Closed(t, r.sup.Done(), "Done")
	require.NoError(t, r.sup.Shutdown(r.ctx), "once more")
	require.NoError(t, r.sup.Close(), "Close after it")
	require.Equal(t, map[string]int{"close": 2}, r.ledger.Counts(t), "each object is closed once")
}

func shutdownEarly(t *testing.T, k Kind) {
	r := newRig(t, k)
	r.id = r.register(t, r.job())
	require.NoError(t, r.sup.Shutdown(r.ctx))
	testkit.Closed(t, r.sup.Done(), "Done")
	require.ErrorIs(t, r.sup.Send(r.ctx, supervisor.NewSendPayload(r.id, "Int", 1)), supervisor.ErrClosed)
	r.startLink(t)
	r.fine(t, r.id)
}

func shutdownAndStart(t *testing.T, k Kind) {
	r := start(t, k)
	var lives []uint64
	for range 3 {
		require.Equal(t, 15, call[int](t, r, r.id, "Add", 5), "a fresh object")
		lives = append(lives, r.child(t, r.id).Incarnation)
		unclaimed := r.send(t, r.id, "Int", 1)
		done := r.sup.Done()
		require.NoError(t, r.sup.Shutdown(r.ctx))
		testkit.Closed(t, done, "Done of the old generation")
		added := r.register(t, r.job()) // between two generations
		r.startLink(t)
		select {
		case <-r.sup.Done():
			t.Fatal("Done of the new generation is closed")
		default:
		}
		r.fine(t, added)
		_, err := r.sup.RecvAll(r.ctx, []supervisor.SendPayload{unclaimed})
		require.ErrorIs(t, err, supervisor.ErrNoSuchRequest, "a request of the old generation")
	}
	require.IsIncreasing(t, lives, "lives never repeat")
}

func shutdownGrace(t *testing.T, k Kind) {
	stop := supervisor.Stop{Grace: 50 * time.Millisecond, TermGrace: testkit.Limit}
	if !k.Can.Specs {
		stop.TermGrace = 50 * time.Millisecond // a Link is told the sum of the two alone
	}
	r := start(t, k, stop)
	held, v := r.occupy(t, r.id)
	queued := r.send(t, r.id, "Enter", "executed")
	began := time.Now()
	require.NoError(t, r.sup.Shutdown(r.ctx))
	require.Less(t, time.Since(began), prompt*testkit.Slowdown, "time of Shutdown")
	v.gone(t)
	require.Error(t, r.recv(t, held).Err)
	require.ErrorIs(t, r.recv(t, queued).Err, supervisor.ErrClosed)
	require.Equal(t, map[string]int{"close": 1}, r.ledger.Counts(t), "Close runs, and what was queued does not")
}

func shutdownStuck(t *testing.T, k Kind) {
	r := start(t, k, supervisor.Stop{Grace: 50 * time.Millisecond, TermGrace: 50 * time.Millisecond}, supervisor.WithName("mule"))
	p := r.send(t, r.id, "HoldOn", "forever")
	v := r.gate.next(t)
	var err error
	testkit.Within(t, prompt, func() { err = r.sup.Shutdown(r.ctx) })
	require.ErrorIs(t, r.recv(t, p).Err, supervisor.ErrClosed)
	if k.Can.Process {
		require.NoError(t, err, "a process can always be ended")
		v.gone(t)
		return
	}
	var stuck *supervisor.StuckError
	require.ErrorAs(t, err, &stuck)
	require.Equal(t, r.id, stuck.ProcID)
	require.Equal(t, "mule", stuck.Name)
	require.Equal(t, "HoldOn", stuck.Method)
	require.ErrorContains(t, err, "mule")
	require.NotErrorIs(t, err, supervisor.ErrTimeout, "it was not Shutdown's ctx that ended")
	var again *supervisor.StuckError
	require.ErrorAs(t, r.sup.Shutdown(r.ctx), &again, "the second Shutdown says the same")
	v.release(t, "at last")
}

func shutdownCtx(t *testing.T, k Kind) {
	r := startTwo(t, k)
	held, v := r.occupy(t, r.id)
	ctx, cancel := context.WithTimeout(r.ctx, 50*time.Millisecond)
	defer cancel()
	var err error
	testkit.Within(t, prompt, func() { err = r.sup.Shutdown(ctx) })
	require.ErrorIs(t, err, supervisor.ErrTimeout)
	var stuck *supervisor.StuckError
	require.ErrorAs(t, err, &stuck)
	require.Equal(t, r.id, stuck.ProcID)
	require.Equal(t, "Hold", stuck.Method)
	require.ErrorIs(t, r.recv(t, held).Err, supervisor.ErrClosed)
	v.gone(t)
}

func closeKills(t *testing.T, k Kind) {
	r := startTwo(t, k)
	held, v := r.occupy(t, r.id)
	var err error
	testkit.Within(t, prompt, func() { err = r.sup.Close() })
	require.NoError(t, err, "everything is gone")
	require.ErrorIs(t, r.recv(t, held).Err, supervisor.ErrClosed)
	v.gone(t)
	require.ErrorIs(t, r.sup.Send(r.ctx, supervisor.NewSendPayload(r.id, "Int", 1)), supervisor.ErrClosed)
}

func shutdownWakes(t *testing.T, k Kind) {
	r := start(t, k, supervisor.Limits{Queue: 1})
	_, v := r.occupy(t, r.id)
	woken := make(chan error, 2)
	task.Go(func(context.Context) {
		_, err := r.sup.Recv(r.ctx) // it may get the verdict of the occupier
		woken <- err
	})
	task.Go(func(context.Context) {
		woken <- r.sup.Send(r.ctx, supervisor.NewSendPayload(r.id, "Int", 1)) // waits for room
	})
	ctx, cancel := context.WithCancel(r.ctx)
	cancel()
	require.ErrorIs(t, r.sup.Shutdown(ctx), supervisor.ErrTimeout)
	for range cap(woken) {
		require.ErrorIs(t, testkit.Receive(t, woken, "somebody who waits"), supervisor.ErrClosed)
	}
	v.gone(t)
}
