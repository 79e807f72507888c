package supervisor_test

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
)

// linesOf is the tree with the time of its oldest requests as it is.
func linesOf(sup *supervisor.Supervisor) []string {
	synctest.Wait()
	return strings.Split(strings.TrimSuffix(sup.Snapshot().String(), "\n"), "\n")
}

// One tail for all kinds: what is not as it should be is shown of a branch as of any child.
func TestTreeShowsWhatIsWrong(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		o := &scripted{}
		below := newSupervisor(t, supervisor.Goroutine)
		_, err := below.RegisterChild(t.Context(), o, supervisor.Restart{Max: 1, GiveUp: supervisor.GiveUpSupervisor})
		require.NoError(t, err, "RegisterChild")
		root := newSupervisor(t, supervisor.Goroutine)
		_, err = root.RegisterChild(t.Context(), below.AsChild(), supervisor.WithName("below"),
			supervisor.Restart{Backoff: supervisor.Backoff{First: time.Minute}})
		require.NoError(t, err, "RegisterChild of the branch")
		require.NoError(t, root.StartLink(context.Background()), "StartLink")
		require.Equal(t, []string{
			"supervisor, running, one-for-one",
			`└─ 0 "below" supervisor, up, one-for-one`,
			"   └─ 0 *supervisor_test.scripted outside, up",
		}, linesOf(root), "the tree")
		o.last().die(errDied)
		synctest.Wait()
		o.last().die(errDied)
		require.Equal(t, []string{
			"supervisor, running, one-for-one",
			`└─ 0 "below" supervisor, waiting, one-for-one, restarts 1, last: restart limit reached: scripted: died`,
			"   └─ 0 *supervisor_test.scripted outside, idle, restarts 1, last: restart limit reached: scripted: died",
		}, linesOf(root), "the tree while the branch waits")
		<-time.After(2 * time.Minute)
		require.Equal(t, `└─ 0 "below" supervisor, up, one-for-one, restarts 1, last: restart limit reached: scripted: died`, linesOf(root)[1],
			"the branch that is up again")
	})
}

func TestTreeShowsStuckRecycledAndOldest(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sup, d := withDesk(t, supervisor.Recycle{MaxRequests: 2}, supervisor.Stop{Grace: time.Second, TermGrace: time.Second})
		for range 2 {
			_, err := supervisor.Call[int](t.Context(), sup, 0, "Double", 1)
			require.NoError(t, err, "Double")
		}
		synctest.Wait()
		send(t, sup, named("deaf", 0, "Deaf", "deaf"))
		require.Equal(t, "└─ 0 *supervisor_test.desk goroutine, up, recycled 1, requests 1+0, oldest Deaf for 0s", linesOf(sup)[1], "after the first life")
		<-time.After(3 * time.Second)
		require.Contains(t, linesOf(sup)[1], ", requests 1+0, oldest Deaf for 3s", "the age of the request")
		require.NoError(t, sup.Restart(t.Context(), 0), "Restart of what ignores its context")
		require.Equal(t, "└─ 0 *supervisor_test.desk goroutine, up, recycled 1, stuck 1, last: child 0 (life N) is stuck in Deaf",
			regexp.MustCompile(`life \d+`).ReplaceAllString(linesOf(sup)[1], "life N"), "after it")
		d.end("deaf", deskEnd{})
	})
}

// The end of a child is seen after that of its supervisor, too, but an end in order is none.
func TestLastExitStays(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		o := &scripted{}
		sup, _ := withScripted(t, o)
		well := register(t, sup, supervisor.Object(newDesk()))
		o.last().die(errDied)
		<-time.After(time.Second)
		shutdown(t, sup)
		require.Equal(t, errDied.Error(), sup.Snapshot().Children[0].LastExit, "after Shutdown")
		require.Empty(t, sup.Snapshot().Children[well].LastExit, "of one that was well")
		require.NoError(t, sup.StartLink(context.Background()), "StartLink again")
		require.Equal(t, errDied.Error(), sup.Snapshot().Children[0].LastExit, "after StartLink, as the count of restarts")
		o.last().die(nil)
		<-time.After(time.Second)
		require.Empty(t, sup.Snapshot().Children[0].LastExit, "after an end in order")
	})
}

// Branches that take their time are asked at the same time.
func TestSnapshotAsksBranchesAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		hold := make(chan struct{})
		root := newSupervisor(t, supervisor.Goroutine)
		var below []*supervisor.Supervisor
		for range 4 {
			s := newSupervisor(t, supervisor.Goroutine)
			register(t, s, supervisor.Object(&teller{hold: hold}))
			_, err := root.RegisterChild(t.Context(), s.AsChild())
			require.NoError(t, err, "RegisterChild")
			below = append(below, s)
		}
		require.NoError(t, root.StartLink(context.Background()), "StartLink")
		for _, s := range below {
			send(t, s, supervisor.NewSendPayload(0, "Hold"))
		}
		synctest.Wait()
		began := time.Now()
		require.Len(t, root.Snapshot().Children, 4, "children")
		require.Equal(t, 100*time.Millisecond, time.Since(began), "time of Snapshot over four branches with a busy object each")
		close(hold)
	})
}

