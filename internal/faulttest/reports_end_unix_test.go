//go:build linux || darwin

package faulttest_test

// Public bug reports about pipes at the end of workers.

import (
	"context"
	"os/signal"
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
	// It closes its pipe at the stop message and lives on, whatever it is told.
	rawPart("close and stay", func(w *rawWorker) {
		signal.Ignore(syscall.SIGTERM)
		w.ready()
		for {
			if h, _, err := w.in.Next(); err != nil || h.Kind == wire.KindStop {
				_ = w.out.Close() // the host sees it
				<-make(chan int)
			}
		}
	})
	// It exits at the stop message without having said anything.
	rawPart("just exit", func(w *rawWorker) {
		w.ready()
		w.park()
	})
	// It exits while nobody asks anything of it.
	rawPart("exit at once", func(w *rawWorker) { w.ready() })
}

// Each child has pipes of its own: whatever ends one in the middle of a reply, the others' replies come.
func TestC70DeathWhileReplying(t *testing.T) {
	testkit.NoLeaks(t)
	const children, size = 4, 1 << 20
	r := childtest.NewRig(t, childtest.Processes())
	for range children {
		r.Register(t, r.Job())
	}
	r.StartLink(t)
	var law testkit.Law
	ctx, stop := context.WithCancel(context.Background())
	var callers []*task.Task
	slowest := make([]time.Duration, children)
	for id := range children {
		callers = append(callers, task.Go(func(context.Context) {
			for ctx.Err() == nil {
				p := supervisor.NewSendPayload(id, "Zeros", size)
				law.Accept(p.ReqID)
				began := time.Now()
				got, err := r.Sup.Do(context.Background(), p)
				law.Verdict(p.ReqID, childtest.OutcomeOf(err))
				if slowest[id] = max(slowest[id], time.Since(began)); err != nil {
					continue // it may be between two lives, or given up
				}
				if text, ok := got.Data.(string); !ok || len(text) != size {
					t.Errorf("child %d: a reply of %d bytes", id, len(text))
				}
			}
		}))
	}
	for round := range times(4, 500) { // no more than a child's restarts allow, in the short form
		id := round % children
		testkit.Until(t, "the child is up", func() bool { return r.Child(t, id).State == supervisor.StateUp })
		if soak {
			require.NoError(t, r.Sup.Restart(r.Ctx, id), "Restart, which begins the count anew")
		}
		sig := []syscall.Signal{syscall.SIGKILL, syscall.SIGABRT}[round/children%2]
		life := r.Child(t, id)
		_ = syscall.Kill(life.Pid, sig) // it is ours until its end is reported
		r.Events.WaitFor(t, "end of the life", func(e supervisor.Event) bool {
			return e.Kind == supervisor.EventExited && e.Incarnation == life.Incarnation
		})
	}
	stop()
	for _, c := range callers {
		c.Wait()
	}
	law.Check(t, nil)
	for id, d := range slowest {
		require.Less(t, d, 3*time.Second*testkit.Slowdown, "slowest call of child %d", id)
		r.Fine(t, id)
	}
}

func TestC77WorkerLeavesWithoutAWord(t *testing.T) {
	const grace, termGrace = 100 * time.Millisecond, 100 * time.Millisecond
	for _, tt := range []struct {
		part  string
		least time.Duration
		gone  bool // before Shutdown
	}{
		{part: "just exit"},
		{part: "close and stay", least: grace + termGrace},
		{part: "exit at once", gone: true},
	} {
		t.Run(tt.part, func(t *testing.T) {
			testkit.NoLeaks(t)
			seen := testkit.NewRecorder(func(e supervisor.Event) supervisor.EventKind { return e.Kind })
			sup := newSupervisor(t, supervisor.Process, supervisor.WithEvents(seen.Record))
			register(t, sup, newRaw.With(0), rawProgram(t, tt.part),
				supervisor.Restart{Type: supervisor.Temporary}, supervisor.Stop{Grace: grace, TermGrace: termGrace})
			require.NoError(t, sup.StartLink(context.Background()), "StartLink")
			if tt.gone {
				seen.Wait(t, supervisor.EventDone)
			}
			began := time.Now()
			require.NoError(t, sup.Shutdown(context.Background()), "Shutdown")
			shutdownTook(t, time.Since(began), tt.least)
		})
	}
}
