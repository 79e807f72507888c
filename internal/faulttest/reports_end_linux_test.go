package faulttest_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
	"github.com/workerlink/supervisor/internal/wire"
)

func init() {
	// It reads nothing after its greeting, and exits in order with a full pipe when the gate lets it go.
	rawPart("leave unread", func(w *rawWorker) {
		table := []wire.MethodDesc{{Name: "Take", In: []string{"[]uint8"}, Out: "int"}}
		w.write(wire.AppendFrame(nil, wire.Header{Kind: wire.KindReady}, wire.Ready{Version: wire.Version, Methods: table}.Append(nil)))
		if _, err := childtest.WaitAt(context.Background(), w.args[0], "leave unread"); err != nil {
			os.Exit(1)
		}
		pace := time.NewTicker(time.Millisecond)
		for n := 0; n < 32<<10; <-pace.C {
			var err error
			if n, err = unix.IoctlGetInt(3, unix.TIOCINQ); err != nil {
				os.Exit(1)
			}
		}
	})
}

func TestC58ExitWithUnreadInput(t *testing.T) {
	testkit.NoLeaks(t)
	const each, many = 64 << 10, 64 // bytes, requests: several times what a pipe holds
	seen := testkit.NewRecorder(func(e supervisor.Event) supervisor.EventKind { return e.Kind })
	sup := newSupervisor(t, supervisor.Process, supervisor.WithEvents(seen.Record))
	gate := childtest.NewGate(t)
	id := register(t, sup, newRaw.With(0), rawProgram(t, "leave unread", gate.Address), supervisor.Restart{Type: supervisor.Temporary})
	require.NoError(t, sup.StartLink(context.Background()), "StartLink")
	var reqs []supervisor.SendPayload
	for range many {
		reqs = append(reqs, supervisor.NewSendPayload(id, "Take", make([]byte, each)))
	}
	testkit.Within(t, shutdownSlack, func() { send(t, sup, reqs...) }) // no sender waits for the pipe
	gate.Next(t).Release(t, "")
	got, err := sup.RecvAll(testkit.Context(t), reqs, supervisor.IgnoreErr())
	require.NoError(t, err, "RecvAll")
	unexecuted := 0
	for i, p := range got {
		var exit *supervisor.ExitError
		require.ErrorAs(t, p.Err, &exit, "verdict of request %d", i)
		require.Equal(t, 0, exit.Code, "exit code: a clean one is a death when requests are open")
		if childtest.CallErrorOf(t, p.Err, id, "Take").Unexecuted {
			unexecuted++
		} else {
			require.Zero(t, unexecuted, "request %d may have been executed, and one before it not", i)
		}
	}
	require.Positive(t, unexecuted, "requests of which nothing left the host")
	require.Less(t, unexecuted, many, "requests of which something did")
	require.Equal(t, 0, seen.Wait(t, supervisor.EventExited).ProcID, "the event of the end")
	testkit.Within(t, shutdownSlack, func() { shutdown(t, sup) })
}
