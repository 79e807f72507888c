package faulttest_test

// Starts that meet others or fail, windows to the nanosecond, and what no life may do twice.

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

func TestS07StartTwice(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		r := newBreakers(t, k, 0, nil)
		shutdown(t, r.Sup)
		for range 2 {
			register(t, r.Sup, newBreaker.With(r.job()))
		}
		results := make(chan error, 8)
		for range cap(results) {
			task.Go(func(context.Context) { results <- r.Sup.StartLink(context.Background()) })
		}
		for range cap(results) {
			require.NoError(t, testkit.Receive(t, results, "StartLink"), "StartLink, with others at once")
		}
		lives := r.Sup.Snapshot().Children
		require.NoError(t, r.Sup.StartLink(context.Background()), "StartLink again")
		require.Equal(t, 2, r.Ledger.Counts(t)["start"], "starts by the ledger")
		require.Equal(t, 2, register(t, r.Sup, newBreaker.With(r.job())), "id of a child that comes later")
		childtest.CallOf[int](t, r.Rig, 2, "Pid")
		require.Equal(t, 3, r.Ledger.Counts(t)["start"], "starts by the ledger")
		for id, c := range r.Sup.Snapshot().Children[:2] {
			require.Equal(t, lives[id].Incarnation, c.Incarnation, "life of child %d", id)
		}
		shutdown(t, r.Sup)
	})
}

func TestS08AStartThatFails(t *testing.T) {
	for _, st := range []supervisor.Strategy{supervisor.OneForOne, supervisor.RestForOne} {
		t.Run(st.String(), func(t *testing.T) {
			eachKind(t, func(t *testing.T, k childtest.Kind) {
				before := testkit.Children()
				r := newBreakers(t, k, 0, []supervisor.Option{supervisor.WithStrategy(st)})
				shutdown(t, r.Sup)
				const bad = 3
				for id := range 5 {
					job := r.job()
					job.Lock = filepath.Join(t.TempDir(), strconv.Itoa(id))
					if id == bad {
						job.Lock = filepath.Join(job.Lock, "no such directory")
					}
					register(t, r.Sup, newBreaker.With(job))
				}
				err := r.Sup.StartLink(context.Background())
				var start *supervisor.StartError
				require.ErrorAs(t, err, &start, "StartLink")
				require.Equal(t, bad, start.ProcID, "who failed: %v", err)
				require.ErrorIs(t, err, os.ErrNotExist, "why")
				require.Equal(t, before, testkit.Children(), "processes")
				for _, c := range r.Sup.Snapshot().Children {
					require.NotEqual(t, supervisor.StateUp, c.State, "state of child %d", c.ProcID)
				}
				stopped := r.order(supervisor.EventStopped) // StartLink returns when all is over, but the events may lag
				testkit.Until(t, "an end of each that was started", func() bool {
					stopped = r.order(supervisor.EventStopped)
					return !slices.ContainsFunc(r.order(supervisor.EventStarted), func(id int) bool { return !slices.Contains(stopped, id) })
				})
				if st == supervisor.RestForOne {
					require.Equal(t, []int{0, 1, 2}, r.order(supervisor.EventStarted), "order of the starts")
					require.Equal(t, []int{2, 1, 0}, stopped, "order of the stops")
					require.Equal(t, bad+1, r.Ledger.Counts(t)["start"], "starts that were tried")
				}
			})
		})
	}
}

