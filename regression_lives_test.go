package supervisor_test

// Lives that begin, end and are waited for in unusual ways. What is tested here was wrong once.

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

var errNoMore = errors.New("scripted: no more")

// onlyOnce is a child whose first start works and whose later ones fail.
func onlyOnce() *scripted {
	return &scripted{begin: func(_ context.Context, n int) error {
		if n > 1 {
			return errNoMore
		}
		return nil
	}}
}

// A Restart is asked for once. If the start that it leads to fails, it is up to the policy what follows.
func TestRestartWhoseStartsFail(t *testing.T) {
	all := []time.Duration{0, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond}
	for _, tt := range []struct {
		name   string
		limit  time.Duration // of Restart
		policy supervisor.Restart
		delays []time.Duration
		want   error // of Restart
		end    error // of the child
	}{
		{"permanent", time.Hour, supervisor.Restart{}, all, supervisor.ErrRestartLimit, supervisor.ErrRestartLimit},
		{"permanent, and ctx ends meanwhile", 250 * time.Millisecond, supervisor.Restart{}, all, supervisor.ErrTimeout, supervisor.ErrRestartLimit},
		{"temporary", time.Hour, supervisor.Restart{Type: supervisor.Temporary}, nil, errNoMore, errNoMore},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				o := onlyOnce()
				sup, seen := withScripted(t, o, tt.policy)
				began := time.Now()
				require.ErrorIs(t, sup.Restart(within(t, tt.limit), 0), tt.want, "Restart")
				require.LessOrEqual(t, time.Since(began), 2*time.Second, "time of Restart")
				<-time.After(time.Hour)
				require.Equal(t, 2+len(tt.delays), o.starts(), "starts: the first, that of Restart, those of the policy")
				restarts := seen.of(supervisor.EventRestarting)
				require.Len(t, restarts, len(tt.delays), "restarts by the policy")
				for i, e := range restarts {
					want := float64(tt.delays[i])
					require.InDelta(t, want, float64(e.N), 0.21*want, "delay of restart %d", i+1)
				}
				err := sup.Healthy()
				require.ErrorIs(t, err, tt.end, "Healthy")
				require.ErrorIs(t, err, errNoMore, "Healthy names the cause")
			})
		})
	}
}

// Unregister has taken the child out of use, but until it has ended it belongs to the supervisor.
func TestEndOfSupervisorReachesUnregisteringChild(t *testing.T) {
	for _, tt := range []struct {
		name   string
		method string
		end    func(t *testing.T, sup *supervisor.Supervisor) error
		took   time.Duration
		want   error // nil: none
		stuck  bool
	}{
		{"Close", "Heed", func(_ *testing.T, sup *supervisor.Supervisor) error { return sup.Close() }, 0, nil, false},
		{"Close of one that is stuck", "Deaf", func(_ *testing.T, sup *supervisor.Supervisor) error { return sup.Close() }, 0, nil, true},
		{"Shutdown whose ctx ends", "Heed", func(t *testing.T, sup *supervisor.Supervisor) error {
			return sup.Shutdown(within(t, time.Minute))
		}, time.Minute, supervisor.ErrTimeout, true},
		{"Shutdown", "Heed", func(_ *testing.T, sup *supervisor.Supervisor) error {
			return sup.Shutdown(context.Background())
		}, time.Hour, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c := newCloser()
				letGo := sync.OnceFunc(func() { close(c.release) })
				defer letGo()
				sup, _ := withCloser(t, c, supervisor.Stop{Grace: time.Hour})
				send(t, sup, named("busy", 0, tt.method))
				synctest.Wait()
				began := time.Now()
				unregistered := make(chan error, 1)
				go func() { unregistered <- sup.Unregister(context.Background(), 0) }()
				synctest.Wait()
				require.Empty(t, unregistered, "Unregister waits for the handler")

				err := tt.end(t, sup)
				took := time.Since(began)
				require.GreaterOrEqual(t, took, tt.took, "time of the end")
				require.LessOrEqual(t, took, tt.took+200*time.Millisecond, "time of the end")
				if tt.want != nil {
					require.ErrorIs(t, err, tt.want, "the end")
				}
				require.Equal(t, tt.stuck, namesStuck(err, 0, tt.method), "whether the end names the child: %v", err)
				require.Equal(t, tt.took, c.notes().ctxEnd, "when the handler's context ended")
				if err := <-unregistered; err != nil { // nil if the child was gone by then
					require.True(t, namesStuck(err, 0, tt.method), "Unregister names the child that was not given its time: %v", err)
				}
				require.LessOrEqual(t, time.Since(began), took+200*time.Millisecond, "time of Unregister")
			})
		})
	}
}

