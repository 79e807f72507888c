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
	r := Start(t, k)
	held, v := r.Occupy(t, r.ID)
	var reqs []supervisor.SendPayload
	for range 20 {
		reqs = append(reqs, r.Send(t, r.ID, "Add", 1))
	}
	done := make(chan error, 1)
	task.Go(func(context.Context) { done <- r.Sup.Shutdown(r.Ctx) })
	testkit.Until(t, "the supervisor takes no more", func() bool { return !r.Sup.Snapshot().Running })
	require.ErrorIs(t, r.Sup.Send(r.Ctx, supervisor.NewSendPayload(r.ID, "Add", 1)), supervisor.ErrClosed, "Send while it stops")
	v.Release(t, "last")
	require.NoError(t, testkit.Receive(t, done, "Shutdown"))
	replies, err := r.Sup.RecvAll(r.Ctx, append(reqs, held))
	require.NoError(t, err)
	for i, p := range replies[:20] {
		require.Equal(t, 11+i, p.Data, "reply %d", i)
	}
	require.Equal(t, "last", replies[20].Data)
	_, err = r.Sup.Recv(r.Ctx)
	require.ErrorIs(t, err, supervisor.ErrClosed, "when nothing is left")
	require.Equal(t, map[string]int{"close": 1}, r.Ledger.Counts(t))
	require.NoError(t, r.Sup.Err(), "an orderly end has no cause")
}

func shutdownByMany(t *testing.T, k Kind) {
	r := StartTwo(t, k)
	results := make(chan error, 32)
	for range cap(results) {
		task.Go(func(context.Context) { results <- r.Sup.Shutdown(r.Ctx) })
	}
	for range cap(results) {
		require.NoError(t, testkit.Receive(t, results, "Shutdown"))
	}
	testkit.Closed(t, r.Sup.Done(), "Done")
	require.NoError(t, r.Sup.Shutdown(r.Ctx), "once more")
	require.NoError(t, r.Sup.Close(), "Close after it")
	require.Equal(t, map[string]int{"close": 2}, r.Ledger.Counts(t), "each object is closed once")
}

func shutdownEarly(t *testing.T, k Kind) {
	r := NewRig(t, k)
	r.ID = r.Register(t, r.Job())
	require.NoError(t, r.Sup.Shutdown(r.Ctx))
	testkit.Closed(t, r.Sup.Done(), "Done")
	require.ErrorIs(t, r.Sup.Send(r.Ctx, supervisor.NewSendPayload(r.ID, "Int", 1)), supervisor.ErrClosed)
	r.StartLink(t)
	r.Fine(t, r.ID)
}

func shutdownAndStart(t *testing.T, k Kind) {
	r := Start(t, k)
	var lives []uint64
	for range 3 {
		require.Equal(t, 15, CallOf[int](t, r, r.ID, "Add", 5), "a fresh object")
		lives = append(lives, r.Child(t, r.ID).Incarnation)
		unclaimed := r.Send(t, r.ID, "Int", 1)
		done := r.Sup.Done()
		require.NoError(t, r.Sup.Shutdown(r.Ctx))
		testkit.Closed(t, done, "Done of the old generation")
		added := r.Register(t, r.Job()) // between two generations
		r.StartLink(t)
		select {
		case <-r.Sup.Done():
			t.Fatal("Done of the new generation is closed")
		default:
		}
		r.Fine(t, added)
		_, err := r.Sup.RecvAll(r.Ctx, []supervisor.SendPayload{unclaimed})
		require.ErrorIs(t, err, supervisor.ErrNoSuchRequest, "a request of the old generation")
	}
	require.IsIncreasing(t, lives, "lives never repeat")
}