func TestS09EdgesOfTheWindow(t *testing.T) {
	const window = 5 * time.Second
	policy := supervisor.Restart{Max: 3, Within: window, Backoff: supervisor.Backoff{Min: 1, Max: 1}}
	for _, tt := range []struct {
		name  string
		ends  []time.Duration // when
		given bool            // up, at the last of them
	}{
		{"as many as are allowed", []time.Duration{0, 0, 0}, false},
		{"one more", []time.Duration{0, 0, 0, 0}, true},
		{"one more, just within the window", []time.Duration{0, 1, 2 * time.Second, window - time.Microsecond}, true},
		{"one more, just out of it", []time.Duration{0, time.Second, 2 * time.Second, window + time.Microsecond}, false},
		{"again after a quiet time", []time.Duration{0, 1, 2, window + 1000, window + 1001, window + 1002}, false},
		{"one too many after a quiet time", []time.Duration{0, 1, 2, window + 1000, window + 1001, window + 1002, 2*window - 1}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sup := newSupervisor(t, supervisor.Goroutine)
				register(t, sup, newBreaker.With(breakerJob{}), policy)
				require.NoError(t, sup.StartLink(context.Background()), "StartLink")
				began := time.Now()
				for i, at := range tt.ends {
					<-time.After(at - time.Since(began))
					_, err := supervisor.Call[any](context.Background(), sup, 0, "Break")
					require.NotErrorIs(t, err, supervisor.ErrRestartLimit, "the call before end %d", i)
					require.ErrorIs(t, err, errBreaker, "the call for end %d", i)
				}
				_, err := supervisor.Call[int](context.Background(), sup, 0, "Pid")
				require.Equal(t, tt.given, errors.Is(err, supervisor.ErrRestartLimit), "a call after all of it: %v", err)
			})
		})
	}
}

// What a life had begun is not begun again by the next one, nor what had only been accepted.
func TestS10NoReplay(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		r := newBreakers(t, k, 1, nil, supervisor.WithConcurrency(3))
		var law testkit.Law
		var reqs []supervisor.SendPayload
		for range 2 {
			p, _ := r.hold(t, 0, "EnterAndHold")
			law.Accept(p.ReqID)
			reqs = append(reqs, p)
		}
		_, v := r.hold(t, 0, "BreakAt")
		for range 10 {
			p := supervisor.NewSendPayload(0, "Enter", "")
			p.Args[0] = p.ReqID
			law.Accept(p.ReqID)
			reqs = append(reqs, send(t, r.Sup, p)...)
		}
		breakerFall(t, r, 0, v)
		require.NotZero(t, childtest.CallOf[int](t, r.Rig, 0, "Pid"), "the next life answers")
		got, err := r.Sup.RecvAll(r.Ctx, reqs, supervisor.IgnoreErr())
		require.NoError(t, err, "RecvAll")
		for _, p := range got {
			law.Verdict(p.ReqID, childtest.OutcomeOf(p.Err))
		}
		require.Equal(t, 2, r.Ledger.Counts(t)["start"], "lives by the ledger")
		counts := r.Ledger.Counts(t)
		delete(counts, "start")
		law.Check(t, counts)
	})
}

// One death is one failure, whatever was under way: here a start.
func TestS11DeathDuringARestart(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		r := newBreakers(t, k, 0, nil)
		job := r.job()
		job.Meet = true
		ready := task.Go(func(context.Context) { _, _ = r.Sup.Register(r.Ctx, newBreaker.With(job)) })
		r.Gate.Next(t).Release(t, "")
		ready.Wait()
		first := r.Events.Wait(t, supervisor.EventStarted)
		r.breaks(t, 0)
		second := r.Gate.Next(t)
		breakerKillStart(t, k, second)
		third := r.Gate.Next(t)
		failed := r.Events.Wait(t, supervisor.EventStartFailed)
		require.Greater(t, failed.Incarnation, first.Incarnation, "the life that did not get ready")
		third.Release(t, "")
		next := r.Events.Wait(t, supervisor.EventStarted)
		require.Greater(t, next.Incarnation, failed.Incarnation, "the life that follows")
		require.Equal(t, 2, r.Child(t, 0).Restarts, "restarts: one death of a life, one of a start")
		require.Equal(t, 3, r.Ledger.Counts(t)["start"], "starts by the ledger")
		require.Len(t, r.order(supervisor.EventStartFailed), 1, "starts that failed, by the events")
		require.NotZero(t, childtest.CallOf[int](t, r.Rig, 0, "Pid"), "it answers")
		shutdown(t, r.Sup)
	})
}