// A life that could not be ended is the supervisor's as long as it is there, whatever lives come after it.
func TestEarlierLifeIsReportedWhileItIsStuck(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCloser()
		letGo := sync.OnceFunc(func() { close(c.release) })
		defer letGo()
		sup, _ := withCloser(t, c, supervisor.Stop{Grace: 10 * time.Millisecond, TermGrace: 10 * time.Millisecond})
		first := sup.Snapshot().Children[0].Incarnation
		send(t, sup, named("stuck", 0, "Deaf"))
		synctest.Wait()
		require.NoError(t, sup.Restart(t.Context(), 0), "Restart of a child that does not end")
		for generation := range 3 {
			err := sup.Shutdown(context.Background())
			var stuck *supervisor.StuckError
			require.ErrorAs(t, err, &stuck, "Shutdown %d while the first life's handler runs", generation)
			require.Equal(t, []any{0, first, "Deaf"}, []any{stuck.ProcID, stuck.Incarnation, stuck.Method}, "what is stuck")
			require.NoError(t, sup.StartLink(context.Background()), "StartLink %d", generation)
		}
		letGo()
		synctest.Wait()
		shutdown(t, sup)
	})
}

// A life that was not asked to end and has no error to show: a Permanent child comes back until it is given up.
func TestEndsWithoutAnError(t *testing.T) {
	const says = "the child has ended"
	t.Run("permanent", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			o := &scripted{}
			sup, seen := withScripted(t, o)
			for i := range 6 {
				require.Equal(t, supervisor.StateUp, stateOf(sup), "state before end %d", i+1)
				o.last().die(nil)
				<-time.After(time.Second)
			}
			require.Equal(t, 6, o.starts(), "starts")
			for what, err := range map[string]error{
				"Send": sup.Send(t.Context(), named("late", 0, "Anything")), "Healthy": sup.Healthy(), "the event": seen.of(supervisor.EventGivenUp)[0].Err,
			} {
				require.ErrorIs(t, err, supervisor.ErrRestartLimit, "what %s says", what)
				require.ErrorContains(t, err, "restart limit reached: closed: "+says, "what %s says", what)
				require.NotContains(t, err.Error(), "nil", "what %s says", what)
			}
		})
	})
	t.Run("temporary", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			o := &scripted{}
			sup, _ := withScripted(t, o, supervisor.Restart{Type: supervisor.Temporary}, supervisor.Limits{Queue: 1})
			open := named("open", 0, "Anything")
			send(t, sup, open)
			waiting := named("waiting", 0, "Anything")
			sent := make(chan error, 1)
			go func() { sent <- sup.Send(context.Background(), waiting) }()
			synctest.Wait()
			o.last().die(nil)
			requireRefused(t, <-sent, supervisor.ErrClosed, waiting)
			p, err := sup.Recv(t.Context())
			require.ErrorIs(t, err, supervisor.ErrClosed, "verdict of what was open")
			require.Equal(t, open.ReqID, p.ReqID, "its id")
			late := named("late", 0, "Anything")
			err = sup.Send(t.Context(), late)
			requireRefused(t, err, supervisor.ErrClosed, late)
			require.ErrorContains(t, err, says, "Send")
			require.NotErrorIs(t, err, supervisor.ErrRestartLimit, "a Temporary child has no limit to reach")
			require.Equal(t, 1, o.starts(), "starts")
		})
	})
}

// Whoever called StartLink, Serve ends when its own ctx does.
func TestServeOfRunningSupervisor(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCloser()
		sup, _ := withCloser(t, c)
		ctx, cancel := context.WithCancel(context.Background())
		served := make(chan error, 1)
		go func() { served <- sup.Serve(ctx) }()
		synctest.Wait()
		require.Empty(t, served, "Serve waits for the end")
		cancel()
		require.NoError(t, <-served, "Serve whose ctx has ended")
		require.Equal(t, 1, c.notes().closes, "calls of Close: all has stopped when Serve returns")
		require.ErrorIs(t, sup.TrySend(named("late", 0, "Nap")), supervisor.ErrClosed, "TrySend after Serve")
	})
}

