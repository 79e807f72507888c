//go:build linux || darwin

package faulttest_test

// What a worker must not be able to do to its host, and what must not be made a worker.

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
	"github.com/workerlink/supervisor/internal/wire"
)

// The program of a worker is a path or a name, never a line for a shell; and this binary is not looked for at all.
func TestZ11ProgramLookup(t *testing.T) {
	testkit.NoLeaks(t)
	dir := t.TempDir()
	planted := func(names ...string) {
		for _, name := range names {
			script := fmt.Sprintf("#!/bin/sh\necho %q runs with \"$@\" >&2\n", name)
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700), "plant %s", name) //nolint:gosec // to be run
		}
	}
	planted("plain", "two words", "semi;colon", filepath.Base(os.Args[0]), "exe")
	t.Chdir(dir)
	for _, tt := range []struct {
		name, search, path string
		args               []string
		runs               string // what the program that runs says; empty if none may
		err                error
	}{
		{"name", dir, "plain", nil, `plain runs with`, nil},
		{"name with a space", dir, "two words", nil, `two words runs with`, nil},
		{"name with a semicolon", dir, "semi;colon", nil, `semi;colon runs with`, nil},
		{"arguments for a shell", dir, "plain", []string{"; touch", "$(touch made)", "`touch made`"}, "runs with ; touch $(touch made) `touch made`", nil},
		{"path from the working directory", "", "./plain", nil, `plain runs with`, nil},
		{"name that is only in the working directory", "/bin:/usr/bin", "plain", nil, "", exec.ErrNotFound},
		{"name in the working directory by way of PATH", ".", "plain", nil, "", exec.ErrDot},
		{"name in the working directory by an empty place in PATH", ":/bin", "plain", nil, "", exec.ErrDot},
		{"command line", dir + ":/bin:/usr/bin", "touch made", nil, "", exec.ErrNotFound},
		{"two commands", dir + ":/bin:/usr/bin", "plain; touch made", nil, "", exec.ErrNotFound},
		{"substitution", dir + ":/bin:/usr/bin", "$(touch made)", nil, "", exec.ErrNotFound},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("PATH", tt.search)
			sup := newSupervisor(t, supervisor.Process)
			register(t, sup, newRaw.With(0), supervisor.Proc{Path: tt.path, Args: tt.args})
			err := sup.StartLink(context.Background())
			var start *supervisor.StartError
			require.ErrorAs(t, err, &start, "StartLink")
			var exit *supervisor.ExitError
			if tt.err != nil {
				require.ErrorIs(t, err, tt.err, "StartLink")
				require.NotErrorAs(t, err, &exit, "StartLink, for which no process may have been started")
			} else {
				require.ErrorAs(t, err, &exit, "StartLink, whose program is none of a worker")
				require.Contains(t, exit.Tail, tt.runs, "what the program says")
			}
			require.NoFileExists(t, filepath.Join(dir, "made"), "what a shell would have made")
		})
	}
	t.Run("this binary", func(t *testing.T) {
		t.Setenv("PATH", dir)
		sup := started(t, supervisor.Process, newPuzzle)
		got, err := supervisor.Call[int](testkit.Context(t), sup, 0, "Length", []byte("abc"))
		require.NoError(t, err, "Call")
		require.Equal(t, 3, got, "its result")
		shutdown(t, sup)
	})
}

// puzzle is the object of workers that get bytes.
type puzzle struct{}

var (
	newPuzzle = supervisor.Define("faulttest.puzzle", func(context.Context) (puzzle, error) { return puzzle{}, nil })
	newRiddle = supervisor.DefineWith("faulttest.riddle", func(context.Context, []byte) (puzzle, error) { return puzzle{}, nil })
)

// Length returns how much it got.
func (puzzle) Length(b []byte) int { return len(b) }

