package supervisor_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

func TestLivenessEndsTheIll(t *testing.T) {
	for how, check := range map[string]func(t *testing.T, err error){
		"error": func(t *testing.T, err error) {
			t.Helper()
			require.ErrorIs(t, err, errSickly, "why")
			require.ErrorContains(t, err, "Health", "why")
		},
		"panic": func(t *testing.T, err error) {
			t.Helper()
			var p *supervisor.PanicError
			require.ErrorAs(t, err, &p, "why")
			require.Contains(t, p.Stack, "(*sickly).Health", "stack of the panic")
		},
		"hang": func(t *testing.T, err error) {
			t.Helper()
			require.ErrorContains(t, err, "no sign of life", "why")
		},
	} {
		t.Run(how, func(t *testing.T) {
			eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
				live := supervisor.Liveness{Every: 100 * time.Millisecond, Timeout: time.Second * testkit.Slowdown}
				stop, ended := supervisor.Stop{TermGrace: testkit.Limit}, supervisor.EventExited
				if how == "hang" { // and heeds nothing
					if stop = shortStop; kind == supervisor.Goroutine {
						ended = supervisor.EventStuck
					}
				}
				r := startSickly(t, kind, live, supervisor.WithName("ada"), stop)
				was := echoes(t, r)
				testkit.Until(t, "it was asked and was well", func() bool { return childtest.CallOf[int64](t, r, r.ID, "Asked") > 2 })
				held := r.Send(t, r.ID, "Heed", "at work")
				v := r.Gate.Next(t)
				require.NotContains(t, r.Events.Kinds(), supervisor.EventHung, "events of one that is well")
				v.Release(t, "done")
				require.NoError(t, r.Recv(t, held).Err, "a handler of one that is well")
				childtest.CallOf[any](t, r, r.ID, "Ail", how)
				hung := r.Events.Wait(t, supervisor.EventHung)
				require.Equal(t, []any{r.ID, "ada", was.Incarnation, was.Pid},
					[]any{hung.ProcID, hung.Name, hung.Incarnation, hung.Pid}, "child, name, life and process in the event")
				check(t, hung.Err)
				end := r.Events.Wait(t, ended)
				check(t, end.Err)
				var exit *supervisor.ExitError
				var stuck *supervisor.StuckError
				switch {
				case ended == supervisor.EventStuck:
					require.ErrorAs(t, end.Err, &stuck, "the end of the life")
					require.Equal(t, "Health", stuck.Method, "where it is stuck")
					require.Contains(t, stuck.Stack, "(*sickly).Health", "its stack")
				default:
					require.ErrorAs(t, end.Err, &exit, "the end of the life")
				}
				if kind == supervisor.Process {
					require.Contains(t, exit.Trace, "goroutine ", "stacks in the error")
				}
				if how == "hang" {
					require.Contains(t, hung.Text, "(*sickly).Health", "stacks in the event")
				}
				if stuck != nil {
					r.Gate.Next(t).Release(t, "at last")
					testkit.Until(t, "nothing is left of it", func() bool { return r.Child(t, r.ID).Stuck == 0 })
				}
				r.Events.Wait(t, supervisor.EventRestarting)
				now := echoes(t, r)
				require.NotEqual(t, was.Incarnation, now.Incarnation, "the life after it, which is well")
				require.Equal(t, 1, now.Restarts, "restarts by the policy")
				shutdown(t, r.Sup)
			})
		})
	}
}

// What is at work when its life is found ill gets the end of the life.
func TestLivenessVerdicts(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		r := startSickly(t, kind, supervisor.Liveness{Every: 20 * time.Millisecond}, supervisor.WithConcurrency(2), supervisor.Stop{TermGrace: testkit.Limit})
		held := r.Send(t, r.ID, "Heed", "at work")
		v := r.Gate.Next(t)
		r.Send(t, r.ID, "Ail", "error")
		hung := r.Events.Wait(t, supervisor.EventHung)
		require.Contains(t, hung.Text, "(*sickly).Heed", "stacks in the event")
		v.Left(t)
		err := r.Recv(t, held).Err
		require.Error(t, err, "verdict of what was at work")
		require.NotErrorIs(t, err, supervisor.ErrTimeout, "verdict of what was at work")
	})
}

