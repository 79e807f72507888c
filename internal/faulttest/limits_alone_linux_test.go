package faulttest_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/workerlink/supervisor/internal/testkit"
)

// aloneVariable names the test that a process is there for.
const aloneVariable = "FAULTTEST_ALONE"

// alone gives a test a process of its own, because what it does to the process would hurt the other tests: limits, signal
// dispositions, another user. It reports whether this is that process; if not, the test has been run there and is over.
func alone(t *testing.T, changes ...func(*exec.Cmd)) bool {
	t.Helper()
	if os.Getenv(aloneVariable) == t.Name() {
		return true
	}
	testkit.NoLeaks(t)
	levels := strings.Split(t.Name(), "/")
	for i, name := range levels {
		levels[i] = "^" + regexp.QuoteMeta(name) + "$"
	}
	// By way of /proc another user finds the binary, too.
	cmd := exec.CommandContext(testkit.Context(t), "/proc/self/exe", "-test.v", "-test.count=1",
		fmt.Sprint("-test.timeout=", testkit.Limit), "-test.run="+strings.Join(levels, "/"))
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), aloneVariable+"="+t.Name())
	cmd.SysProcAttr = new(syscall.SysProcAttr)
	for _, change := range changes {
		change(cmd)
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s in a process of its own:\n%s", t.Name(), out)
	if strings.Contains(string(out), "--- SKIP: ") {
		t.Skipf("%s", out)
	}
	require.Contains(t, string(out), "--- PASS: "+t.Name()+" ", "what the process has run")
	return false
}

// nobody is a user without privileges.
const nobody = 65534

// asNobody takes the privileges away if there are any.
func asNobody(cmd *exec.Cmd) {
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		cmd.Env = append(cmd.Env, "TMPDIR=/tmp") // ours is not for others
	}
}

// openDescriptors returns what this process has open: the target by number.
func openDescriptors(t testing.TB) map[string]string { t.Helper(); return descriptorsOf(t, "self") }

func descriptorsOf(t testing.TB, process string) map[string]string {
	t.Helper()
	dir := filepath.Join("/proc", process, "fd")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err, "list descriptors")
	open := make(map[string]string)
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err == nil && !strings.HasSuffix(target, "/fd") { // the one that lists them
			open[e.Name()] = target
		}
	}
	return open
}

// setLimit changes the soft limit of a resource for this process, and returns the way back. The hard one stays.
func setLimit(t testing.TB, resource int, n uint64) (restore func()) {
	t.Helper()
	var old unix.Rlimit
	require.NoError(t, unix.Prlimit(0, resource, nil, &old), "read a limit")
	require.NoError(t, unix.Prlimit(0, resource, &unix.Rlimit{Cur: n, Max: old.Max}, nil), "set a limit")
	return func() {
		t.Helper()
		require.NoError(t, unix.Prlimit(0, resource, &old, nil), "restore a limit")
	}
}