func init() {
	rawPart("pass", func(w *rawWorker) { // descriptor 6, as often as the argument says, on the control socket
		w.ready()
		w.request()
		fds := make([]int, w.number(0))
		for i := range fds {
			fds[i] = 6
		}
		if err := unix.Sendmsg(5, []byte("take this"), unix.UnixRights(fds...), nil, 0); err != nil {
			os.Exit(1)
		}
		_ = unix.Close(6) // all that is left of it is on its way to the host
		w.honest()
	})
	rawPart("takes and never reads", func(w *rawWorker) { // it says that it takes bytes, and reads nothing any more
		table := []wire.MethodDesc{{Name: "Take", In: []string{"[]uint8"}, Out: "int"}}
		ready := wire.Ready{Version: wire.Version, Methods: table}
		w.write(wire.AppendFrame(nil, wire.Header{Kind: wire.KindReady}, ready.Append(nil)))
		<-make(chan struct{})
	})
}

// Nothing asks for descriptors yet, so that all a worker passes are extra. The host must not keep one: its other end would
// never see an end.
func TestZ13UnwantedDescriptors(t *testing.T) {
	for _, n := range []int{1, 2, 253} { // the last is the kernel's limit
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			r := newRawRig(t)
			in, out, err := os.Pipe()
			require.NoError(t, err, "Pipe")
			defer in.Close()
			program := rawProgram(t, "pass", fmt.Sprint(n))
			program.ExtraFiles = []*os.File{out}
			r.raw = register(t, r.sup, newRaw.With(0), program)
			require.NoError(t, out.Close(), "Close")
			call := task.Go(func(ctx context.Context) {
				_, _ = supervisor.Call[int](ctx, r.sup, r.raw, "Echo", 1) // it is not answered
			})
			require.NoError(t, in.SetReadDeadline(time.Now().Add(testkit.Limit)), "SetReadDeadline")
			_, err = in.Read(make([]byte, 1))
			require.ErrorContains(t, err, "EOF", "the end of the pipe, which the host would hold open")
			call.Stop()
			got, err := r.call(t, 7)
			require.NoError(t, err, "the next call, in the same life")
			require.Equal(t, 7, got, "its result")
		})
	}
}

// A worker that does not read can make its host wait for nothing but its own bounds.
func TestZ15DeafWorkers(t *testing.T) {
	const large = 16 << 20 // bytes: more than a pipe takes
	prompt := 300 * time.Millisecond
	t.Run("from the beginning", func(t *testing.T) {
		testkit.NoLeaks(t)
		sup := newSupervisor(t, supervisor.Process)
		program := supervisor.Proc{Path: "/bin/sleep", Args: []string{"300"}}
		register(t, sup, newRiddle.With(make([]byte, large)), program, supervisor.WithStartTimeout(prompt))
		testkit.Within(t, rawPrompt, func() {
			err := sup.StartLink(context.Background())
			var start *supervisor.StartError
			require.ErrorAs(t, err, &start, "StartLink")
			exit(t, err, supervisor.ErrTimeout)
		})
	})
	t.Run("once it serves", func(t *testing.T) {
		r := newRawRig(t)
		const queue = 2
		r.raw = register(t, r.sup, newRaw.With(0), rawProgram(t, "takes and never reads"), supervisor.Limits{Queue: queue},
			supervisor.Stop{Grace: time.Millisecond, TermGrace: time.Millisecond})
		text := make([]byte, large)
		testkit.Within(t, 3*rawPrompt, func() {
			var requests []supervisor.SendPayload
			for range queue {
				requests = append(requests, supervisor.NewSendPayload(r.raw, "Take", text))
			}
			send(t, r.sup, requests...)
			soon, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			defer cancel()
			replies, err := r.sup.RecvAll(soon, requests, supervisor.IgnoreErr())
			require.NoError(t, err, "RecvAll")
			for n, p := range replies {
				require.ErrorIs(t, p.Err, supervisor.ErrTimeout, "reply to request %d", n)
			}
			err = r.sup.TrySend(supervisor.NewSendPayload(r.raw, "Take", text))
			require.ErrorIs(t, err, supervisor.ErrBusy, "TrySend")
			require.NoError(t, r.sup.Unregister(context.Background(), r.raw), "Unregister, which has to kill")
		})
	})
}
