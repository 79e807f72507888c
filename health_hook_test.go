package supervisor_test

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

// Health may take as long as anybody waits for it: then its context ends.
func TestHealthHasALimit(t *testing.T) {
	for name, tt := range map[string]struct {
		opts  []supervisor.ChildOption
		limit time.Duration
	}{
		"alone":              {nil, time.Second},
		"with Liveness":      {[]supervisor.ChildOption{supervisor.Liveness{Every: time.Hour, Timeout: 7 * time.Second}}, 7 * time.Second},
		"with less Liveness": {[]supervisor.ChildOption{supervisor.Liveness{Every: time.Hour, Timeout: time.Millisecond}}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				took, causes := make(chan time.Duration, 1), make(chan error, 1)
				p := &patient{word: func(ctx context.Context) error {
					began := time.Now()
					<-ctx.Done()
					took <- time.Since(began)
					causes <- context.Cause(ctx)
					return nil
				}}
				sup := newSupervisor(t, supervisor.Goroutine)
				register(t, sup, supervisor.Object(p), tt.opts...)
				require.NoError(t, sup.StartLink(context.Background()), "StartLink")
				_ = sup.Healthy() // the answer and the end of its patience come at the same time
				require.Equal(t, tt.limit, <-took, "time of Health")
				require.ErrorIs(t, <-causes, supervisor.ErrTimeout, "why its context ended")
				shutdown(t, sup)
			})
		})
	}
}

// One call of Health at a time answers all that have asked meanwhile, and none is under way once Close begins.
func TestHealthIsCalledOnceAtATime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var running, most atomic.Int64
		p := &patient{word: func(ctx context.Context) error {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			select {
			case <-ctx.Done():
			case <-time.After(900 * time.Millisecond):
			}
			return nil
		}}
		sup := newSupervisor(t, supervisor.Goroutine)
		register(t, sup, supervisor.Object(p), supervisor.Liveness{Every: time.Millisecond})
		require.NoError(t, sup.StartLink(context.Background()), "StartLink")
		<-time.After(100 * time.Millisecond)
		began := time.Now()
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() { require.NoError(t, sup.Healthy(), "Healthy") })
		}
		all.Wait()
		require.LessOrEqual(t, time.Since(began), 900*time.Millisecond, "time of Healthy")
		<-time.After(10 * time.Second)
		require.EqualValues(t, 1, most.Load(), "calls at the same time")
		require.LessOrEqual(t, len(p.questions()), 13, "calls in eleven seconds")
		began = time.Now()
		shutdown(t, sup)
		require.Zero(t, time.Since(began), "time of Shutdown: the context of Health ends with the life")
		synctest.Wait()
		require.Zero(t, running.Load(), "calls that run on")
		asked := len(p.questions())
		_ = sup.Healthy()
		<-time.After(time.Hour)
		require.Len(t, p.questions(), asked, "calls after the end")
	})
}

// A Health that does not heed its context is what a life is stuck in that cannot be ended otherwise.
func TestStuckInHealth(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		over := make(chan struct{})
		letGo := sync.OnceFunc(func() { close(over) })
		defer letGo()
		p := &patient{word: func(context.Context) error { <-over; return nil }}
		sup := newSupervisor(t, supervisor.Goroutine)
		register(t, sup, supervisor.Object(p), supervisor.WithName("deaf"), supervisor.Stop{Grace: time.Second, TermGrace: time.Second})
		require.NoError(t, sup.StartLink(context.Background()), "StartLink")
		require.ErrorIs(t, sup.Healthy(), supervisor.ErrTimeout, "Healthy")
		var stuck *supervisor.StuckError
		require.ErrorAs(t, sup.Shutdown(context.Background()), &stuck, "Shutdown")
		require.Equal(t, []any{0, "deaf", "Health"}, []any{stuck.ProcID, stuck.Name, stuck.Method}, "what is stuck")
		require.Contains(t, stuck.Stack, "(*patient).Health", "its stack")
		letGo()
		synctest.Wait()
		require.Zero(t, sup.Snapshot().Children[0].Stuck, "lives that are stuck once it has returned")
	})
}

// A life that is stuck in its Close says where.
func TestStuckInClose(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCloser()
		c.hold = make(chan struct{})
		defer close(c.hold)
		sup, seen := withCloser(t, c, supervisor.Stop{Grace: time.Second, TermGrace: time.Second})
		var stuck *supervisor.StuckError
		require.ErrorAs(t, sup.Shutdown(context.Background()), &stuck, "Shutdown")
		require.Equal(t, "Close", stuck.Method, "what is stuck")
		require.Contains(t, stuck.Stack, "(*closer).Close", "its stack")
		found := seen.of(supervisor.EventStuck)
		require.Len(t, found, 1, "events of being stuck")
		require.Equal(t, stuck, found[0].Err, "error of the event")
	})
}

// delicate is an object whose first life is asked at the gate how it is.
type delicate struct{ gate string }

// delicateJob says where; the ledger tells which life is the first.
type delicateJob struct{ Gate, Ledger string }

var newDelicate = supervisor.DefineWith("supervisor_test.delicate", func(_ context.Context, job delicateJob) (*delicate, error) {
	switch seen, err := os.ReadFile(job.Ledger); {
	case err != nil:
		return nil, err
	case len(seen) > 0:
		return &delicate{}, nil
	}
	return &delicate{job.Gate}, testkit.Ledger{Path: job.Ledger}.Enter("made")
})

