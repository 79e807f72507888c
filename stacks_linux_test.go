package supervisor_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

// The stacks of all handlers of a life that hangs come from one dump, however many there are: each stops the whole program.
func TestStacksOfManyHandlers(t *testing.T) {
	const handlers, idle = 300, 3000
	testkit.NoLeaks(t)
	r := startSickly(t, supervisor.Goroutine, supervisor.WithConcurrency(handlers+1), supervisor.Stop{TermGrace: testkit.Limit})
	var held []supervisor.SendPayload
	for n := range handlers {
		held = append(held, r.Send(t, r.ID, "Heed", fmt.Sprint("n", n)))
	}
	for range handlers {
		r.Gate.Next(t)
	}
	over := make(chan struct{})
	var bystanders []*task.Task // which make a dump long
	for range idle {
		bystanders = append(bystanders, task.Go(func(context.Context) { <-over }))
	}
	began := time.Now()
	testkit.Stacks()
	dump := time.Since(began)

	p := leashed(r.ID, 100*time.Millisecond, "Lock", "the one")
	began = time.Now()
	require.NoError(t, r.Sup.Send(r.Ctx, p), "Send")
	v := r.Gate.Next(t)
	hung := r.Events.Wait(t, supervisor.EventHung)
	require.Less(t, time.Since(began), p.KillAfter+time.Second+handlers/4*dump, "time to the event, when one dump takes %v", dump)
	v.Release(t, "go")
	var exit *supervisor.ExitError
	require.ErrorAs(t, r.Recv(t, p).Err, &exit, "verdict of the handler that hung")
	require.Equal(t, exit.Trace, hung.Text, "stacks in the error, and in the event")
	found := strings.Split(exit.Trace, "\n\n")
	require.Len(t, found, handlers+1, "stacks")
	require.Equal(t, handlers, strings.Count(exit.Trace, "(*sickly).Heed("), "stacks of the handlers that ran beside it")
	require.Equal(t, 1, strings.Count(exit.Trace, "(*sickly).Lock("), "stacks of the handler that hung")
	_, err := r.Sup.RecvAll(r.Ctx, held, supervisor.IgnoreErr())
	require.NoError(t, err, "RecvAll")
	close(over)
	for _, b := range bystanders {
		b.Wait()
	}
	shutdown(t, r.Sup)
}

// crowded is an object in a crowd.
type crowded struct{ spun uint64 }

var newCrowded = supervisor.Define("supervisor_test.crowded", func(context.Context) (*crowded, error) { return &crowded{}, nil })

// Crowd starts so many goroutines that do nothing.
func (*crowded) Crowd(n int) {
	for range n {
		task.Go(func(ctx context.Context) { <-ctx.Done() })
	}
}

// Block waits for the end of its context.
func (*crowded) Block(ctx context.Context) { <-ctx.Done() }

// Spin is at work for ever, and lets nobody else run on its processor.
func (c *crowded) Spin() {
	for {
		c.spun++
	}
}

// crowdedRig is a supervisor of one crowded worker, whose lives hang one after the other.
type crowdedRig struct {
	sup  *supervisor.Supervisor
	seen *testkit.Recorder[supervisor.Event, supervisor.EventKind]
}

func withCrowded(t *testing.T, opts ...supervisor.ChildOption) *crowdedRig {
	t.Helper()
	testkit.NoLeaks(t)
	r := &crowdedRig{seen: newRecorder()}
	r.sup = newSupervisor(t, supervisor.Process, supervisor.WithEvents(r.seen.Record))
	opts = append([]supervisor.ChildOption{
		supervisor.Stop{TermGrace: testkit.Limit},
		supervisor.Restart{Max: 1000, Backoff: supervisor.Backoff{Min: time.Millisecond, Max: time.Millisecond}},
	}, opts...)
	register(t, r.sup, newCrowded, opts...)
	require.NoError(t, r.sup.StartLink(context.Background()), "StartLink")
	return r
}

// hang has the present life hang, and returns how it ended, and what was said of it before.
func (r *crowdedRig) hang(ctx context.Context, t *testing.T, method string) (exit *supervisor.ExitError, hung supervisor.Event) {
	t.Helper()
	_, err := r.sup.Do(ctx, leashed(0, 100*time.Millisecond, method))
	require.ErrorAs(t, err, &exit, "verdict of the handler that hung")
	hung = r.seen.Wait(t, supervisor.EventHung)
	require.ErrorContains(t, hung.Err, method+" ran for longer", "error of the event")
	exited := r.seen.Wait(t, supervisor.EventExited)
	require.Equal(t, hung.Incarnation, exited.Incarnation, "the life that hung, and the one that ended")
	require.False(t, exited.Time.Before(hung.Time), "the end comes after its announcement:\n%s", r.seen)
	return exit, hung
}

// The stacks of a worker are cut at their end, so those of its handlers come first.
func TestStacksOfACrowdedWorker(t *testing.T) {
	r := withCrowded(t, supervisor.Stop{TermGrace: time.Second})
	ctx := testkit.Context(t)
	for {
		_, err := supervisor.Call[any](ctx, r.sup, 0, "Crowd", 3000)
		require.NoError(t, err, "Call of Crowd")
		exit, _ := r.hang(ctx, t, "Block")
		if exit.Trace == "" || strings.Contains(exit.Trace, "SIGQUIT") {
			continue // a busy machine did not leave it the time to answer
		}
		first, _, _ := strings.Cut(exit.Trace, "\n\n")
		require.Contains(t, first, "(*crowded).Block", "the first stack")
		require.Contains(t, exit.Trace, "(*crowded).Crowd", "stacks in the error")
		break
	}
	shutdown(t, r.sup)
}

// A worker that only its runtime answers for, by SIGQUIT, is reported with what that says, and before it is gone.
func TestStacksBySignal(t *testing.T) {
	r := withCrowded(t, supervisor.Share{CPU: 1}, supervisor.Proc{Env: []string{"GODEBUG=asyncpreemptoff=1", "TESTKIT_TRACES="}})
	ctx := testkit.Context(t)
	for {
		exit, hung := r.hang(ctx, t, "Spin")
		require.Contains(t, exit.Trace, "SIGQUIT", "stacks in the error")
		require.Contains(t, exit.Trace, "goroutine ", "stacks in the error")
		if hung.Text == exit.Trace {
			break // else a busy machine did not leave the runtime the time to say all
		}
	}
	shutdown(t, r.sup)
}