// A whole tree goes to JSON and back.
func TestSnapshotFromJSON(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		tr := newTree(t, supervisor.OneForAll)
		register(t, tr.deep, supervisor.Object(&teller{}), supervisor.WithName("teller"))
		o := &scripted{}
		_, err := tr.mid.RegisterChild(t.Context(), o, supervisor.Restart{Type: supervisor.Temporary})
		require.NoError(t, err, "RegisterChild")
		idle := tr.root.Snapshot()
		require.NoError(t, tr.root.StartLink(context.Background()), "StartLink")
		o.last().die(errDied)
		send(t, tr.deep, named("busy", 0, "Nap", 2*time.Second), named("behind", 0, "Nap", 2*time.Second))
		_, err = supervisor.Call[string](t.Context(), tr.root, 0, "Nap", time.Second)
		require.NoError(t, err, "Nap")
		up := tr.root.Snapshot()
		shutdown(t, tr.root)
		for name, shot := range map[string]supervisor.Snapshot{"idle": idle, "up": up, "stopped": tr.root.Snapshot()} {
			b, err := json.Marshal(shot)
			require.NoError(t, err, "the %s tree to JSON", name)
			var back supervisor.Snapshot
			require.NoError(t, json.Unmarshal(b, &back), "and back: %s", b)
			require.Equal(t, shot.String(), back.String(), "the %s tree in words", name)
			require.Equal(t, shot.Children[1].Tree.Children[1].State, back.Children[1].Tree.Children[1].State, "a state in the %s tree", name)
			again, err := json.Marshal(back)
			require.NoError(t, err, "to JSON again")
			require.JSONEq(t, string(b), string(again), "the %s tree", name)
		}
	})
}

func TestStateFromText(t *testing.T) {
	for s := supervisor.StateIdle; s <= supervisor.StateEnded; s++ {
		text, err := s.MarshalText()
		require.NoError(t, err, "MarshalText of %v", s)
		back := supervisor.State(-1)
		require.NoError(t, back.UnmarshalText(text), "UnmarshalText of %q", text)
		require.Equal(t, s, back, "state that is %q", text)
	}
	s := supervisor.StateUp
	require.ErrorIs(t, s.UnmarshalText([]byte("Up")), supervisor.ErrDecode, "UnmarshalText of no state")
	require.Equal(t, supervisor.StateUp, s, "state after that")
}

func TestSupervisorString(t *testing.T) {
	sup := newSupervisor(t, supervisor.Goroutine)
	require.Equal(t, "supervisor without children", sup.String(), "of a new one")
	register(t, sup, supervisor.Object(newDesk()), supervisor.WithName("front"))
	register(t, sup, newBrittle.With(""))
	require.Equal(t, `supervisor of 0 "front", 1 supervisor_test.brittle`, sup.String(), "of two")
	for range 3 {
		_, err := sup.RegisterChild(t.Context(), &scripted{})
		require.NoError(t, err, "RegisterChild")
	}
	require.Equal(t, `supervisor of 0 "front", 1 supervisor_test.brittle, 2 *supervisor_test.scripted, 2 more`, sup.String(), "of five")
}

// callsItself is a service with a String method of its own.
type callsItself struct{ text func() string }

func (c callsItself) Serve(ctx context.Context) error { <-ctx.Done(); return nil }
func (c callsItself) String() string                  { return c.text() }

func TestNameOfAService(t *testing.T) {
	says := func(s string) supervisor.Spec { return supervisor.Object(callsItself{func() string { return s }}) }
	below := newSupervisor(t, supervisor.Goroutine)
	for name, tt := range map[string]struct {
		spec supervisor.Spec
		opts []supervisor.ChildOption
		want string
	}{
		"its own":              {says("me"), nil, "me"},
		"the first line":       {says("me\x1b\nmyself"), nil, `me\x1b`},
		"that of Register":     {says("me"), []supervisor.ChildOption{supervisor.WithName("given")}, "given"},
		"none after a panic":   {supervisor.Object(callsItself{func() string { panic("no name") }}), nil, ""},
		"none of an object":    {supervisor.Object(newDesk()), nil, ""},
		"none of a supervisor": {supervisor.Object(below), nil, ""},
	} {
		sup := newSupervisor(t, supervisor.Goroutine)
		register(t, sup, tt.spec, tt.opts...)
		require.Equal(t, tt.want, sup.Snapshot().Children[0].Name, "name of a child: %s", name)
	}
}