// However long a handler keeps its goroutine, or a processor, the object is asked beside it, and is well.
func TestLivenessOfTheBusy(t *testing.T) {
	for _, method := range []string{"Spin", "Lock"} {
		t.Run(method, func(t *testing.T) {
			eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
				r := startSickly(t, kind, supervisor.Liveness{Every: 5 * time.Millisecond, Timeout: testkit.Limit}, supervisor.WithConcurrency(2))
				was := echoes(t, r)
				busy := r.Send(t, r.ID, method, "busy")
				v := r.Gate.Next(t)
				asked := childtest.CallOf[int64](t, r, r.ID, "Asked")
				testkit.Until(t, "it is asked while it is busy", func() bool {
					return childtest.CallOf[int64](t, r, r.ID, "Asked") > asked+5
				})
				v.Release(t, "done")
				require.NoError(t, r.Recv(t, busy).Err, "the handler")
				require.Equal(t, was.Incarnation, echoes(t, r).Incarnation, "the life goes on")
				shutdown(t, r.Sup)
				require.NotContains(t, r.Events.Kinds(), supervisor.EventHung, "events:\n%s", r.Events)
			})
		})
	}
}

// Questions and answers overtake what is in the pipes, however much that is.
func TestLivenessBesideLargePayloads(t *testing.T) {
	if len(kinds()) == 1 {
		t.Skip("this system has no process children")
	}
	testkit.NoLeaks(t)
	r := startSickly(t, supervisor.Process, supervisor.Liveness{Every: time.Millisecond, Timeout: testkit.Limit})
	was := echoes(t, r)
	large := make([]byte, 64<<20)
	asked := func() int64 { return childtest.CallOf[int64](t, r, r.ID, "Asked") }
	testkit.Until(t, "it is asked many times while one request and its reply are in the pipes", func() bool {
		before := asked()
		require.Len(t, childtest.CallOf[[]byte](t, r, r.ID, "Size", large), len(large), "the large reply")
		return asked() >= before+6 // one that waits its turn would make it two or three
	})
	require.Equal(t, was.Incarnation, echoes(t, r).Incarnation, "the life goes on")
	shutdown(t, r.Sup)
	require.NotContains(t, r.Events.Kinds(), supervisor.EventHung, "events:\n%s", r.Events)
}

// patient is an object whose health the test decides.
type patient struct {
	word func(ctx context.Context) error

	mu    sync.Mutex
	asked []time.Time
}

// Nothing does nothing.
func (p *patient) Nothing() {}

// Health is the hook.
func (p *patient) Health(ctx context.Context) error {
	p.mu.Lock()
	p.asked = append(p.asked, time.Now())
	p.mu.Unlock()
	if p.word == nil {
		return nil
	}
	return p.word(ctx)
}

// questions are the times at which Health was asked.
func (p *patient) questions() []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

