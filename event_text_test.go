package supervisor_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
)

func TestEventString(t *testing.T) {
	boom := errors.New("supervisor: worker 7 exited with code 2\nand more")
	for want, e := range map[string]supervisor.Event{
		`child 3 ("web"), life 9, pid 7: started`:                       {Kind: supervisor.EventStarted, ProcID: 3, Name: "web", Incarnation: 9, Pid: 7},
		`child 3, life 9, pid 7: exited: worker 7 exited with code 2`:   {Kind: supervisor.EventExited, ProcID: 3, Incarnation: 9, Pid: 7, Err: boom},
		`child 3, life 9: restarting in 1.5s`:                           {Kind: supervisor.EventRestarting, ProcID: 3, Incarnation: 9, N: int64(1500 * time.Millisecond)},
		`child 0, life 1: late reply: Work, 4 so far`:                   {Kind: supervisor.EventLateReply, Incarnation: 1, Text: "Work", N: 4},
		`child 0, life 1: panic in Work: boom`:                          {Kind: supervisor.EventPanic, Incarnation: 1, Text: "Work", Err: errors.New("boom")},
		`child 0, pid 5: output: red \x1b[31m`:                          {Kind: supervisor.EventOutput, Pid: 5, Text: "red \x1b[31m", N: 1},
		`child 0, life 1: recycled: it is 1h0m0s old`:                   {Kind: supervisor.EventRecycled, Incarnation: 1, Text: "it is 1h0m0s old"},
		`child 0, life 1: hung: Work ran too long`:                      {Kind: supervisor.EventHung, Incarnation: 1, Text: "goroutine 1 [running]:\nmain", Err: errors.New("Work ran too long")},
		`supervisor: dropped 12 events`:                                 {Kind: supervisor.EventDropped, ProcID: -1, N: 12},
		`supervisor: shutdown`:                                          {Kind: supervisor.EventShutdown, ProcID: -1},
		`supervisor: shutdown: supervisor_test.odd, whose Error method`: {Kind: supervisor.EventShutdown, ProcID: -1, Err: odd{}},
	} {
		if errors.Is(e.Err, odd{}) {
			require.Contains(t, e.String(), want, "an event whose error panics")
			continue
		}
		require.Equal(t, want, e.String(), "event of kind %v", e.Kind)
	}
}

// odd is an error that cannot say what it is.
type odd struct{}

func (odd) Error() string { panic("odd") }

// The delay of a restart is shown in a snapshot as well.
func TestDelayInASnapshot(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		o := &scripted{}
		sup, _ := withScripted(t, o, supervisor.Restart{Backoff: supervisor.Backoff{First: time.Hour}})
		o.last().die(errDied)
		stateOf(sup)
		events := sup.Snapshot().Children[0].Events
		last := events[len(events)-1]
		require.Equal(t, "restarting", last.Kind, "the last event")
		require.Regexp(t, `^in (48|49|5\d|1h)`, last.Text, "its delay, an hour more or less")
	})
}
