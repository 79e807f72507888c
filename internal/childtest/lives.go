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
	r := newRig(t, k)
	r.id = r.register(t, r.job())
	life, end := context.WithCancelCause(r.ctx)
	require.NoError(t, r.sup.StartLink(life))
	require.NoError(t, r.sup.Err(), "Err while it runs")
	held, v := r.occupy(t, r.id)
	cause := errors.New("lights out")
	end(cause)
	v.release(t, "within the grace")
	testkit.Closed(t, r.sup.Done(), "Done")
	require.ErrorIs(t, r.sup.Err(), cause)
	require.Equal(t, "within the grace", r.recv(t, held).Data)
	require.ErrorIs(t, r.sup.Send(r.ctx, supervisor.NewSendPayload(r.id, "Int", 1)), supervisor.ErrClosed)
	require.Equal(t, map[string]int{"close": 1}, r.ledger.Counts(t))
	require.ErrorIs(t, r.events.Wait(t, supervisor.EventShutdown).Err, cause)
	require.NoError(t, r.sup.Shutdown(r.ctx))
	r.startLink(t)
	require.NoError(t, r.sup.Err(), "Err of the new generation")
	r.fine(t, r.id)
}

func endedLife(t *testing.T, k Kind) {
	r := newRig(t, k)
	r.id = r.register(t, r.job())
	ctx, cancel := context.WithCancel(r.ctx)
	cancel()
	require.ErrorIs(t, r.sup.StartLink(ctx), supervisor.ErrCanceled)
	require.Empty(t, r.events.All(), "events of a start that was none")
	r.startLink(t)
	r.fine(t, r.id)
}

func serveWaits(t *testing.T, k Kind) {
	for _, row := range []struct {
		name string
		end  func(r *rig, cancel context.CancelFunc) error
	}{
		{"ctx", func(_ *rig, cancel context.CancelFunc) error { cancel(); return nil }},
		{"Shutdown", func(r *rig, _ context.CancelFunc) error { return r.sup.Shutdown(r.ctx) }},
	} {
		r := newRig(t, k)
		r.id = r.register(t, r.job())
		ctx, cancel := context.WithCancel(r.ctx)
		served := make(chan error, 1)
		task.Go(func(context.Context) { served <- r.sup.Serve(ctx) })
		r.events.Wait(t, supervisor.EventStarted)
		testkit.Until(t, "it runs", func() bool { return r.sup.Snapshot().Running })
		r.fine(t, r.id)
		require.NoError(t, row.end(r, cancel), row.name)
		require.NoError(t, testkit.Receive(t, served, "Serve"), "Serve, ended by %s", row.name)
		require.Equal(t, map[string]int{"close": 1}, r.ledger.Counts(t), row.name)
		cancel()
	}
}

func serveFails(t *testing.T, k Kind) {
	r := newRig(t, k)
	job := r.job()
	job.Mode = Fails
	r.register(t, job)
	require.ErrorIs(t, r.sup.Serve(r.ctx), ErrSentinel)
}

func serveAgain(t *testing.T, k Kind) {
	r := newRig(t, k)
	r.id = r.register(t, r.job())
	for i := range 2 {
		ctx, cancel := context.WithCancel(r.ctx)
		served := make(chan error, 1)
		task.Go(func(context.Context) { served <- r.sup.Serve(ctx) })
		testkit.Until(t, "it runs", func() bool { return r.sup.Snapshot().Running })
		require.Equal(t, 11, call[int](t, r, r.id, "Add", 1), "a fresh object, time %d", i)
		cancel()
		require.NoError(t, testkit.Receive(t, served, "Serve"), "time %d", i)
	}
}