// Health waits at the gate, or until its context ends, if there is one.
func (d *delicate) Health(ctx context.Context) error {
	if d.gate == "" {
		return nil
	}
	_, err := childtest.WaitAt(ctx, d.gate, "health")
	return err
}

// Break is the last thing that the object does.
func (d *delicate) Break() error { return supervisor.Fatal(errBrittle) }

// Both kinds: one call at a time, and its context ends with the life at the latest.
func TestHealthOfEachKind(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		gate := childtest.NewGate(t)
		sup := started(t, kind, newDelicate.With(delicateJob{gate.Address, testkit.NewLedger(t).Path}))
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { require.Error(t, sup.Healthy(), "Healthy") })
		}
		first := gate.Next(t)
		require.Contains(t, first.Left(t), "timeout", "why the context of the first call ended")
		all.Wait()
		over := make(chan struct{})
		asking := task.Go(func(context.Context) { // the first question may still be answered by the first call, on its way out
			for {
				_ = sup.Healthy()
				select {
				case <-over:
					return
				case <-time.After(time.Millisecond):
				}
			}
		})
		second := gate.Next(t)
		close(over)
		shutdown(t, sup)
		second.Gone(t)
		asking.Wait()
		gate.Empty(t, "one call at a time, and none after Shutdown")
	})
}

// Who asks for a life that ends meanwhile gets the word of the next one, not that of the silence.
func TestHealthyAcrossACrash(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		gate := childtest.NewGate(t)
		sup := newSupervisor(t, kind)
		register(t, sup, newDelicate.With(delicateJob{gate.Address, testkit.NewLedger(t).Path}), supervisor.Liveness{Every: time.Hour, Timeout: testkit.Limit})
		require.NoError(t, sup.StartLink(context.Background()), "StartLink")
		var err error
		asking := task.Go(func(context.Context) { err = sup.Healthy() })
		gate.Next(t)
		_, broken := supervisor.Call[any](testkit.Context(t), sup, 0, "Break")
		require.ErrorIs(t, broken, errBrittle, "Call of Break")
		asking.Wait()
		require.NoError(t, err, "Healthy")
		shutdown(t, sup)
	})
}

// A child that comes back each time is well all the time.
func TestHealthyInACrashLoop(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		sup := newSupervisor(t, kind)
		register(t, sup, newDelicate.With(delicateJob{Ledger: testkit.NewLedger(t).Path}),
			supervisor.Restart{Max: 1000, Backoff: supervisor.Backoff{Min: time.Millisecond, Max: 5 * time.Millisecond}})
		require.NoError(t, sup.StartLink(context.Background()), "StartLink")
		over := make(chan struct{})
		var asking sync.WaitGroup
		for range 2 {
			asking.Go(func() {
				for {
					select {
					case <-over:
						return
					case <-time.After(time.Millisecond):
						require.NoError(t, sup.Healthy(), "Healthy")
					}
				}
			})
		}
		for range 10 {
			_, err := supervisor.Call[any](testkit.Context(t), sup, 0, "Break")
			require.Error(t, err, "Call of Break")
		}
		close(over)
		asking.Wait()
		shutdown(t, sup)
	})
}

// mayfly is a process that exits when the gate lets it.
type mayfly struct{ gate string }

var newMayfly = supervisor.DefineWith("supervisor_test.mayfly", func(_ context.Context, gate string) (*mayfly, error) {
	return &mayfly{gate}, nil
})

// Serve is the loop.
func (l *mayfly) Serve(ctx context.Context) error {
	if _, err := childtest.WaitAt(ctx, l.gate, "serve"); err != nil {
		return err
	}
	os.Exit(0)
	return nil
}

// Note does nothing.
func (*mayfly) Note() {}

// A child that is done is well; what becomes of requests to it is no crash.
func TestChildThatIsDone(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		specs := map[string]func(gate string) supervisor.Spec{
			"Serve returned nil": func(gate string) supervisor.Spec { return newServer.With(serverJob{How: "nil", Gate: gate}) },
		}
		if kind == supervisor.Process {
			specs["exit 0"] = func(gate string) supervisor.Spec { return newMayfly.With(gate) }
		}
		for name, spec := range specs {
			t.Run(name, func(t *testing.T) {
				gate, seen := childtest.NewGate(t), newRecorder()
				sup := newSupervisor(t, kind, supervisor.WithEvents(seen.Record))
				register(t, sup, spec(gate.Address), supervisor.WithName("mayfly"), supervisor.Restart{Type: supervisor.Transient})
				require.NoError(t, sup.StartLink(context.Background()), "StartLink")
				life := lives(sup)[0]
				gate.Next(t).Release(t, "")
				done := seen.Wait(t, supervisor.EventDone)
				require.Equal(t, []any{0, "mayfly", life}, []any{done.ProcID, done.Name, done.Incarnation}, "child and life of the event")
				require.NoError(t, done.Err, "error of the event")
				require.NoError(t, sup.Healthy(), "Healthy")
				p := supervisor.NewSendPayload(0, "Note")
				err := sup.Send(testkit.Context(t), p)
				requireRefused(t, err, supervisor.ErrClosed, p)
				require.NotErrorIs(t, err, supervisor.ErrRestartLimit, "Send")
				requireRefused(t, sup.TrySend(p), supervisor.ErrClosed, p)
				require.NotContains(t, seen.Kinds(), supervisor.EventGivenUp, "events:\n%s", seen)
				shutdown(t, sup)
			})
		}
	})
}
