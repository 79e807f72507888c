package childtest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/testkit"
)

var refusalRules = []rule{
	{"a request that cannot be executed is refused at once, by name and reason", badRequests},
	{"a value that cannot leave is refused if it would have to", unencodable},
	{"a result that cannot leave is an error of that call alone", unencodableResult},
	{"an id is used by one open request at a time", duplicateIDs},
	{"before StartLink there is nobody to ask", notStarted},
	{"after Shutdown there is nobody to ask", afterShutdown},
	{"options that do not fit are refused", badOptions},
}

// prompt is how long a refusal may take.
const prompt = 3 * time.Second

func badRequests(t *testing.T, k Kind) {
	r := StartTwo(t, k)
	held, v := r.Occupy(t, r.Other) // the sibling is busy all the while
	for _, row := range []struct {
		name string
		p    supervisor.SendPayload
		want error
	}{
		{"unknown child", supervisor.NewSendPayload(99, "Int", 1), supervisor.ErrNoSuchChild},
		{"negative child", supervisor.NewSendPayload(-1, "Int", 1), supervisor.ErrNoSuchChild},
		{"unknown method", supervisor.NewSendPayload(r.ID, "Nope"), supervisor.ErrNoSuchMethod},
		{"empty method", supervisor.NewSendPayload(r.ID, ""), supervisor.ErrNoSuchMethod},
		{"unexported method", supervisor.NewSendPayload(r.ID, "unexported"), supervisor.ErrNoSuchMethod},
		{"promoted method", supervisor.NewSendPayload(r.ID, "Promoted"), supervisor.ErrNoSuchMethod},
		{"hook", supervisor.NewSendPayload(r.ID, "Close"), supervisor.ErrNoSuchMethod},
		{"description", supervisor.NewSendPayload(r.ID, "String"), supervisor.ErrNoSuchMethod},
		{"too few arguments", supervisor.NewSendPayload(r.ID, "Add"), supervisor.ErrBadArgs},
		{"too many arguments", supervisor.NewSendPayload(r.ID, "Add", 1, 2), supervisor.ErrBadArgs},
		{"variadic with too few", supervisor.NewSendPayload(r.ID, "Sum"), supervisor.ErrBadArgs},
		{"wrong type", supervisor.NewSendPayload(r.ID, "Add", "one"), supervisor.ErrBadArgs},
		{"wrong type among many", supervisor.NewSendPayload(r.ID, "Sum", 1, 2, "three"), supervisor.ErrBadArgs},
		{"nil for a number", supervisor.NewSendPayload(r.ID, "Add", nil), supervisor.ErrBadArgs},
		{"a fraction for a whole number", supervisor.NewSendPayload(r.ID, "Add", 1.5), supervisor.ErrBadArgs},
		{"a number out of range", supervisor.NewSendPayload(r.ID, "Byte", 256), supervisor.ErrBadArgs},
		{"a negative time limit", supervisor.SendPayload{ProcID: r.ID, ReqID: "negative", Method: "Int", Args: []any{1}, Timeout: -1}, supervisor.ErrBadArgs},
	} {
		testkit.Within(t, prompt, func() {
			_, err := r.Sup.Do(r.Ctx, row.p)
			for by, err := range map[string]error{"Send": r.Sup.Send(r.Ctx, row.p), "TrySend": r.Sup.TrySend(row.p), "Do": err} {
				require.ErrorIs(t, err, row.want, "%s: %s", row.name, by)
				e := CallErrorOf(t, err, row.p.ProcID, row.p.Method)
				require.True(t, e.Unexecuted, "%s: %s: Unexecuted of %v", row.name, by, e)
				require.Equal(t, row.p.ReqID, e.ReqID, "%s: %s", row.name, by)
				require.ErrorContains(t, err, "child", "%s: %s", row.name, by)
			}
		})
	}
	require.Equal(t, 1, r.Sup.Snapshot().Open, "open requests, of which the sibling has one")
	err := r.Sup.Send(r.Ctx, supervisor.SendPayload{ProcID: r.ID, Method: "Int", Args: []any{1}})
	require.ErrorIs(t, err, supervisor.ErrBadArgs, "Send without an id")
	r.Fine(t, r.ID)
	v.Release(t, "undisturbed")
	require.Equal(t, "undisturbed", r.Recv(t, held).Data, "the sibling's reply")
}

