//go:build linux || darwin

package faulttest_test

// Handlers that run for longer than they may.

import (
	"context"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// watchful is an object that counts how often it is asked whether it is well.
type watchful struct {
	gate  string
	asked atomic.Int64
}

var newWatchful = supervisor.DefineWith("faulttest.watchful", func(_ context.Context, gate string) (*watchful, error) {
	return &watchful{gate: gate}, nil
})

// Health is the hook.
func (w *watchful) Health(context.Context) error { w.asked.Add(1); return nil }

// Asked returns the count.
func (w *watchful) Asked() int64 { return w.asked.Load() }

// Hang runs until the gate lets it go, whatever happens.
func (w *watchful) Hang() { _, _ = childtest.WaitAt(context.Background(), w.gate, "hang") }

// Never runs for ever.
func (w *watchful) Never() { select {} }

// The bars of 300 ms more are those of an idle machine.
func TestC91RunTimeIsLimited(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		r := childtest.NewRig(t, k)
		r.ID = register(t, r.Sup, newWatchful.With(r.Gate.Address), supervisor.Stop{TermGrace: 50 * time.Millisecond})
		r.StartLink(t)
		was := r.Child(t, r.ID)
		p := supervisor.NewSendPayload(r.ID, "Hang")
		p.KillAfter = 200 * time.Millisecond
		began := time.Now()
		send(t, r.Sup, p)
		v := r.Gate.Next(t)
		err := r.Recv(t, p).Err
		took := time.Since(began)
		require.ErrorIs(t, err, supervisor.ErrTimeout, "verdict")
		require.GreaterOrEqual(t, took, p.KillAfter, "time to the verdict")
		t.Logf("the verdict took %v", took)
		childtest.CallOf[int64](t, r, r.ID, "Asked") // so that the next life is up
		if k.Can.Process {
			require.ErrorIs(t, syscall.Kill(was.Pid, 0), syscall.ESRCH, "process %d, once the verdict is there", was.Pid)
		} else {
			var stuck *supervisor.StuckError
			require.ErrorAs(t, err, &stuck, "verdict: a goroutine that heeds nothing is left behind")
			require.Equal(t, 1, r.Child(t, r.ID).Stuck, "lives that are left behind")
			v.Release(t, "go")
			testkit.Until(t, "what was left behind is gone", func() bool { return r.Child(t, r.ID).Stuck == 0 })
		}
		now := r.Child(t, r.ID)
		require.Greater(t, now.Incarnation, was.Incarnation, "the life that has taken its place")
		require.Equal(t, 1, now.Restarts, "restarts by the policy")
		shutdown(t, r.Sup)
	})
}