// What has stopped has stopped in time, however late one asks. Two ready channels must not make that a matter of chance.
func TestShutdownOfStoppedSupervisorWithEndedContext(t *testing.T) {
	for name, start := range map[string]bool{"after Shutdown": true, "before the start": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				sup := newSupervisor(t, supervisor.Goroutine)
				register(t, sup, supervisor.Object(newDesk()))
				if start {
					require.NoError(t, sup.StartLink(t.Context()), "StartLink")
					shutdown(t, sup)
				}
				for i := range 100 {
					require.NoError(t, sup.Shutdown(ended()), "Shutdown %d, with a ctx that has ended", i+1)
				}
			})
		})
	}
}

// The longest times that there are mean as long as it takes. Their sum is no time at all.
func TestHugeStopTimes(t *testing.T) {
	const huge = time.Duration(math.MaxInt64)
	for _, tt := range []struct {
		name string
		stop supervisor.Stop
	}{
		{"Grace", supervisor.Stop{Grace: huge}},
		{"TermGrace", supervisor.Stop{TermGrace: huge}},
		{"both", supervisor.Stop{Grace: huge, TermGrace: huge}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c := newCloser()
				sup, seen := withCloser(t, c, tt.stop)
				reqs := send(t, sup, named("running", 0, "Nap"), named("queued", 0, "Nap"))
				began := time.Now()
				shutdown(t, sup)
				require.Equal(t, 2*time.Second, time.Since(began), "time of Shutdown: that of two handlers")
				got, err := sup.RecvAll(t.Context(), reqs)
				require.NoError(t, err, "RecvAll of what was accepted")
				require.Equal(t, []any{1, 1}, []any{got[0].Data, got[1].Data}, "the results")
				require.Equal(t, []string{"started", "stopped", "shutdown"}, seen.kinds(), "events")
			})
		})
	}
}

// nosy is an error that asks the supervisor something whenever it is asked something itself.
type nosy struct{ ask func() }

func (e *nosy) Error() string   { e.ask(); return "nosy" }
func (e *nosy) Is(error) bool   { e.ask(); return false }
func (e *nosy) As(any) bool     { e.ask(); return false }
func (e *nosy) Unwrap() []error { e.ask(); return nil }

// The methods of errors are user code, so they must be able to use the supervisor: no lock is held when they run.
func TestErrorsMayUseTheSupervisor(t *testing.T) {
	testkit.NoLeaks(t)
	seen := testkit.NewRecorder(func(e supervisor.Event) supervisor.EventKind { return e.Kind })
	sup := newSupervisor(t, supervisor.Goroutine, supervisor.WithEvents(seen.Record))
	o := &scripted{}
	_, err := sup.RegisterChild(t.Context(), o)
	require.NoError(t, err, "RegisterChild")
	require.NoError(t, sup.StartLink(context.Background()), "StartLink")

	var mu sync.Mutex
	asking, asked := false, 0
	cause := &nosy{func() {
		mu.Lock()
		nested := asking // of the answer, which may look at the error again
		asking = true
		mu.Unlock()
		if nested {
			return
		}
		answer := task.Go(func(context.Context) { _ = sup.Healthy() })
		limit := time.NewTimer(2 * time.Second * testkit.Slowdown)
		defer limit.Stop()
		select {
		case <-answer.Done():
		case <-limit.C:
			t.Errorf("the supervisor does not answer a method of an error:\n%s", testkit.Stacks())
		}
		mu.Lock()
		defer mu.Unlock()
		asking, asked = false, asked+1
	}}
	for i := range 6 {
		o.last().die(cause)
		if i < 5 {
			seen.Wait(t, supervisor.EventStarted)
			testkit.Until(t, "the next life is up", func() bool {
				return o.starts() == i+2 && sup.Snapshot().Children[0].State == supervisor.StateUp
			})
		}
	}
	seen.Wait(t, supervisor.EventGivenUp)
	require.Equal(t, "supervisor: restart limit reached: nosy", sup.Snapshot().Children[0].LastExit, "text of the last end")
	p := named("late", 0, "Anything")
	err = sup.TrySend(p)
	require.ErrorIs(t, err, supervisor.ErrRestartLimit, "TrySend")
	require.ErrorContains(t, err, "nosy", "TrySend")
	shutdown(t, sup)
	mu.Lock()
	defer mu.Unlock()
	require.NotZero(t, asked, "calls of the error's methods")
}

// starter is a Child that is no more than its Start.
type starter func(context.Context, *supervisor.Life) (supervisor.Link, error)

// Start is the function.
func (s starter) Start(ctx context.Context, life *supervisor.Life) (supervisor.Link, error) {
	return s(ctx, life)
}

