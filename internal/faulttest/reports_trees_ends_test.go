package faulttest_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// sulker ends in a way of its own when it is told to stop.
type sulker struct{ process bool }

var errSulker = errors.New("faulttest: not like this")

func init() { supervisor.RegisterError("faulttest.errSulker", errSulker) }

var newSulker = supervisor.DefineWith("faulttest.sulker", func(_ context.Context, process bool) (sulker, error) {
	return sulker{process}, nil
})

// Close ends the process, or fails.
func (s sulker) Close() error {
	if s.process {
		os.Exit(5)
	}
	return errSulker
}

// A child that ends by itself while it is being stopped: what is reported is how it did.
func TestC109EndOfItsOwnWhileStopped(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		rec := testkit.NewRecorder(func(e supervisor.Event) supervisor.EventKind { return e.Kind })
		sup := newSupervisor(t, k.Type, supervisor.WithEvents(rec.Record))
		register(t, sup, newSulker.With(k.Can.Process))
		require.NoError(t, sup.StartLink(context.Background()), "StartLink")
		shutdown(t, sup)
		end := rec.Wait(t, supervisor.EventStopped)
		if k.Can.Process {
			var exit *supervisor.ExitError
			require.ErrorAs(t, end.Err, &exit, "how it ended")
			require.Equal(t, []any{5, 0, ""}, []any{exit.Code, int(exit.Signal), exit.KilledBy}, "code, signal, and who killed it")
		} else {
			require.ErrorIs(t, end.Err, errSulker, "how it ended")
			require.ErrorContains(t, end.Err, "Close", "how it ended")
		}
		require.Contains(t, sup.Snapshot().Children[0].LastExit, map[bool]string{true: "code 5", false: errSulker.Error()}[k.Can.Process],
			"the last exit in the snapshot")
		require.NotContains(t, rec.Kinds(), supervisor.EventExited, "events")
	})
}
