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
		one.Incarnation = 0
		require.Equal(t, supervisor.ChildSnapshot{
			ProcID: 0, Name: "teller", Kind: "goroutine", State: supervisor.StateUp, Since: up, Object: map[string]int{"told": 1},
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