func unencodable(t *testing.T, k Kind) {
	r := Start(t, k)
	cyclic := &Tree{Name: "loop"}
	cyclic.Kids = []*Tree{cyclic}
	for _, row := range []struct {
		name, method string
		arg          any
		text         string
	}{
		{"channel", "Any", make(chan int), "chan int"},
		{"function", "Any", func() {}, "func()"},
		{"unregistered type", "Any", Stranger{N: 1}, "Stranger"},
		{"unexported field", "Secret", Secret{Known: 1, hidden: 2}, "hidden"},
		{"value that contains itself", "Tree", cyclic, ""},
	} {
		testkit.Within(t, prompt, func() {
			_, err := r.Sup.Do(r.Ctx, supervisor.NewSendPayload(r.ID, row.method, row.arg))
			if !k.Can.Copy {
				require.NoError(t, err, "%s, by reference", row.name)
				return
			}
			require.ErrorIs(t, err, supervisor.ErrEncode, row.name)
			require.ErrorContains(t, err, row.text, row.name)
			require.True(t, CallErrorOf(t, err, r.ID, row.method).Unexecuted, "%s: %v", row.name, err)
		})
		r.Fine(t, r.ID)
	}
	require.Equal(t, Point{X: 1}, CallOf[Point](t, r, r.ID, "Struct", Point{X: 1}), "other values go on as before")
}

func unencodableResult(t *testing.T, k Kind) {
	r := Start(t, k)
	before := r.Child(t, r.ID).Incarnation
	for _, method := range []string{"Channel", "Strange"} {
		_, err := r.Sup.Do(r.Ctx, supervisor.NewSendPayload(r.ID, method))
		if !k.Can.Copy {
			require.NoError(t, err, "%s, by reference", method)
			continue
		}
		require.ErrorIs(t, err, supervisor.ErrEncode, method)
		require.False(t, CallErrorOf(t, err, r.ID, method).Unexecuted, "%s was executed: %v", method, err)
	}
	r.Fine(t, r.ID)
	require.Equal(t, before, r.Child(t, r.ID).Incarnation, "life after the bad results")
}

func duplicateIDs(t *testing.T, k Kind) {
	r := Start(t, k)
	held, v := r.Occupy(t, r.ID)
	again := supervisor.SendPayload{ProcID: r.ID, ReqID: held.ReqID, Method: "Add", Args: []any{1}}
	err := r.Sup.Send(r.Ctx, again)
	require.ErrorIs(t, err, supervisor.ErrDuplicateRequest, "while it is open")
	require.True(t, CallErrorOf(t, err, r.ID, "Add").Unexecuted, "%v", err)
	v.Release(t, "first")
	testkit.Until(t, "the reply is there", func() bool { return r.Sup.Snapshot().Unclaimed == 1 })
	require.ErrorIs(t, r.Sup.Send(r.Ctx, again), supervisor.ErrDuplicateRequest, "while its reply is unclaimed")
	require.Equal(t, "first", r.Recv(t, held).Data)
	require.NoError(t, r.Sup.Send(r.Ctx, again), "after its reply was taken")
	require.Equal(t, 11, r.Recv(t, again).Data, "only the last one was executed")
}

func notStarted(t *testing.T, k Kind) {
	r := NewRig(t, k)
	r.ID = r.Register(t, r.Job())
	r.refuses(t, supervisor.ErrNotStarted)
	require.ErrorIs(t, r.Sup.Restart(r.Ctx, r.ID), supervisor.ErrNotStarted, "Restart")
	require.ErrorIs(t, r.Sup.Healthy(), supervisor.ErrNotStarted, "Healthy")
	_, err := r.Sup.Recv(r.Ctx)
	require.ErrorIs(t, err, supervisor.ErrNotStarted, "Recv")
	r.StartLink(t)
	r.Fine(t, r.ID)
}

