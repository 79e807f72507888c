package faulttest_test

// What a worker can see, and what others can see of a worker, as the kernel tells it.

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// keeper is the object of workers that were told a secret.
type keeper struct{ secret string }

var newKeeper = supervisor.DefineWith("faulttest.keeper", func(_ context.Context, secret string) (*keeper, error) {
	return &keeper{secret}, nil
})

// Told reports whether the worker knows a secret.
func (k *keeper) Told(secret string) bool { return k.secret == secret }

// Environ is the worker's environment.
func (k *keeper) Environ() []string { return os.Environ() }

// Shown is the environment and the descriptors of a process that the worker starts without further ado.
func (k *keeper) Shown(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "/bin/sh", "-c", "env; ls -l /proc/$$/fd").Output()
	return string(out), err
}

// shownOf reads a file of the kernel about a process.
func shownOf(t *testing.T, pid int, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), name))
	require.NoError(t, err, "read %s of %d", name, pid)
	return string(text)
}

// openIn are the descriptors of a process and what they are, "self" being this one.
func openIn(t *testing.T, pid string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir("/proc/" + pid + "/fd")
	require.NoError(t, err, "list the descriptors of %s", pid)
	open := make(map[string]string)
	for _, e := range entries {
		if target, err := os.Readlink("/proc/" + pid + "/fd/" + e.Name()); err == nil { // else it is the one that lists
			open[e.Name()] = target
		}
	}
	return open
}

// leftOpen are the descriptors that whoever runs the tests lets them, and so all that they start, inherit.
func leftOpen(t *testing.T) map[string]string {
	t.Helper()
	open := openIn(t, "self")
	for fd := range open {
		n, err := strconv.Atoi(fd)
		require.NoError(t, err, "number of a descriptor")
		flags, err := unix.FcntlInt(uintptr(n), unix.F_GETFD, 0)
		if n < 3 || err != nil || flags&unix.FD_CLOEXEC != 0 {
			delete(open, fd)
		}
	}
	return open
}

// pidOfChild is the process of a child that is up.
func pidOfChild(t *testing.T, sup *supervisor.Supervisor, id int) int {
	t.Helper()
	pid := sup.Snapshot().Children[id].Pid
	require.NotZero(t, pid, "process of child %d", id)
	return pid
}

// A worker has the host's environment unless its child says CleanEnv; then it has what a program cannot well do without and
// what it is given.
func TestZ01SecretsInTheEnvironment(t *testing.T) {
	testkit.NoLeaks(t)
	secrets := []string{"AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK", "HTTPS_PROXY", "LD_LIBRARY_PATH", "GODEBUG", "SUPERVISOR_WORKERS"}
	for _, name := range secrets {
		t.Setenv(name, "http2debug=0")
	}
	t.Setenv("NOTIFY_SOCKET", "@host")
	allowed := []string{"PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR"}
	for _, tt := range []struct {
		name  string
		proc  supervisor.Proc
		check func(t *testing.T, names []string)
	}{
		{"inherited by default", supervisor.Proc{}, func(t *testing.T, names []string) {
			require.Subset(t, names, secrets, "names in the environment")
			require.NotContains(t, names, "NOTIFY_SOCKET", "names in the environment")
		}},
		{"clean", supervisor.Proc{CleanEnv: true}, func(t *testing.T, names []string) {
			require.Subset(t, append(allowed, "SUPERVISOR_WORKER"), names, "names that a clean environment may have")
			require.Contains(t, names, "PATH", "names in the environment")
		}},
		{
			"clean, and what is added",
			supervisor.Proc{CleanEnv: true, Env: []string{"ADDED=1", "SSH_AUTH_SOCK=mine"}},
			func(t *testing.T, names []string) {
				require.Subset(t, append(allowed, "SUPERVISOR_WORKER", "ADDED", "SSH_AUTH_SOCK"), names, "names that it may have")
				require.Subset(t, names, []string{"ADDED", "SSH_AUTH_SOCK"}, "names in the environment")
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sup := started(t, supervisor.Process, newKeeper.With(""), tt.proc)
			kernel := strings.Split(strings.TrimSuffix(shownOf(t, pidOfChild(t, sup, 0), "environ"), "\x00"), "\x00")
			own, err := supervisor.Call[[]string](testkit.Context(t), sup, 0, "Environ")
			require.NoError(t, err, "Call of Environ")
			require.False(t, marked(own), "there is a marker in the worker's own environment: %q", own)
			for _, env := range [][]string{kernel, own} {
				var names []string
				for _, kv := range env {
					name, _, _ := strings.Cut(kv, "=")
					names = append(names, name)
				}
				tt.check(t, names)
			}
			shutdown(t, sup)
		})
	}
}

// There is no token: who has the worker's pipes is its host. What a worker is told goes through them, and shows nowhere.
func TestZ10WhatAWorkerShows(t *testing.T) {
	testkit.NoLeaks(t)
	const secret = "correct horse battery staple"
	sup := newSupervisor(t, supervisor.Process)
	for range 2 {
		register(t, sup, newKeeper.With(secret))
	}
	require.NoError(t, sup.StartLink(context.Background()), "StartLink")
	anyway := leftOpen(t)
	seen := make(map[string]int) // pipes and sockets, and whose they are
	for id := range 2 {
		told, err := supervisor.Call[bool](testkit.Context(t), sup, id, "Told", secret)
		require.NoError(t, err, "Call of Told")
		require.True(t, told, "the worker knows the secret")
		pid := pidOfChild(t, sup, id)
		require.Equal(t, os.Args[0]+"\x00", shownOf(t, pid, "cmdline"), "command line")
		require.NotContains(t, shownOf(t, pid, "environ"), secret, "environment")

		open := openIn(t, strconv.Itoa(pid))
		require.Equal(t, os.DevNull, open["0"], "standard input")
		for fd, kind := range map[string]string{"1": "pipe:", "2": "pipe:", "3": "pipe:", "4": "pipe:", "5": "socket:"} {
			require.Contains(t, open[fd], kind, "descriptor %s", fd)
			require.Zero(t, seen[open[fd]], "descriptor %s of process %d is another one's too", fd, pid)
			seen[open[fd]] = pid
			delete(open, fd)
		}
		delete(open, "0")
		for fd, target := range open {
			// The rest is the Go runtime's own, the second descriptor of the control socket among them, for fatal traces.
			runtimes := strings.HasPrefix(target, "anon_inode:[event") || strings.Contains(target, "/cgroup") || seen[target] == pid
			require.True(t, runtimes || anyway[fd] == target, "descriptor %s is %s", fd, target)
		}

		shown, err := supervisor.Call[string](testkit.Context(t), sup, id, "Shown")
		require.NoError(t, err, "Call of Shown")
		require.NotContains(t, shown, secret, "what the worker's own child shows")
		require.NotContains(t, shown, "SUPERVISOR_WORKER", "what the worker's own child shows")
		for target, owner := range seen {
			require.NotContains(t, shown, target, "what the worker's own child has of process %d", owner)
		}
	}
	shutdown(t, sup)
}