func shutdownGrace(t *testing.T, k Kind) {
	stop := supervisor.Stop{Grace: 50 * time.Millisecond, TermGrace: testkit.Limit}
	if !k.Can.Specs {
		stop.TermGrace = 50 * time.Millisecond // a Link is told the sum of the two alone
	}
	r := Start(t, k, stop)
	held, v := r.Occupy(t, r.ID)
	queued := r.Send(t, r.ID, "Enter", "executed")
	began := time.Now()
	require.NoError(t, r.Sup.Shutdown(r.Ctx))
	require.Less(t, time.Since(began), prompt*testkit.Slowdown, "time of Shutdown")
	v.Gone(t)
	require.Error(t, r.Recv(t, held).Err)
	require.ErrorIs(t, r.Recv(t, queued).Err, supervisor.ErrClosed)
	require.Equal(t, map[string]int{"close": 1}, r.Ledger.Counts(t), "Close runs, and what was queued does not")
}

func shutdownStuck(t *testing.T, k Kind) {
	r := Start(t, k, supervisor.Stop{Grace: 50 * time.Millisecond, TermGrace: 50 * time.Millisecond}, supervisor.WithName("mule"))
	p := r.Send(t, r.ID, "HoldOn", "forever")
	v := r.Gate.Next(t)
	var err error
	testkit.Within(t, prompt, func() { err = r.Sup.Shutdown(r.Ctx) })
	require.ErrorIs(t, r.Recv(t, p).Err, supervisor.ErrClosed)
	if k.Can.Process {
		require.NoError(t, err, "a process can always be ended")
		v.Gone(t)
		return
	}
	var stuck *supervisor.StuckError
	require.ErrorAs(t, err, &stuck)
	require.Equal(t, r.ID, stuck.ProcID)
	require.Equal(t, "mule", stuck.Name)
	require.Equal(t, "HoldOn", stuck.Method)
	require.ErrorContains(t, err, "mule")
	require.NotErrorIs(t, err, supervisor.ErrTimeout, "it was not Shutdown's ctx that ended")
	var again *supervisor.StuckError
	require.ErrorAs(t, r.Sup.Shutdown(r.Ctx), &again, "the second Shutdown says the same")
	v.Release(t, "at last")
}

func shutdownCtx(t *testing.T, k Kind) {
	r := StartTwo(t, k)
	held, v := r.Occupy(t, r.ID)
	ctx, cancel := context.WithTimeout(r.Ctx, 50*time.Millisecond)
	defer cancel()
	var err error
	testkit.Within(t, prompt, func() { err = r.Sup.Shutdown(ctx) })
	require.ErrorIs(t, err, supervisor.ErrTimeout)
	var stuck *supervisor.StuckError
	require.ErrorAs(t, err, &stuck)
	require.Equal(t, r.ID, stuck.ProcID)
	require.Equal(t, "Hold", stuck.Method)
	require.ErrorIs(t, r.Recv(t, held).Err, supervisor.ErrClosed)
	v.Gone(t)
}

func closeKills(t *testing.T, k Kind) {
	r := StartTwo(t, k)
	held, v := r.Occupy(t, r.ID)
	var err error
	testkit.Within(t, prompt, func() { err = r.Sup.Close() })
	require.NoError(t, err, "everything is gone")
	require.ErrorIs(t, r.Recv(t, held).Err, supervisor.ErrClosed)
	v.Gone(t)
	require.ErrorIs(t, r.Sup.Send(r.Ctx, supervisor.NewSendPayload(r.ID, "Int", 1)), supervisor.ErrClosed)
}

func shutdownWakes(t *testing.T, k Kind) {
	r := Start(t, k, supervisor.Limits{Queue: 1})
	_, v := r.Occupy(t, r.ID)
	woken := make(chan error, 2)
	task.Go(func(context.Context) {
		_, err := r.Sup.Recv(r.Ctx) // it may get the verdict of the occupier
		woken <- err
	})
	task.Go(func(context.Context) {
		woken <- r.Sup.Send(r.Ctx, supervisor.NewSendPayload(r.ID, "Int", 1)) // waits for room
	})
	ctx, cancel := context.WithCancel(r.Ctx)
	cancel()
	require.ErrorIs(t, r.Sup.Shutdown(ctx), supervisor.ErrTimeout)
	for range cap(woken) {
		require.ErrorIs(t, testkit.Receive(t, woken, "somebody who waits"), supervisor.ErrClosed)
	}
	v.Gone(t)
}