func afterShutdown(t *testing.T, k Kind) {
	r := Start(t, k)
	require.NoError(t, r.Sup.Shutdown(r.Ctx))
	r.refuses(t, supervisor.ErrClosed)
	require.ErrorIs(t, r.Sup.Restart(r.Ctx, r.ID), supervisor.ErrClosed, "Restart")
	require.ErrorIs(t, r.Sup.Healthy(), supervisor.ErrClosed, "Healthy")
	_, err := r.Sup.Recv(r.Ctx)
	require.ErrorIs(t, err, supervisor.ErrClosed, "Recv")
}

// refuses checks that no request is accepted, promptly, whatever way it comes.
func (r *Rig) refuses(t *testing.T, want error) {
	t.Helper()
	testkit.Within(t, prompt, func() {
		p := supervisor.NewSendPayload(r.ID, "Add", 1)
		_, byDo := r.Sup.Do(r.Ctx, p)
		_, byCall := supervisor.Call[int](r.Ctx, r.Sup, r.ID, "Add", 1)
		_, byGo := supervisor.Go[int](r.Ctx, r.Sup, r.ID, "Add", 1).Result(r.Ctx)
		_, byAttr := supervisor.GetChildAttr[int](r.Ctx, r.Sup, r.ID, "Count")
		for by, err := range map[string]error{
			"Send": r.Sup.Send(r.Ctx, p), "TrySend": r.Sup.TrySend(p), "Do": byDo, "Call": byCall, "Go": byGo, "GetChildAttr": byAttr,
		} {
			require.ErrorIs(t, err, want, by)
			var e *supervisor.CallError
			require.ErrorAs(t, err, &e, by)
			require.True(t, e.Unexecuted, "%s: %v", by, err)
		}
		_, byBroadcast := supervisor.Broadcast[int](r.Ctx, r.Sup, "Add", 1)
		require.ErrorIs(t, byBroadcast, want, "Broadcast")
	})
}

func badOptions(t *testing.T, k Kind) {
	r := NewRig(t, k)
	for _, row := range []struct {
		name string
		opt  supervisor.ChildOption
		fits bool
		want error
	}{
		{"Proc", supervisor.Proc{Env: []string{"A=b"}}, k.Can.Process, supervisor.ErrUnsupported},
		{"Limits.Frame", supervisor.Limits{Frame: 1 << 20}, k.Can.Process, supervisor.ErrUnsupported},
		{"WithConcurrency", supervisor.WithConcurrency(2), k.Can.Concurrency, supervisor.ErrUnsupported},
		{"WithTimings", supervisor.WithTimings(), k.Can.Concurrency, supervisor.ErrUnsupported},
		{"WithCopy", supervisor.WithCopy(), k.Can.Specs && !k.Can.Process, supervisor.ErrUnsupported},
		{"negative queue", supervisor.Limits{Queue: -1}, false, supervisor.ErrBadArgs},
		{"negative concurrency", supervisor.WithConcurrency(-1), false, supervisor.ErrBadArgs},
		{"negative start timeout", supervisor.WithStartTimeout(-1), false, supervisor.ErrBadArgs},
		{"unknown restart type", supervisor.Restart{Type: 99}, false, supervisor.ErrBadArgs},
		{"unknown kind", supervisor.WithType(99), false, supervisor.ErrBadArgs},
		{"no option", nil, false, supervisor.ErrBadArgs},
	} {
		_, err := k.Register(r.Ctx, r.Sup, r.Job(), row.opt)
		switch {
		case row.fits:
			require.NoError(t, err, row.name)
		case !k.Can.Concurrency && row.name == "negative concurrency":
			require.ErrorIs(t, err, supervisor.ErrUnsupported, row.name)
		default:
			require.ErrorIs(t, err, row.want, row.name)
		}
	}
}