func TestStartWithoutLinkOrError(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup := newSupervisor(t, supervisor.Goroutine)
		nothing := starter(func(context.Context, *supervisor.Life) (supervisor.Link, error) { return nil, nil })
		_, err := sup.RegisterChild(t.Context(), nothing, supervisor.WithName("nothing"))
		require.NoError(t, err, "RegisterChild")
		err = sup.StartLink(t.Context())
		var start *supervisor.StartError
		require.ErrorAs(t, err, &start, "StartLink")
		require.Equal(t, []any{0, "nothing"}, []any{start.ProcID, start.Name}, "the child in the error")
		require.ErrorContains(t, err, "neither a Link nor an error", "StartLink")
	})
}

// leaver ends the goroutine that closes it.
type leaver struct{}

// Ping returns 1.
func (leaver) Ping() int { return 1 }

// Close does not return.
func (leaver) Close() error {
	runtime.Goexit()
	return nil
}

var newLeaver = supervisor.Define("supervisor_test.leaver", func(context.Context) (leaver, error) { return leaver{}, nil })

// Whoever waits for Close is told that it will not return.
func TestGoexitInClose(t *testing.T) {
	bothKinds(t, func(t *testing.T, kind supervisor.ChildType) {
		seen := testkit.NewRecorder(func(e supervisor.Event) supervisor.EventKind { return e.Kind })
		sup := newSupervisor(t, kind, supervisor.WithEvents(seen.Record))
		register(t, sup, newLeaver)
		require.NoError(t, sup.StartLink(context.Background()), "StartLink")
		for life := range 2 {
			began := time.Now()
			require.NoError(t, sup.Restart(testkit.Context(t), 0), "Restart")
			require.Less(t, time.Since(began), 4*time.Second*testkit.Slowdown, "time of Restart: less than the grace")
			err := seen.Wait(t, supervisor.EventStopped).Err
			require.ErrorContains(t, err, "Close", "the end of the life")
			require.ErrorContains(t, err, "Goexit", "the end of the life")
			n, err := supervisor.Call[int](testkit.Context(t), sup, 0, "Ping")
			require.NoError(t, err, "Call of the next life")
			require.Equal(t, 1, n, "its result in life %d", life+2)
		}
		shutdown(t, sup)
	})
}

// laggard takes a while to be made and to close, whatever it is told.
type laggard struct{ closing time.Duration }

func (l *laggard) Close() error { <-time.After(l.closing); return nil }

var newLaggard = supervisor.Define("supervisor_test.laggard", func(context.Context) (*laggard, error) {
	<-time.After(60 * time.Millisecond)
	return &laggard{closing: 4 * time.Second}, nil
})

// The ctx of Unregister, and of a Register that gives up, also bounds the end of a life that is just starting.
func TestLeavingWhileStarting(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup := newSupervisor(t, supervisor.Goroutine)
		require.NoError(t, sup.StartLink(context.Background()), "StartLink")
		began := time.Now()
		soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := sup.Register(soon, newLaggard)
		require.ErrorIs(t, err, supervisor.ErrTimeout, "Register")
		require.Less(t, time.Since(began), time.Second, "time of Register")

		registered := make(chan error, 1)
		go func() {
			_, err := sup.Register(t.Context(), newLaggard)
			registered <- err
		}()
		synctest.Wait()
		began = time.Now()
		later, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_ = sup.Unregister(later, 1) // it may be too late for an error
		require.Less(t, time.Since(began), time.Second, "time of Unregister")
		require.Error(t, <-registered, "Register of a child that was unregistered")
		<-time.After(10 * time.Second) // what was abandoned ends
		synctest.Wait()
	})
}

// A Shutdown may meet a new generation at any moment of its beginning.
func TestShutdownWhileServeBegins(t *testing.T) {
	testkit.NoLeaks(t)
	sup := newSupervisor(t, supervisor.Goroutine)
	register(t, sup, supervisor.Object(newDesk()))
	for round := range 200 {
		served := make(chan error, 1)
		go func() { served <- sup.Serve(context.Background()) }()
		for ended := false; !ended; { // Serve may begin after Shutdown, which then had nothing to do
			require.NoError(t, sup.Shutdown(testkit.Context(t)), "Shutdown in round %d", round)
			select {
			case err := <-served:
				if err != nil {
					require.ErrorIs(t, err, supervisor.ErrClosed, "Serve in round %d", round)
				}
				ended = true
			default:
				runtime.Gosched()
			}
		}
	}
}
