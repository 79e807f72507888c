package faulttest_test

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

// A worker is killed while Shutdown ends it: before, in the middle of it, or when it is gone already.
func TestX08DeathDuringShutdown(t *testing.T) {
	testkit.NoLeaks(t)
	rounds := times(12, 500)
	for round := range rounds {
		r := childtest.Start(t, childtest.Processes())
		reqs := []supervisor.SendPayload{r.Send(t, r.ID, "Int", 1), r.Send(t, r.ID, "Zeros", 1<<16), r.Send(t, r.ID, "Int", 3)}
		pid := r.Child(t, r.ID).Pid
		fd, err := unix.PidfdOpen(pid, 0) // so that nobody else can be hit
		require.NoError(t, err, "PidfdOpen")
		begin := make(chan struct{})
		kill := task.Go(func(context.Context) {
			<-begin
			for range round * 1997 % 24_000 { // now sooner, now later, up to the 10 ms that so many system calls take
				_ = os.Getppid()
			}
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // it may be gone
		})
		ended := make(chan error, 1)
		task.Go(func(context.Context) {
			<-begin
			ended <- r.Sup.Shutdown(r.Ctx)
		})
		close(begin)
		require.NoError(t, testkit.Receive(t, ended, "Shutdown"), "Shutdown in round %d", round)
		kill.Wait()
		require.NoError(t, unix.Close(fd), "Close")
		require.NotContains(t, testkit.Children(), pid, "processes")
		got, err := r.Sup.RecvAll(r.Ctx, reqs, supervisor.IgnoreErr())
		require.NoError(t, err, "RecvAll")
		for i, p := range got {
			if p.Err != nil {
				_ = childtest.CallErrorOf(t, p.Err, r.ID, reqs[i].Method)
			}
		}
		ends := 0
		for _, e := range r.Events.All() {
			switch e.Kind {
			case supervisor.EventStopped, supervisor.EventExited:
				ends++
				if e.Err != nil {
					var exit *supervisor.ExitError
					require.ErrorAs(t, e.Err, &exit, "how it ended")
					require.NotContains(t, e.Err.Error(), "no such process", "how it ended")
				}
			case supervisor.EventStuck, supervisor.EventStartFailed:
				t.Fatalf("round %d:\n%s", round, r.Events)
			case supervisor.EventShutdown:
				require.NoError(t, e.Err, "the end of the supervisor")
			}
		}
		require.LessOrEqual(t, ends, 2, "ends of lives: of the first, and of a next one that was just starting\n%s", r.Events)
		require.Equal(t, supervisor.StateIdle, r.Child(t, r.ID).State, "state of the child")
	}
}
