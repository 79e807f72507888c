package supervisor_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
)

// teller shows something of itself.
type teller struct {
	Told int
	hold chan struct{}
}

// Tell counts.
func (s *teller) Tell() int { s.Told++; return s.Told }

// Hold is busy until the test says otherwise.
func (s *teller) Hold() { <-s.hold }

// Snapshot is the hook.
func (s *teller) Snapshot() any { return map[string]int{"told": s.Told} }

func TestSnapshotOfARunningTree(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup := newSupervisor(t, supervisor.Goroutine)
		register(t, sup, supervisor.Object(&teller{}), supervisor.WithName("teller"))
		o := &scripted{}
		_, err := sup.RegisterChild(t.Context(), o)
		require.NoError(t, err, "RegisterChild")
		require.NoError(t, sup.StartLink(context.Background()), "StartLink")
		up := time.Now()
		<-time.After(time.Second)
		send(t, sup, named("a", 0, "Tell"), named("b", 1, "Anything"))
		synctest.Wait()
		for range 2 {
			o.last().die(errDied)
			<-time.After(time.Second)
		}

		s := sup.Snapshot()
		require.True(t, s.Running, "Running")
		require.Equal(t, []int{0, 2}, []int{s.Open, s.Unclaimed}, "open and unclaimed: the life of the second died")
		require.Len(t, s.Children, 2, "children")
		one := s.Children[0]
		require.NotZero(t, one.Incarnation, "incarnation")
		require.Equal(t, []supervisor.EventSnapshot{{Time: up, Kind: "started", Incarnation: one.Incarnation}}, one.Events, "its events")
		require.Equal(t, 1, one.Timing.Samples, "timed requests of the first")
		one.Incarnation, one.Events, one.Timing = 0, nil, supervisor.Timing{}
		require.Equal(t, supervisor.ChildSnapshot{
			ProcID: 0, Name: "teller", Type: "*supervisor_test.teller", Kind: "goroutine", State: supervisor.StateUp, Since: up, Object: map[string]int{"told": 1},
		}, one, "the first child")
		two := s.Children[1]
		require.Equal(t, []any{"outside", supervisor.StateUp, 2, errDied.Error()},
			[]any{two.Kind, two.State, two.Restarts, two.LastExit}, "kind, state, restarts, last exit of the second")
		require.Nil(t, two.Object, "an outside child shows nothing")

		b, err := json.Marshal(s)
		require.NoError(t, err, "Snapshot as JSON")
		var back struct {
			Children []struct {
				State    string
				Restarts int
				LastExit string `json:"last_exit"`
				Object   map[string]int
			}
		}
		require.NoError(t, json.Unmarshal(b, &back), "reading it: %s", b)
		require.Equal(t, map[string]int{"told": 1}, back.Children[0].Object, "the object in JSON")
		require.Equal(t, []any{"up", 2, errDied.Error()},
			[]any{back.Children[1].State, back.Children[1].Restarts, back.Children[1].LastExit}, "the second child in JSON")
	})
}

// A busy object is left out after 100 ms, and holds nobody up for longer.
func TestSnapshotOfBusyObjects(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		hold := make(chan struct{})
		sup := newSupervisor(t, supervisor.Goroutine)
		for range 3 {
			register(t, sup, supervisor.Object(&teller{hold: hold}))
		}
		idle := register(t, sup, supervisor.Object(&teller{}))
		require.NoError(t, sup.StartLink(context.Background()), "StartLink")
		for id := range 3 {
			send(t, sup, supervisor.NewSendPayload(id, "Hold"), supervisor.NewSendPayload(id, "Tell"))
		}
		synctest.Wait()
		began := time.Now()
		s := sup.Snapshot()
		require.Equal(t, 100*time.Millisecond, time.Since(began), "time of Snapshot")
		require.Equal(t, map[string]int{"told": 0}, s.Children[idle].Object, "the idle object")
		for id := range 3 {
			require.Nil(t, s.Children[id].Object, "busy object %d", id)
			require.Equal(t, []int{1, 1}, []int{s.Children[id].Load.InFlight, s.Children[id].Load.Queued}, "in flight and queued of %d", id)
		}
		close(hold)
		synctest.Wait()
		for range 6 {
			_, err := sup.Recv(t.Context())
			require.NoError(t, err, "Recv: asking has disturbed nobody")
		}
		require.Equal(t, map[string]int{"told": 1}, sup.Snapshot().Children[0].Object, "once it is not busy any more")
	})
}

