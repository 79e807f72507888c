package faulttest_test

// What the Python original does wrong when its children fail: somebody waits for ever, or a reply goes to the wrong one.
// One test for each defect that was seen there.

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// relic is the object of children that meet values and errors which do not survive the way.
type relic struct{}

var newRelic = supervisor.Define("faulttest.relic", func(context.Context) (relic, error) { return relic{}, nil })

// relicDust is a value that can be sent and not received, if it is fragile.
type relicDust struct{ fragile bool }

var errRelicDust = errors.New("faulttest: only dust")

// GobEncode is one byte.
func (d relicDust) GobEncode() ([]byte, error) {
	if d.fragile {
		return []byte{1}, nil
	}
	return []byte{0}, nil
}

// GobDecode fails for what is fragile.
func (d *relicDust) GobDecode(b []byte) error {
	if len(b) != 1 || b[0] != 0 {
		return errRelicDust
	}
	return nil
}

// relicError is an error that cannot be rebuilt by those who receive it.
type relicError struct{ relicDust }

func (*relicError) Error() string { return "faulttest: an old error" }

func init() { supervisor.RegisterErrorType[*relicError]("faulttest.relicError") }

// Take returns n.
func (relic) Take(n int, _ relicDust) int { return n }

// Fail returns an error that cannot be rebuilt.
func (relic) Fail() error { return &relicError{relicDust{fragile: true}} }

// Give returns what cannot be received.
func (relic) Give() relicDust { return relicDust{fragile: true} }

// The original drops the error with the process or thread, and whoever calls next waits for ever.
func TestOriginalConstructorError(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		modes := []childtest.Mode{childtest.Fails, childtest.Panics, childtest.Exits}
		if k.Can.Process {
			modes = append(modes, childtest.Quits)
		}
		for _, mode := range modes {
			r := childtest.NewRig(t, k)
			job := r.Job()
			job.Mode = mode
			id := r.Register(t, job)
			testkit.Within(t, shutdownSlack, func() {
				var start *supervisor.StartError
				require.ErrorAs(t, r.Sup.StartLink(r.Ctx), &start, "StartLink of a factory that %s", mode)
				require.Equal(t, id, start.ProcID, "the child that did not start")
				p := supervisor.NewSendPayload(id, "Int", 1)
				require.ErrorIs(t, r.Sup.Send(r.Ctx, p), supervisor.ErrClosed, "Send")
				_, err := supervisor.Call[int](context.Background(), r.Sup, id, "Int", 1)
				require.ErrorIs(t, err, supervisor.ErrClosed, "Call")
			})
		}
	})
}

// The original's child ends without a word when a method raises what is no ordinary error.
func TestOriginalExitOfAMethod(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		r := childtest.Start(t, k)
		p, after := r.Send(t, r.ID, "Panic", "exit"), r.Send(t, r.ID, "Int", 7)
		var panicked *supervisor.PanicError
		require.ErrorAs(t, r.Recv(t, p).Err, &panicked, "verdict of a handler that ends its goroutine")
		require.Equal(t, 7, r.Recv(t, after).Data, "the reply behind it")
		if !k.Can.Process {
			return
		}
		p, after = r.Send(t, r.ID, "Exit", 5), r.Send(t, r.ID, "Int", 7)
		for _, p := range []supervisor.SendPayload{p, after} {
			var exit *supervisor.ExitError
			require.ErrorAs(t, r.Recv(t, p).Err, &exit, "verdict of %s", p.Method)
			require.Equal(t, 5, exit.Code, "exit code")
		}
		r.Fine(t, r.ID)
	})
}

// The original loses the reply on the way, and its caller waits for ever.
func TestOriginalUnserialisableResult(t *testing.T) {
	check := func(t *testing.T, k childtest.Kind, opts ...supervisor.ChildOption) {
		testkit.NoLeaks(t)
		r := childtest.Start(t, k, opts...)
		for _, method := range []string{"Channel", "Strange"} {
			p, after := r.Send(t, r.ID, method), r.Send(t, r.ID, "Int", 7)
			require.ErrorIs(t, r.Recv(t, p).Err, supervisor.ErrEncode, "verdict of %s", method)
			require.Equal(t, 7, r.Recv(t, after).Data, "the reply behind it")
		}
		var remote *supervisor.RemoteError
		require.ErrorAs(t, r.Recv(t, r.Send(t, r.ID, "Fail", "private type")).Err, &remote, "an error of a type that nobody knows")
		sup := started(t, k.Type, newRelic, opts...)
		_, err := sup.Do(testkit.Context(t), supervisor.NewSendPayload(0, "Give"))
		require.ErrorIs(t, err, supervisor.ErrDecode, "a result that can be sent, but not received")
	}
	for _, k := range childtest.Kinds() {
		if k.Can.Process {
			t.Run(k.Name, func(t *testing.T) { check(t, k) })
		}
	}
	t.Run("goroutine that copies", func(t *testing.T) { check(t, childtest.Goroutines(), supervisor.WithCopy()) })
}

