package childtest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/testkit"
)

var reportRules = []rule{
	{"a supervisor of children that are up is healthy", healthyWhileUp},
	{"a snapshot shows every child", snapshotShows},
	{"a snapshot does not wait for a busy object", snapshotOfBusy},
	{"events tell a life from its start to its end", eventsOfLife},
}

func healthyWhileUp(t *testing.T, k Kind) {
	r := StartTwo(t, k)
	require.NoError(t, r.Sup.Healthy())
	_, v := r.Occupy(t, r.ID)
	require.NoError(t, r.Sup.Healthy(), "while a handler works")
	v.Release(t, "")
	require.NoError(t, r.Sup.Restart(r.Ctx, r.ID))
	require.NoError(t, r.Sup.Healthy(), "after Restart")
}

func snapshotShows(t *testing.T, k Kind) {
	r := NewRig(t, k)
	r.ID = r.Register(t, r.Job(), supervisor.WithName("ada"))
	shot := r.Sup.Snapshot()
	require.False(t, shot.Running, "Running before the start")
	require.Len(t, shot.Children, 1)
	idle := shot.Children[0]
	require.NotEmpty(t, idle.Type, "what it is")
	require.Equal(t, supervisor.ChildSnapshot{ProcID: r.ID, Name: "ada", Type: idle.Type, Kind: k.Name, State: supervisor.StateIdle}, idle)

	began := time.Now()
	r.StartLink(t)
	p := r.Send(t, r.ID, "Int", 1)
	testkit.Until(t, "the reply is there", func() bool { return r.Sup.Snapshot().Unclaimed == 1 })
	shot = r.Sup.Snapshot()
	require.True(t, shot.Running, "Running")
	require.Zero(t, shot.Open, "Open")
	c := shot.Children[0]
	require.Equal(t, supervisor.StateUp, c.State)
	require.NotZero(t, c.Incarnation)
	require.WithinRange(t, c.Since, began, time.Now())
	require.Equal(t, supervisor.Load{}, c.Load)
	require.Empty(t, c.LastExit)
	require.Equal(t, k.Can.Process, c.Pid != 0, "it has a process id: %d", c.Pid)
	if k.Can.Table {
		require.Equal(t, map[string]any{"count": 10}, c.Object, "of the object's own hook")
	} else {
		require.Nil(t, c.Object, "without a method table the hook is not found")
	}
	require.Equal(t, c.Incarnation, r.Recv(t, p).Incarnation)

	text, err := json.Marshal(shot)
	require.NoError(t, err, "a snapshot is plain data")
	var back map[string]any
	require.NoError(t, json.Unmarshal(text, &back))
	child := back["children"].([]any)[0].(map[string]any)
	require.Equal(t, "up", child["state"])
	require.Equal(t, k.Name, child["kind"])
	require.Equal(t, "ada", child["name"])

	require.NoError(t, r.Sup.Shutdown(r.Ctx))
	shot = r.Sup.Snapshot()
	require.False(t, shot.Running, "Running at the end")
	require.Equal(t, supervisor.StateIdle, shot.Children[0].State)
	require.Zero(t, shot.Children[0].Pid, "process id of a process that is gone")
}

func snapshotOfBusy(t *testing.T, k Kind) {
	r := StartTwo(t, k)
	_, v := r.Occupy(t, r.ID)
	var shot supervisor.Snapshot
	testkit.Within(t, prompt, func() { shot = r.Sup.Snapshot() })
	require.Nil(t, shot.Children[0].Object, "object that is busy")
	require.Equal(t, k.Can.Table, shot.Children[1].Object != nil, "object that is not")
	require.Equal(t, supervisor.Load{InFlight: 1}, shot.Children[0].Load, "the snapshot's own question does not count")
	v.Release(t, "")
}

func eventsOfLife(t *testing.T, k Kind) {
	r := NewRig(t, k)
	r.ID = r.Register(t, r.Job(), supervisor.WithName("ada"))
	r.StartLink(t)
	c := r.Child(t, r.ID)
	require.NoError(t, r.Sup.Restart(r.Ctx, r.ID))
	second := r.Child(t, r.ID)
	require.NoError(t, r.Sup.Shutdown(r.Ctx))
	type event struct {
		kind        supervisor.EventKind
		id          int
		name        string
		incarnation uint64
		pid         int
	}
	var got []event
	last := time.Time{}
	for _, e := range r.Events.All() {
		got = append(got, event{e.Kind, e.ProcID, e.Name, e.Incarnation, e.Pid})
		require.NoError(t, e.Err, "%v", e)
		require.False(t, e.Time.Before(last), "events are in order:\n%s", r.Events)
		last = e.Time
	}
	require.Equal(t, []event{
		{supervisor.EventStarted, r.ID, "ada", c.Incarnation, c.Pid},
		{supervisor.EventStopped, r.ID, "ada", c.Incarnation, c.Pid},
		{supervisor.EventStarted, r.ID, "ada", second.Incarnation, second.Pid},
		{supervisor.EventStopped, r.ID, "ada", second.Incarnation, second.Pid},
		{supervisor.EventShutdown, -1, "", 0, 0},
	}, got)
}