func TestHealthy(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup := newSupervisor(t, supervisor.Goroutine)
		o := &scripted{}
		_, err := sup.RegisterChild(t.Context(), o, supervisor.WithName("patient"), supervisor.Restart{Type: supervisor.Temporary})
		require.NoError(t, err, "RegisterChild")
		require.ErrorIs(t, sup.Healthy(), supervisor.ErrNotStarted, "before StartLink")
		require.NoError(t, sup.StartLink(context.Background()), "StartLink")
		require.NoError(t, sup.Healthy(), "while it is up")
		o.last().die(errDied)
		synctest.Wait()
		err = sup.Healthy()
		require.ErrorIs(t, err, errDied, "Healthy after the end of a Temporary child")
		require.ErrorContains(t, err, "patient", "the name of the child")
	})
}

func TestSnapshotOfTheOldestRequest(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup, d := withDesk(t)
		oldest := func() *supervisor.OldestRequest { synctest.Wait(); return sup.Snapshot().Children[0].Timing.Oldest }
		require.Nil(t, oldest(), "the oldest request while none is open")
		send(t, sup, named("a", 0, "Work", "a"), named("b", 0, "Deaf", "b"))
		require.Equal(t, &supervisor.OldestRequest{Method: "Work"}, oldest(), "as it is first seen")
		<-time.After(3 * time.Second)
		require.Equal(t, &supervisor.OldestRequest{Method: "Work", Age: 3 * time.Second}, oldest(), "later")
		d.end("a", deskEnd{})
		require.Equal(t, &supervisor.OldestRequest{Method: "Deaf"}, oldest(), "the next one, as it is first seen")
		d.end("b", deskEnd{})
		require.Nil(t, oldest(), "once all are answered")
	})
}

func TestSnapshotOfTimings(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup, _ := withCloser(t, newCloser(), supervisor.WithTimings())
		timing := func() supervisor.Timing { synctest.Wait(); return sup.Snapshot().Children[0].Timing }
		require.Equal(t, supervisor.Timing{}, timing(), "before the first request")
		for range 11 { // each takes a second, so the last one waits for ten
			send(t, sup, supervisor.NewSendPayload(0, "Nap"))
		}
		<-time.After(time.Minute)
		got := timing()
		require.Equal(t, 11, got.Samples, "samples")
		second := supervisor.Percentiles{P50: time.Second, P90: time.Second, P99: time.Second}
		require.Equal(t, second, got.Run, "times of the handlers")
		require.Equal(t, supervisor.Percentiles{P50: 5 * time.Second, P90: 9 * time.Second, P99: 9 * time.Second}, got.Wait, "times in the queue")
		for range 300 { // none of them waits
			_, err := supervisor.Call[int](t.Context(), sup, 0, "Nap")
			require.NoError(t, err, "Nap")
		}
		require.Equal(t, supervisor.Timing{Samples: 256, Run: second}, timing(), "timings of the last requests")
	})
}

// Without the option one request of 64 is timed.
func TestSnapshotOfSamples(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup, _ := withCloser(t, newCloser())
		for n := range 130 {
			got, err := sup.Do(t.Context(), supervisor.NewSendPayload(0, "Nap"))
			require.NoError(t, err, "Nap")
			require.Zero(t, got.Queued+got.Ran, "times in a reply that did not ask for them")
			timing := sup.Snapshot().Children[0].Timing
			require.Equal(t, 1+n/64, timing.Samples, "samples after %d requests", n+1)
			require.Equal(t, time.Second, timing.Run.P99, "time of the handlers")
		}
	})
}

func TestSnapshotOfEvents(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		o := &scripted{}
		sup, seen := withScripted(t, o, supervisor.Restart{Max: 100})
		requireDelays(t, sup, o, 0, 100*time.Millisecond, 200*time.Millisecond, 400*time.Millisecond)
		p := named("late", 0, "Anything")
		p.Timeout = time.Second
		send(t, sup, p)
		<-time.After(time.Minute)
		l := o.last()
		require.False(t, l.life.Reply(l.requests[0], 1, nil), "Reply after the Timeout")
		require.Len(t, seen.of(supervisor.EventLateReply), 1, "late replies")

		var got []string
		var last time.Time
		for _, e := range sup.Snapshot().Children[0].Events {
			got = append(got, e.Kind)
			require.NotZero(t, e.Incarnation, "life of %q", e.Kind)
			require.False(t, e.Time.Before(last), "the time of %q is before that of the one above", e.Kind)
			last = e.Time
			if e.Kind == "exited" {
				require.Equal(t, errDied.Error(), e.Text, "text of %q", e.Kind)
			}
		}
		require.Equal(t, []string{"restarting", "started", "exited", "restarting", "started", "exited", "restarting", "started"}, got,
			"the last eight events, without the late reply")
	})
}
