//go:build linux || darwin

package faulttest_test

// Programs that never become workers: the start says which program it was and what became of it.

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// stillborn is a factory that no program defines: those of these tests do not get so far.
var stillborn = supervisor.Declare[int]("faulttest.stillborn")

// deathScript is a program that is not ours.
func deathScript(text string, args ...string) supervisor.Proc {
	return supervisor.Proc{Path: "/bin/sh", Args: append([]string{"-c", text, "sh"}, args...)}
}

// noStart asserts that a child which is added does not start, and that none is left. It returns how long that took, and why.
func (r *deathRig) noStart(t *testing.T, opts ...supervisor.ChildOption) (took time.Duration, err error) {
	t.Helper()
	began := time.Now()
	testkit.Within(t, deathPrompt, func() {
		_, err = r.Sup.Register(context.Background(), stillborn.With(1), opts...)
	})
	took = time.Since(began)
	var start *supervisor.StartError
	require.ErrorAs(t, err, &start, "Register of a program that is no worker")
	require.Len(t, r.Sup.Snapshot().Children, 1, "children after the failed start")
	e := r.Events.WaitFor(t, "failure of the start", func(e supervisor.Event) bool {
		return e.Kind == supervisor.EventStartFailed && e.Incarnation == start.Incarnation
	})
	require.Equal(t, start.Name, e.Name, "name in the event")
	return took, err
}

func TestP12ExitBeforeHandshake(t *testing.T) {
	r := newDeathRig(t)
	for _, tt := range []struct {
		name   string
		script string
		code   int
		signal syscall.Signal
	}{
		{"code 7", "echo no license for today >&2; exit 7", 7, 0},
		{"code 0", "echo no license for today >&2; exit 0", 0, 0},
		{"by a signal", "echo no license for today >&2; kill -9 $$", -1, syscall.SIGKILL},
		{"C92, after the greeting", "head -c 24 <&3 >&2; echo no license for today >&2; exit 7", 7, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := r.noStart(t, deathScript(tt.script), supervisor.WithName("late"))
			var exit *supervisor.ExitError
			require.ErrorAs(t, err, &exit, "error of the start")
			require.Equal(t, tt.code, exit.Code, "%v", err)
			require.Equal(t, tt.signal, exit.Signal, "%v", err)
			require.Empty(t, exit.KilledBy, "%v", err)
			require.Contains(t, exit.Tail, "no license for today", "its last words")
			require.Zero(t, exit.Uptime, "it never was ready")
			require.False(t, errors.Is(err, supervisor.ErrDecode) || errors.Is(err, supervisor.ErrProtocol), "it broke no rule: %v", err)
			for _, text := range []string{"late", "/bin/sh", "no license for today"} {
				require.ErrorContains(t, err, text, "C92: who it was, and why")
			}
		})
	}
	t.Run("C92, program is missing", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "nothing")
		_, err := r.noStart(t, supervisor.Proc{Path: path}, supervisor.WithName("lost"))
		require.ErrorIs(t, err, fs.ErrNotExist, "error of the start")
		require.ErrorContains(t, err, path, "which program it was")
		require.ErrorContains(t, err, "lost", "which child it was")
	})
}

func TestC03FailedHandshakeStartsOnce(t *testing.T) {
	testkit.NoLeaks(t)
	ledger := testkit.NewLedger(t)
	sup := newSupervisor(t, supervisor.Process)
	register(t, sup, stillborn.With(1), deathScript(`echo started >>"$1"; exit 1`, ledger.Path))
	testkit.Within(t, deathPrompt, func() {
		err := sup.StartLink(testkit.Context(t))
		var exit *supervisor.ExitError
		require.ErrorAs(t, err, &exit, "StartLink")
		require.Equal(t, 1, exit.Code, "%v", err)
	})
	testkit.Within(t, deathPrompt, func() { shutdown(t, sup) })
	require.Equal(t, map[string]int{"started": 1}, ledger.Counts(t), "starts of the program")
}

func TestC15HandshakeNeverComes(t *testing.T) {
	r := newDeathRig(t)
	const limit = 300 * time.Millisecond * testkit.Slowdown
	took, err := r.noStart(t, deathScript("echo waiting for the daemon >&2; exec sleep 1000"), supervisor.WithStartTimeout(limit))
	require.GreaterOrEqual(t, took, limit, "time of the start")
	require.ErrorIs(t, err, supervisor.ErrTimeout, "error of the start")
	var exit *supervisor.ExitError
	require.ErrorAs(t, err, &exit, "error of the start")
	require.Equal(t, syscall.SIGKILL, exit.Signal, "%v", err)
	require.NotEmpty(t, exit.KilledBy, "it was the supervisor")
	require.Contains(t, exit.Tail, "waiting for the daemon", "its last words")
	require.ErrorContains(t, err, "waiting for the daemon", "the reason is in the text")
	require.ErrorIs(t, syscall.Kill(exit.Pid, 0), syscall.ESRCH, "process %d", exit.Pid)
}
