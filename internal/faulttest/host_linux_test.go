package faulttest_test

// Hosts in odd places: as process 1, without a home, with signal handlers of their own, and with hardly any processor.

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

// fine waits for the report of a host that must then end in order, and silently.
func (h *host) fine(t *testing.T, processes int) hostReport {
	t.Helper()
	r := h.report(t, processes)
	h.gone(t, r.Pids)
	require.Equal(t, 0, h.cmd.ProcessState.ExitCode(), "exit status of the host: %v", h.cmd.ProcessState)
	require.Empty(t, h.stderr.String(), "stderr of the host")
	return r
}

// Children that the host did not start stay its own business, alive or dead.
func TestH05AdoptingHost(t *testing.T) {
	t.Run("subreaper", func(t *testing.T) {
		testkit.NoLeaks(t)
		r := startHost(t, adoptingHost).fine(t, 0)
		require.Equal(t, []string{"process 1: false, further children: false"}, r.Text, "what the host says")
	})
	t.Run("process 1", func(t *testing.T) {
		testkit.NoLeaks(t)
		cmd := testkit.Command(t, adoptingHost)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_NEWPID}
		if uid, gid := os.Getuid(), os.Getgid(); uid != 0 {
			cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
			cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: gid, Size: 1}}
		}
		trial := *cmd
		trial.Args = []string{cmd.Path, "-test.list=^$"}
		trial.Env = os.Environ()
		if err := trial.Run(); err != nil {
			t.Skipf("this system lets us have no process 1: %v", err)
		}
		r := runHost(t, cmd).fine(t, 0)
		require.Equal(t, []string{"process 1: true, further children: false"}, r.Text, "what the host says")
	})
}

// Process children need no directory, no variable and no file. What is said of sockets comes with them.
func TestH06OddSurroundings(t *testing.T) {
	for _, tt := range []struct{ what, says string }{
		{"no working directory", regexp.QuoteMeta(" (deleted)")},
		{"no environment", ""},
		{"long TMPDIR", "/" + strings.Repeat("x", 150)},
		{"missing TMPDIR", ""},
	} {
		t.Run(tt.what, func(t *testing.T) { oddly(t, tt.what, tt.says) })
	}
}

// A umask does no harm, and there is no file whose mode could follow it.
func TestH07Umask(t *testing.T) {
	was := strconv.Itoa(unix.Umask(0o077))
	mask, _ := strconv.Atoi(was) // our own
	unix.Umask(mask)
	for _, what := range []string{"umask 0", "umask 0777"} {
		t.Run(what, func(t *testing.T) { oddly(t, what, was) })
	}
}

// oddly runs an odd host, and checks that it makes no file.
func oddly(t *testing.T, what, says string) {
	t.Helper()
	testkit.NoLeaks(t)
	tmp := t.TempDir()
	cmd := testkit.Command(t, oddHost, what)
	cmd.Env = append(cmd.Env, "TMPDIR="+tmp)
	r := runHost(t, cmd).fine(t, 2)
	require.Regexp(t, says+"$", strings.Join(r.Text, ""), "what the host says of its surroundings")
	files, err := filepath.Glob(filepath.Join(tmp, "*"))
	require.NoError(t, err, "Glob")
	for _, name := range files {
		require.Equal(t, "long TMPDIR", what, "the library leaves %s", name)
		inside, err := os.ReadDir(name) // which the host itself made
		require.NoError(t, err, "ReadDir")
		require.Empty(t, inside, "what the library leaves in %s", name)
	}
}

// Little to live on makes a host and its workers slow, and nothing else.
func TestH11PoorHost(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  string
		slow bool // both get a tenth of the time
	}{
		{"one processor", "GOMAXPROCS=1", false},
		{"hardly any memory", "GOMEMLIMIT=1MiB", false},
		{"a tenth of a processor", "GOMAXPROCS=1", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			testkit.NoLeaks(t)
			cmd := testkit.Command(t, poorHost, strconv.Itoa(times(50, 5000)))
			cmd.Env = append(cmd.Env, tt.env)
			h := runHost(t, cmd)
			if tt.slow {
				slow := task.Go(func(ctx context.Context) { stutter(ctx, t, h.cmd.Process.Pid) })
				r := h.report(t, 0)
				slow.Stop()
				require.Equal(t, []string{"as it should be"}, r.Text, "what the host says")
			} else {
				require.Equal(t, []string{"as it should be"}, h.report(t, 0).Text, "what the host says")
			}
			require.NoError(t, h.word.Close(), "Close")
			h.gone(t, nil)
			require.Equal(t, 0, h.cmd.ProcessState.ExitCode(), "exit status of the host: %v", h.cmd.ProcessState)
			require.Empty(t, h.stderr.String(), "stderr of the host")
		})
	}
}

// stutter lets a host and its workers run for one of ten milliseconds, as a quota of a control group would.
func stutter(ctx context.Context, t *testing.T, pid int) {
	all := func(sig syscall.Signal) {
		_ = syscall.Kill(pid, sig) // it may have ended
		for _, child := range childrenOf(t, pid) {
			if n, err := strconv.Atoi(child); err == nil {
				_ = syscall.Kill(n, sig) // likewise
			}
		}
	}
	for ctx.Err() == nil {
		all(syscall.SIGSTOP)
		<-time.After(9 * time.Millisecond)
		all(syscall.SIGCONT)
		<-time.After(time.Millisecond)
	}
}

// The library leaves the program's signals to the program.
func TestH12OwnHandlers(t *testing.T) {
	testkit.NoLeaks(t)
	startHost(t, proudHost).fine(t, 0)
}

// To the workers, a host that has become another program is gone; the program has nothing of theirs.
func TestH12HostBecomesAnother(t *testing.T) {
	testkit.NoLeaks(t)
	env := testkit.Command(t, successor).Env
	h := startHost(t, becomingHost, env[len(env)-1])
	pids := h.report(t, 4).Pids
	alive(t, pids)
	testkit.Within(t, 2*time.Second, func() {
		r := h.report(t, 0)
		require.Equal(t, []string{"3", "false"}, r.Text[:2], "workers that ended, and whether there is a marker")
		require.Subset(t, slices.Collect(maps.Values(leftOpen(t))), r.Text[2:], "pipes and sockets that the program has inherited")
	})
	h.gone(t, pids)
	require.Equal(t, 0, h.cmd.ProcessState.ExitCode(), "exit status: %v", h.cmd.ProcessState)
	require.Empty(t, h.stderr.String(), "stderr")
}