// The original answers a request that it cannot decode under the id of the one before.
func TestOriginalUndecodableRequest(t *testing.T) {
	for _, k := range childtest.Kinds() {
		if !k.Can.Process {
			continue // there is nothing to decode
		}
		testkit.NoLeaks(t)
		sup := started(t, k.Type, newRelic)
		reqs := send(t, sup,
			supervisor.NewSendPayload(0, "Take", 1, relicDust{}),
			supervisor.NewSendPayload(0, "Take", 2, relicDust{fragile: true}),
			supervisor.NewSendPayload(0, "Take", 3, relicDust{}))
		for i, p := range reqs {
			got, err := sup.Recv(testkit.Context(t), supervisor.IgnoreErr())
			require.NoError(t, err, "Recv")
			require.Equal(t, p.ReqID, got.ReqID, "request of reply %d", i)
			if i == 1 {
				require.ErrorIs(t, got.Err, supervisor.ErrDecode, "the verdict")
				require.True(t, childtest.CallErrorOf(t, got.Err, 0, "Take").Unexecuted, "it was not executed: %v", got.Err)
			} else {
				require.Equal(t, i+1, got.Data, "the result, err %v", got.Err)
			}
		}
		shutdown(t, sup)
	}
}

// The original raises in whoever happens to receive, and the request is lost.
func TestOriginalErrorThatCannotBeRebuilt(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		sup := started(t, k.Type, newRelic)
		reqs := send(t, sup, supervisor.NewSendPayload(0, "Fail"), supervisor.NewSendPayload(0, "Take", 2, relicDust{}))
		got, err := sup.RecvAll(testkit.Context(t), reqs[1:])
		require.NoError(t, err, "RecvAll of another request")
		require.Equal(t, 2, got[0].Data, "its result")
		got, err = sup.RecvAll(testkit.Context(t), reqs[:1], supervisor.IgnoreErr())
		require.NoError(t, err, "RecvAll")
		var remote *supervisor.RemoteError
		require.ErrorAs(t, got[0].Err, &remote, "the verdict")
		require.Equal(t, "faulttest: an old error", remote.Text, "its text")
		require.Contains(t, remote.Type, "relicError", "its type")
		shutdown(t, sup)
	})
}

// A restart of the original drops what was open without a reply if the child is a process, and waits for all of it, or
// for ever, if it is a thread.
func TestOriginalRestartOfBusyChild(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		r := childtest.Start(t, k, supervisor.Stop{Grace: 50 * time.Millisecond, TermGrace: 50 * time.Millisecond})
		life := r.Child(t, r.ID).Incarnation
		reqs := []supervisor.SendPayload{r.Send(t, r.ID, "HoldOn", "forever")}
		v := r.Gate.Next(t)
		for range 20 {
			reqs = append(reqs, r.Send(t, r.ID, "Enter", "executed"))
		}
		testkit.Within(t, 3*time.Second, func() { require.NoError(t, r.Sup.Restart(r.Ctx, r.ID), "Restart") })
		replies, err := r.Sup.RecvAll(r.Ctx, reqs, supervisor.IgnoreErr())
		require.NoError(t, err, "RecvAll")
		for _, p := range replies {
			require.ErrorIs(t, p.Err, supervisor.ErrRestarted, "verdict of %s", p.Method)
			require.Equal(t, life, p.Incarnation, "the life that it was for")
		}
		r.Fine(t, r.ID)
		if !k.Can.Process {
			v.Release(t, "")
			testkit.Until(t, "the old object is closed", func() bool { return r.Ledger.Counts(t)["close"] == 1 })
		}
		require.Zero(t, r.Ledger.Counts(t)["executed"], "executions of what was queued")
		require.Zero(t, r.Sup.Snapshot().Unclaimed, "replies of the old life")
		shutdown(t, r.Sup)
	})
}

// The original never starts such a child and drops what is sent to it.
func TestOriginalRegisterAfterStart(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		r := childtest.Start(t, k)
		id := r.Register(t, r.Job())
		require.Equal(t, 7, r.Recv(t, r.Send(t, id, "Int", 7)).Data, "reply of the child")
	})
}

// The original takes a negative id for one counted from the end.
func TestOriginalNegativeChild(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		r := childtest.StartTwo(t, k)
		for _, id := range []int{-1, -2, 2} {
			err := r.Sup.Send(r.Ctx, supervisor.NewSendPayload(id, "Enter", "executed"))
			require.ErrorIs(t, err, supervisor.ErrNoSuchChild, "Send to child %d", id)
		}
		r.Fine(t, r.ID)
		r.Fine(t, r.Other)
		require.Empty(t, r.Ledger.Counts(t), "executions")
	})
}