func TestHealthyAsksTheHooks(t *testing.T) {
	for _, tt := range []struct {
		name string
		word func(over <-chan struct{}) error
		want error
		took time.Duration
	}{
		{name: "well", word: func(<-chan struct{}) error { return nil }},
		{name: "ill", word: func(<-chan struct{}) error { return errSickly }, want: errSickly},
		{name: "panic", word: func(<-chan struct{}) error { panic(errSickly) }, want: errSickly},
		{name: "silent", word: func(over <-chan struct{}) error { <-over; return nil }, want: supervisor.ErrTimeout, took: time.Second},
		{name: "slow", word: func(<-chan struct{}) error { <-time.After(900 * time.Millisecond); return nil }, took: 900 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				over := make(chan struct{})
				sup := newSupervisor(t, supervisor.Goroutine)
				register(t, sup, supervisor.Object(&patient{}), supervisor.WithName("well"))
				for range 3 { // they are asked at the same time
					register(t, sup, supervisor.Object(&patient{word: func(context.Context) error { return tt.word(over) }}), supervisor.WithName("odd"))
				}
				require.NoError(t, sup.StartLink(context.Background()), "StartLink")
				began := time.Now()
				err := sup.Healthy()
				require.Equal(t, tt.took, time.Since(began), "time of Healthy")
				require.ErrorIs(t, err, tt.want, "Healthy")
				if tt.want != nil {
					require.ErrorContains(t, err, `child 1 ("odd")`, "Healthy")
					require.ErrorContains(t, err, `child 3 ("odd")`, "Healthy")
					require.NotContains(t, err.Error(), "well\"", "Healthy")
				}
				close(over)
				shutdown(t, sup)
			})
		})
	}
}

func TestHealthyOfWorkers(t *testing.T) {
	eachKind(t, func(t *testing.T, kind supervisor.ChildType) {
		r := startSickly(t, kind)
		require.NoError(t, r.Sup.Healthy(), "while it is well")
		childtest.CallOf[any](t, r, r.ID, "Ail", "error")
		require.ErrorIs(t, r.Sup.Healthy(), errSickly, "while it is ill")
		childtest.CallOf[any](t, r, r.ID, "Ail", "hang")
		began := time.Now()
		require.ErrorIs(t, r.Sup.Healthy(), supervisor.ErrTimeout, "while it is silent")
		require.GreaterOrEqual(t, time.Since(began), time.Second, "time of Healthy")
		childtest.CallOf[any](t, r, r.ID, "Ail", "nothing")
		require.ErrorIs(t, r.Sup.Healthy(), supervisor.ErrTimeout, "while it has not come back from the first question")
		r.Gate.Next(t).Release(t, "an answer that nobody waits for")
		testkit.Until(t, "it is well again", func() bool { return r.Sup.Healthy() == nil })
		shutdown(t, r.Sup)
	})
}

// The pace: Every counts from answer to question, and a silent object is found after Timeout.
func TestLivenessPace(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		over := make(chan struct{})
		var silent atomic.Bool
		p := &patient{}
		p.word = func(context.Context) error {
			if <-time.After(time.Second); silent.Load() {
				<-over
			}
			return nil
		}
		seen := &events{}
		sup := newSupervisor(t, supervisor.Goroutine, supervisor.WithEvents(seen.take))
		register(t, sup, supervisor.Object(p), supervisor.Liveness{Every: 9 * time.Second, Timeout: 4 * time.Second}, supervisor.Restart{Type: supervisor.Temporary})
		require.NoError(t, sup.StartLink(context.Background()), "StartLink")
		<-time.After(10*time.Minute + time.Second)
		require.InDelta(t, 57, len(p.questions()), 4, "questions in ten minutes")
		for i, at := range p.questions()[1:] {
			require.GreaterOrEqual(t, at.Sub(p.questions()[i]), 10*time.Second, "time between question %d and the next", i)
		}
		require.Empty(t, seen.of(supervisor.EventHung), "lives that hung")
		silent.Store(true)
		n := len(p.questions())
		<-time.After(16 * time.Second)
		hung := seen.of(supervisor.EventHung)
		require.Len(t, hung, 1, "lives that hung")
		require.InDelta(t, 4, hung[0].Time.Sub(p.questions()[n]).Seconds(), 1.1, "seconds from the question to the alarm")
		require.GreaterOrEqual(t, hung[0].Time.Sub(p.questions()[n]), 4*time.Second, "time from the question to the alarm")
		close(over)
		synctest.Wait()
		shutdown(t, sup)
	})
}
