package faulttest_test

// Process ids that are given to somebody else, in a namespace that has few of them.

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// amongFewPids runs the rest of the test as the first process of a namespace, where the test decides which ids are next.
func amongFewPids(t *testing.T) bool {
	t.Helper()
	const own = unix.CLONE_NEWPID | unix.CLONE_NEWNS
	probe := exec.CommandContext(t.Context(), "true")
	probe.SysProcAttr = &syscall.SysProcAttr{Cloneflags: own}
	if err := probe.Run(); errors.Is(err, unix.EPERM) {
		t.Skip("it takes privileges to have process ids of one's own")
	}
	if !alone(t, func(cmd *exec.Cmd) { cmd.SysProcAttr.Cloneflags = own }) {
		return false
	}
	require.NoError(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), "leave the mounts of others alone")
	require.NoError(t, unix.Mount("proc", "/proc", "proc", 0, ""), "mount a view of this namespace")
	testkit.NoLeaks(t)
	return true
}

// decoy is a process that ends well unless a signal hits it.
type decoy struct {
	cmd  *exec.Cmd
	word io.Closer
}

// startDecoy starts one that leads its own group, as workers do.
func startDecoy(t testing.TB) (decoy, error) {
	cmd := exec.CommandContext(t.Context(), "cat")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	word, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	return decoy{cmd, word}, err
}

func (d decoy) end() error { return errors.Join(d.word.Close(), d.cmd.Wait()) }

// decoyFor returns a decoy that has this process id, if nobody was faster.
func decoyFor(t *testing.T, pid int) (decoy, bool) {
	t.Helper()
	last := []byte(strconv.Itoa(pid - 1))
	require.NoError(t, os.WriteFile("/proc/sys/kernel/ns_last_pid", last, 0), "say which process id was the last one")
	d, err := startDecoy(t)
	require.NoError(t, err, "start a process in the worker's place")
	if d.cmd.Process.Pid == pid {
		return d, true
	}
	require.NoError(t, d.end(), "end of a process that is not in the worker's place")
	return d, false
}

// A worker's id goes to a stranger as soon as the worker is reaped. Whatever is then done to the child does not concern the
// stranger, also while the life has not ended yet, because a descendant of the worker holds its pipes.
func TestO12PidReuse(t *testing.T) {
	if !amongFewPids(t) {
		return
	}
	sup := newSupervisor(t, supervisor.Process)
	for _, tt := range []struct {
		name string
		end  func(ctx context.Context, id int) error
	}{
		{"Restart", sup.Restart},
		{"Unregister", sup.Unregister},
		{"Shutdown", func(ctx context.Context, _ int) error { return sup.Shutdown(ctx) }},
		{"Close", func(context.Context, int) error { return sup.Close() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for tries := 1; !reusePid(t, sup, tt.end); tries++ {
				require.Less(t, tries, 20, "times that somebody else took the worker's place")
			}
		})
	}
}

// reusePid kills a new worker, gives its id to a stranger and ends the child. It reports whether the stranger got the id.
func reusePid(t *testing.T, sup *supervisor.Supervisor, end func(ctx context.Context, id int) error) bool {
	t.Helper()
	ctx := testkit.Context(t)
	require.NoError(t, sup.StartLink(context.Background()), "StartLink")
	id := register(t, sup, newParent, supervisor.Stop{Grace: -1, TermGrace: -1})
	descendant, err := supervisor.Call[int](ctx, sup, id, "Start", "session")
	require.NoError(t, err, "start of a descendant that holds the pipes")
	children := sup.Snapshot().Children
	pid := children[len(children)-1].Pid
	require.NoError(t, unix.Kill(pid, unix.SIGKILL), "kill the worker")
	testkit.Until(t, "the worker is reaped", func() bool { return unix.Kill(pid, 0) != nil })
	stranger, ok := decoyFor(t, pid)
	_ = end(ctx, id) // whatever it says
	require.NoError(t, unix.Kill(descendant, unix.SIGKILL), "kill the descendant")
	_, err = unix.Wait4(descendant, nil, 0, nil)
	require.NoError(t, err, "wait for the descendant")
	require.NoError(t, sup.Close(), "Close")
	if ok {
		require.NoError(t, stranger.end(), "end of the stranger that has the worker's process id")
	}
	return ok
}

// Short lives are killed at a random moment of theirs, while their ids go to strangers at once. None of these is hit.
func TestC17KillsRaceReaping(t *testing.T) {
	if !amongFewPids(t) {
		return
	}
	const reserved, few = 300, 20
	warmThreads() // before ids become scarce
	for name, n := range map[string]int{"pid_max": reserved + few, "ns_last_pid": reserved} {
		if err := os.WriteFile("/proc/sys/kernel/"+name, []byte(strconv.Itoa(n)), 0); err != nil {
			t.Skipf("older kernels have one limit for all namespaces: %v", err)
		}
	}
	r := childtest.NewRig(t, childtest.Processes())
	r.StartLink(t)
	var over atomic.Bool
	var strangers, starters sync.WaitGroup
	errs := make(chan error, 8)
	for range 3 {
		strangers.Go(func() {
			for !over.Load() {
				d, err := startDecoy(t)
				if err == nil {
					err = d.end()
				}
				if err != nil && !errors.Is(err, unix.EAGAIN) { // which says that there is no id left
					errs <- err
					return
				}
			}
		})
	}
	for range 4 {
		starters.Go(func() {
			for range times(40, 2500) {
				ctx, cancel := context.WithTimeout(r.Ctx, time.Duration(rand.Int64N(int64(5*time.Millisecond))))
				if _, err := r.Kind.Register(ctx, r.Sup, r.Job(), supervisor.Proc{Path: "true"}); err == nil {
					errs <- errors.New("a program that is no worker was started as one")
				}
				cancel()
			}
		})
	}
	starters.Wait()
	over.Store(true)
	strangers.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err, "a stranger, or a start")
	}
}
