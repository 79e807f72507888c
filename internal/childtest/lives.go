package childtest

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

var lifeRules = []rule{
	{"the ctx of StartLink is the children's life", contextIsLife},
	{"a ctx that has ended starts nothing", endedLife},
	{"Serve is StartLink and waiting for the end", serveWaits},
	{"Serve returns what keeps it from starting", serveFails},
	{"Serve can be called again", serveAgain},
}

func contextIsLife(t *testing.T, k Kind) {
	r := NewRig(t, k)
	r.ID = r.Register(t, r.Job())
	life, end := context.WithCancelCause(r.Ctx)
	require.NoError(t, r.Sup.StartLink(life))
	require.NoError(t, r.Sup.Err(), "Err while it runs")
	held, v := r.Occupy(t, r.ID)
	cause := errors.New("lights out")
	end(cause)
	v.Release(t, "within the grace")
	testkit.Closed(t, r.Sup.Done(), "Done")
	require.ErrorIs(t, r.Sup.Err(), cause)
	require.Equal(t, "within the grace", r.Recv(t, held).Data)
	require.ErrorIs(t, r.Sup.Send(r.Ctx, supervisor.NewSendPayload(r.ID, "Int", 1)), supervisor.ErrClosed)
	require.Equal(t, map[string]int{"close": 1}, r.Ledger.Counts(t))
	require.ErrorIs(t, r.Events.Wait(t, supervisor.EventShutdown).Err, cause)
	require.NoError(t, r.Sup.Shutdown(r.Ctx))
	r.StartLink(t)
	require.NoError(t, r.Sup.Err(), "Err of the new generation")
	r.Fine(t, r.ID)
}

func endedLife(t *testing.T, k Kind) {
	r := NewRig(t, k)
	r.ID = r.Register(t, r.Job())
	ctx, cancel := context.WithCancel(r.Ctx)
	cancel()
	require.ErrorIs(t, r.Sup.StartLink(ctx), supervisor.ErrCanceled)
	require.Empty(t, r.Events.All(), "events of a start that was none")
	r.StartLink(t)
	r.Fine(t, r.ID)
}

func serveWaits(t *testing.T, k Kind) {
	for _, row := range []struct {
		name string
		end  func(r *Rig, cancel context.CancelFunc) error
	}{
		{"ctx", func(_ *Rig, cancel context.CancelFunc) error { cancel(); return nil }},
		{"Shutdown", func(r *Rig, _ context.CancelFunc) error { return r.Sup.Shutdown(r.Ctx) }},
	} {
		r := NewRig(t, k)
		r.ID = r.Register(t, r.Job())
		ctx, cancel := context.WithCancel(r.Ctx)
		served := make(chan error, 1)
		task.Go(func(context.Context) { served <- r.Sup.Serve(ctx) })
		r.Events.Wait(t, supervisor.EventStarted)
		testkit.Until(t, "it runs", func() bool { return r.Sup.Snapshot().Running })
		r.Fine(t, r.ID)
		require.NoError(t, row.end(r, cancel), row.name)
		require.NoError(t, testkit.Receive(t, served, "Serve"), "Serve, ended by %s", row.name)
		require.Equal(t, map[string]int{"close": 1}, r.Ledger.Counts(t), row.name)
		cancel()
	}
}

func serveFails(t *testing.T, k Kind) {
	r := NewRig(t, k)
	job := r.Job()
	job.Mode = Fails
	r.Register(t, job)
	require.ErrorIs(t, r.Sup.Serve(r.Ctx), ErrSentinel)
}

func serveAgain(t *testing.T, k Kind) {
	r := NewRig(t, k)
	r.ID = r.Register(t, r.Job())
	for i := range 2 {
		ctx, cancel := context.WithCancel(r.Ctx)
		served := make(chan error, 1)
		task.Go(func(context.Context) { served <- r.Sup.Serve(ctx) })
		testkit.Until(t, "it runs", func() bool { return r.Sup.Snapshot().Running })
		require.Equal(t, 11, CallOf[int](t, r, r.ID, "Add", 1), "a fresh object, time %d", i)
		cancel()
		require.NoError(t, testkit.Receive(t, served, "Serve"), "time %d", i)
	}
}
