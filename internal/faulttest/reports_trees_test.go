package faulttest_test

// Public reports about pools and supervisors, as scenarios.

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

// motor is an object with an engine inside that dies for good while the object lives on.
type motor struct{ dead bool }

var errMotor = errors.New("faulttest: the engine is dead")

func init() { supervisor.RegisterError("faulttest.errMotor", errMotor) }

var newMotor = supervisor.Define("faulttest.motor", func(context.Context) (*motor, error) { return &motor{}, nil })

// Choke kills the engine, which nobody notices.
func (m *motor) Choke() { m.dead = true }

// Turn needs the engine.
func (m *motor) Turn() (int, error) {
	if m.dead {
		return 0, supervisor.Fatal(errMotor)
	}
	return 1, nil
}

func TestC88ObjectThatIsBrokenInside(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		rec := testkit.NewRecorder(func(e supervisor.Event) supervisor.EventKind { return e.Kind })
		sup := newSupervisor(t, k.Type, supervisor.WithEvents(rec.Record))
		register(t, sup, newMotor)
		require.NoError(t, sup.StartLink(context.Background()), "StartLink")
		for round := 1; round <= 3; round++ {
			_, err := supervisor.Call[any](testkit.Context(t), sup, 0, "Choke")
			require.NoError(t, err, "Choke")
			_, err = supervisor.Call[int](testkit.Context(t), sup, 0, "Turn")
			require.ErrorIs(t, err, errMotor, "the first try")
			require.ErrorIs(t, rec.Wait(t, supervisor.EventExited).Err, errMotor, "why the life ended")
			n, err := supervisor.Call[int](testkit.Context(t), sup, 0, "Turn")
			require.NoError(t, err, "the second try has a fresh engine")
			require.Equal(t, 1, n, "its result")
			require.Equal(t, round, sup.Snapshot().Children[0].Restarts, "restarts that are counted")
		}
		shutdown(t, sup)
	})
}

// napper is busy for a while.
type napper struct{}

var newNapper = supervisor.Define("faulttest.napper", func(context.Context) (napper, error) { return napper{}, nil })

// Nap takes so long, and says whether it was told to stop.
func (napper) Nap(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Whoever has three seconds to end is not killed after less than two.
func TestC90GraceIsKept(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		sup := started(t, k.Type, newNapper, supervisor.Stop{Grace: 3 * time.Second * testkit.Slowdown})
		p := send(t, sup, supervisor.NewSendPayload(0, "Nap", 2*time.Second))
		began := time.Now()
		require.NoError(t, sup.Shutdown(context.Background()), "Shutdown")
		require.GreaterOrEqual(t, time.Since(began), 1900*time.Millisecond, "time of Shutdown") // the nap began a little before
		_, err := sup.RecvAll(context.Background(), p)
		require.NoError(t, err, "the reply of what was under way")
	})
}

func TestC101ShutdownRightAfterTheStart(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		rounds := times(500, 10000)
		if k.Can.Process {
			rounds = times(5, 200)
		}
		for round := range rounds {
			sup, err := supervisor.New(k.Type)
			require.NoError(t, err, "New")
			register(t, sup, newNapper)
			if round%2 == 0 {
				require.NoError(t, sup.StartLink(context.Background()), "StartLink in round %d", round)
				require.NoError(t, sup.Shutdown(testkit.Context(t)), "Shutdown in round %d", round)
				continue
			}
			served := make(chan error, 1)
			task.Go(func(context.Context) { served <- sup.Serve(context.Background()) })
			require.NoError(t, sup.Shutdown(testkit.Context(t)), "Shutdown in round %d, while Serve begins", round)
			ended := false
			for !ended { // Serve may begin after Shutdown, which then had nothing to do
				select {
				case err := <-served:
					if err != nil {
						require.ErrorIs(t, err, supervisor.ErrClosed, "Serve in round %d", round)
					}
					ended = true
				default:
					require.NoError(t, sup.Shutdown(testkit.Context(t)), "Shutdown again in round %d", round)
				}
			}
		}
	})
}

func TestC102UnregisterOfAStuckChild(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		r := newBreakers(t, k, 2, nil)
		p, v := r.hold(t, 0, "HoldOn")
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		began := time.Now()
		err := r.Sup.Unregister(ctx, 0)
		shutdownTook(t, time.Since(began), 50*time.Millisecond)
		var stuck *supervisor.StuckError
		require.ErrorAs(t, err, &stuck, "Unregister")
		require.Equal(t, []any{0, "HoldOn", k.Can.Process}, []any{stuck.ProcID, stuck.Method, stuck.Killed}, "what was stuck")
		require.ErrorIs(t, r.Recv(t, p).Err, supervisor.ErrClosed, "verdict of its request")
		require.ErrorIs(t, r.Sup.Unregister(context.Background(), 0), supervisor.ErrNoSuchChild, "Unregister again")
		childtest.CallOf[int](t, r.Rig, 1, "Pid")
		if !k.Can.Process {
			v.Release(t, "")
		}
		v.Gone(t)
	})
}

