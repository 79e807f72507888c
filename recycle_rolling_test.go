package supervisor_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

// rolling starts a child whose factory waits at the gate in each life, and whose first life is due for recycling. Its
// successor is at the gate.
func rolling(t *testing.T, kind supervisor.ChildType) (r *childtest.Rig, first uint64, next *childtest.Visitor) {
	t.Helper()
	r = childtest.NewRig(t, kindOf(t, kind))
	job := r.Job()
	job.Mode = childtest.Hangs
	r.ID = r.Register(t, job, supervisor.Recycle{MaxRequests: 3, Rolling: true}, supervisor.WithStartTimeout(time.Minute))
	starting := task.Go(func(context.Context) { r.StartLink(t) })
	r.Gate.Next(t).Release(t, "go")
	starting.Wait()
	first = r.Child(t, r.ID).Incarnation
	for range 3 {
		r.Fine(t, r.ID)
	}
	return r, first, r.Gate.Next(t)
}

// lifeOf calls the child and returns which life has answered.
func lifeOf(t *testing.T, r *childtest.Rig) uint64 {
	t.Helper()
	got, err := r.Sup.Do(r.Ctx, supervisor.NewSendPayload(r.ID, "Text", "hello"))
	require.NoError(t, err, "Text")
	return got.Incarnation
}

func TestRollingWaitsForTheNextLife(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		r, first, next := rolling(t, kind)
		for range 20 {
			require.Equal(t, first, lifeOf(t, r), "the life that serves while the next one is not ready")
		}
		p, v := r.Occupy(t, r.ID)
		next.Release(t, "ready")
		v.Release(t, "done")
		require.Equal(t, first, r.Recv(t, p).Incarnation, "the life whose request was open at the change")
		require.Equal(t, first, r.Events.Wait(t, supervisor.EventRecycled).Incarnation, "the life that was recycled")
		require.Greater(t, lifeOf(t, r), first, "the life that serves now")
		require.Equal(t, map[string]int{"close": 1}, r.Ledger.Counts(t), "the first life has ended in order")
		require.NoError(t, r.Sup.Close(), "Close")
		require.NotContains(t, r.Events.Kinds(), supervisor.EventExited, "events:\n%s", r.Events)
	})
}

// What the next life's start needs is waited for: the life that Restart wants is that one.
func TestRestartWhileRolling(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		r, first, next := rolling(t, kind)
		restarting := task.Go(func(context.Context) { require.NoError(t, r.Sup.Restart(r.Ctx, r.ID), "Restart") })
		testkit.Until(t, "the old life is closed", func() bool { return r.Ledger.Counts(t)["close"] == 1 })
		next.Release(t, "ready")
		restarting.Wait()
		require.Greater(t, lifeOf(t, r), first, "the life that serves now")
		c := r.Child(t, r.ID)
		require.Equal(t, []int{0, 0}, []int{c.Restarts, c.Recycled}, "restarts by the policy, and lives recycled")
		require.Equal(t, first, r.Events.Wait(t, supervisor.EventStopped).Incarnation, "the life that was stopped")
	})
}

func TestShutdownWhileRolling(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		r, first, next := rolling(t, kind)
		err := r.Sup.Shutdown(r.Ctx)
		require.Equal(t, first, r.Events.Wait(t, supervisor.EventStopped).Incarnation, "the life that was stopped")
		require.Equal(t, 1, r.Ledger.Counts(t)["close"], "the old life has ended in order")
		if kind == supervisor.Process {
			require.NoError(t, err, "Shutdown: a process can always be ended")
		} else {
			var stuck *supervisor.StuckError
			require.ErrorAs(t, err, &stuck, "Shutdown while a factory heeds nothing")
			require.Equal(t, "Factory", stuck.Method, "what is stuck")
			require.Contains(t, stuck.Stack, "childtest.", "its stack")
			next.Release(t, "too late")
		}
		require.NotContains(t, r.Events.Kinds(), supervisor.EventRecycled, "events:\n%s", r.Events)
	})
}

// A next life that does not get ready is tried again after ten seconds, and the old one serves on.
func TestRollingStartFails(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		broken := 2
		o := &scripted{begin: func(_ context.Context, n int) error {
			if n > 1 && n <= 1+broken {
				return errDied
			}
			return nil
		}}
		sup, seen := withScripted(t, o, supervisor.Recycle{MaxRequests: 1, Rolling: true})
		old := o.last()
		answered := func() supervisor.RecvPayload {
			send(t, sup, supervisor.NewSendPayload(0, "Anything"))
			o.last().answer(t, 1)
			got, err := sup.Recv(t.Context())
			require.NoError(t, err, "Recv")
			return got
		}
		life := answered().Incarnation
		for n := 1; n <= broken; n++ {
			failed := seen.of(supervisor.EventStartFailed)
			require.Len(t, failed, n, "starts that failed")
			require.ErrorIs(t, failed[n-1].Err, errDied, "error of the event")
			require.Equal(t, life, answered().Incarnation, "the life that serves on")
			require.Zero(t, sup.Snapshot().Children[0].Recycled, "lives recycled")
			<-time.After(10*time.Second - 5*time.Millisecond)
			require.Equal(t, 1+n, o.starts(), "starts, just before it is tried again")
			<-time.After(6 * time.Millisecond)
		}
		require.Len(t, seen.of(supervisor.EventRecycled), 1, "lives recycled")
		require.Equal(t, 1, old.stops, "Stops of the old life")
		require.Greater(t, answered().Incarnation, life, "the life that serves now")
		require.Zero(t, sup.Snapshot().Children[0].Restarts, "restarts by the policy")
	})
}