// A child that waits for its delay after a panic holds up nobody.
func TestC103ShutdownDuringTheDelay(t *testing.T) {
	policy := supervisor.Restart{OnPanic: supervisor.EndLife, Backoff: supervisor.Backoff{First: time.Minute, Max: time.Minute}}
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		r := newBreakers(t, k, 1, nil, policy)
		_, err := supervisor.Call[any](r.Ctx, r.Sup, 0, "Panic")
		require.ErrorIs(t, err, errBreaker, "Call of Panic")
		r.Events.Wait(t, supervisor.EventRestarting)
		began := time.Now()
		shutdown(t, r.Sup)
		shutdownTook(t, time.Since(began), 0)
		require.Equal(t, 1, r.Ledger.Counts(t)["start"], "starts")
	})
	t.Run("to the instant", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			sup := newSupervisor(t, supervisor.Goroutine)
			register(t, sup, newBreaker.With(breakerJob{}), policy)
			require.NoError(t, sup.StartLink(context.Background()), "StartLink")
			_, err := supervisor.Call[any](context.Background(), sup, 0, "Panic")
			require.ErrorIs(t, err, errBreaker, "Call of Panic")
			synctest.Wait()
			began := time.Now()
			require.NoError(t, sup.Shutdown(context.Background()), "Shutdown")
			require.Zero(t, time.Since(began), "time of Shutdown")
		})
	})
}

// quitter is a loop that ends with the error of a context that is not its own.
type quitter struct{}

var newQuitter = supervisor.Define("faulttest.quitter", func(context.Context) (quitter, error) { return quitter{}, nil })

// Serve ends.
func (quitter) Serve(context.Context) error {
	foreign, cancel := context.WithTimeout(context.Background(), -1)
	defer cancel()
	return foreign.Err()
}

func TestC104ForeignContextErrors(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		r := childtest.Start(t, k)
		life := r.Child(t, r.ID).Incarnation
		for name, want := range map[string]error{"canceled": context.Canceled, "deadline": context.DeadlineExceeded} {
			_, err := supervisor.Call[int](r.Ctx, r.Sup, r.ID, "Fail", name)
			var remote *supervisor.RemoteError
			require.ErrorAs(t, err, &remote, "a handler's error: %s", name)
			require.ErrorIs(t, err, want, "a handler's error: %s", name)
			require.NotErrorIs(t, err, supervisor.ErrRestarted, "a handler's error: %s", name)
		}
		require.Equal(t, life, r.Child(t, r.ID).Incarnation, "the life goes on")

		id := register(t, r.Sup, newQuitter, supervisor.Restart{Type: supervisor.Transient, Max: 2})
		given := r.Events.WaitFor(t, "giving up", func(e supervisor.Event) bool { return e.Kind == supervisor.EventGivenUp && e.ProcID == id })
		require.ErrorIs(t, given.Err, supervisor.ErrRestartLimit, "a loop that ends so has failed")
		require.ErrorIs(t, given.Err, context.DeadlineExceeded, "why")
		require.Equal(t, 2, r.Child(t, id).Restarts, "restarts")
	})
}

// finisher is a loop that ends when the test says so, or when it is told to.
type finisher struct{ gate string }

var newFinisher = supervisor.DefineWith("faulttest.finisher", func(_ context.Context, gate string) (finisher, error) {
	return finisher{gate}, nil
})

// Serve ends in order, or fails if the gate says so.
func (f finisher) Serve(ctx context.Context) error {
	answer, err := childtest.WaitAt(ctx, f.gate, "serve")
	if err == nil && answer != "" {
		err = errors.New(answer)
	}
	return err
}

func TestC105EndDuringShutdown(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		gate := childtest.NewGate(t)
		rounds := times(100, 2000)
		if k.Can.Process {
			rounds = times(5, 100)
		}
		sup := newSupervisor(t, k.Type)
		register(t, sup, newFinisher.With(gate.Address), supervisor.Restart{Type: supervisor.Transient})
		for round := range rounds {
			require.NoError(t, sup.StartLink(context.Background()), "StartLink in round %d", round)
			v := gate.Next(t)
			barrier := make(chan struct{})
			answer := []string{"", "failed"}[round%2]
			released := task.Go(func(context.Context) {
				<-barrier
				v.Release(t, answer)
			})
			close(barrier)
			require.NoError(t, sup.Shutdown(testkit.Context(t)), "Shutdown in round %d", round)
			released.Wait()
			require.NoError(t, sup.Err(), "Err in round %d", round)
			require.Equal(t, supervisor.StateIdle, sup.Snapshot().Children[0].State, "state in round %d", round)
		}
	})
}

func TestC106LimitOfOneOfFive(t *testing.T) {
	for _, st := range []supervisor.Strategy{supervisor.OneForOne, supervisor.OneForAll} {
		t.Run(st.String(), func(t *testing.T) {
			eachKind(t, func(t *testing.T, k childtest.Kind) {
				before := testkit.Children()
				r := newBreakers(t, k, 4, []supervisor.Option{supervisor.WithStrategy(st)})
				id := register(t, r.Sup, newBreaker.With(r.job()), supervisor.Restart{Max: 1, GiveUp: supervisor.GiveUpSupervisor})
				r.breaks(t, id)
				began := time.Now()
				_, err := supervisor.Call[any](r.Ctx, r.Sup, id, "Break")
				require.ErrorIs(t, err, errBreaker, "Call of Break")
				testkit.Closed(t, r.Sup.Done(), "the end of the supervisor")
				require.NoError(t, r.Sup.Shutdown(context.Background()), "Shutdown")
				shutdownTook(t, time.Since(began), 0)
				require.ErrorIs(t, r.Sup.Err(), supervisor.ErrRestartLimit, "Err")
				require.ErrorIs(t, r.Sup.Err(), errBreaker, "Err: the last cause")
				require.Equal(t, before, testkit.Children(), "processes")
				for _, c := range r.Sup.Snapshot().Children {
					require.Equal(t, supervisor.StateIdle, c.State, "state of child %d", c.ProcID)
				}
			})
		})
	}
}
