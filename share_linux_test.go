package supervisor_test

import (
	"context"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// shareholder is an object that sees what its process got.
type shareholder struct {
	Files unix.Rlimit // when its factory ran
	kept  [][]byte
}

var newShareholder = supervisor.Define("supervisor_test.shareholder", func(context.Context) (*shareholder, error) {
	s := &shareholder{}
	return s, unix.Getrlimit(unix.RLIMIT_NOFILE, &s.Files)
})

// Part returns GOMAXPROCS and GOMEMLIMIT, as the runtime keeps them.
func (s *shareholder) Part() []int64 {
	return []int64{int64(runtime.GOMAXPROCS(0)), debug.SetMemoryLimit(-1)}
}

// Limit returns a limit of the process.
func (s *shareholder) Limit(resource int) ([]uint64, error) {
	var r unix.Rlimit
	err := unix.Getrlimit(resource, &r)
	return []uint64{r.Cur, r.Max}, err
}

// Shell returns what a shell says.
func (s *shareholder) Shell(ctx context.Context, line string) (string, error) {
	out, err := exec.CommandContext(ctx, "sh", "-c", line).Output()
	return strings.TrimSpace(string(out)), err
}

// Eat takes memory until there is no more.
func (s *shareholder) Eat(piece int) {
	for {
		s.kept = append(s.kept, make([]byte, piece))
	}
}

// Cgroup returns the cgroup of version 2 in which the process is.
func (s *shareholder) Cgroup() (string, error) { return ownCgroup() }

func ownCgroup() (string, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			return strings.TrimSpace(path), nil
		}
	}
	return "", err
}

// startShareholder starts a worker with options.
func startShareholder(t *testing.T, opts ...supervisor.ChildOption) *childtest.Rig {
	t.Helper()
	testkit.NoLeaks(t)
	r := childtest.NewRig(t, childtest.Processes())
	r.ID = register(t, r.Sup, newShareholder, opts...)
	r.StartLink(t)
	return r
}

func TestShareOfTheRuntime(t *testing.T) {
	own := func(env string, otherwise int64) int64 {
		if n, err := strconv.ParseInt(os.Getenv(env), 10, 64); err == nil {
			return n
		}
		return otherwise
	}
	procs, memory := own("GOMAXPROCS", int64(runtime.NumCPU())), own("GOMEMLIMIT", math.MaxInt64)
	for _, tt := range []struct {
		name string
		opts []supervisor.ChildOption
		want []int64
	}{
		{"none", nil, []int64{procs, memory}},
		{"both", []supervisor.ChildOption{supervisor.Share{CPU: 3, Memory: 777 << 20}}, []int64{3, 777 << 20}},
		{"processors", []supervisor.ChildOption{supervisor.Share{CPU: 1}}, []int64{1, memory}},
		{"memory", []supervisor.ChildOption{supervisor.Share{Memory: 1 << 30}}, []int64{procs, 1 << 30}},
		{
			"the program's own variables win",
			[]supervisor.ChildOption{supervisor.Share{CPU: 3, Memory: 777 << 20}, supervisor.Proc{Env: []string{"GOMAXPROCS=5"}}},
			[]int64{5, 777 << 20},
		},
		{"a clean environment", []supervisor.ChildOption{supervisor.Share{CPU: 3}, supervisor.Proc{CleanEnv: true}}, []int64{3, math.MaxInt64}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := startShareholder(t, tt.opts...)
			require.Equal(t, tt.want, childtest.CallOf[[]int64](t, r, r.ID, "Part"), "GOMAXPROCS and GOMEMLIMIT")
			require.NoError(t, r.Sup.Restart(r.Ctx, r.ID), "Restart")
			require.Equal(t, tt.want, childtest.CallOf[[]int64](t, r, r.ID, "Part"), "GOMAXPROCS and GOMEMLIMIT of the next life")
			shutdown(t, r.Sup)
		})
	}
}

func TestShareOfRlimits(t *testing.T) {
	limits := []supervisor.Rlimit{
		{Resource: unix.RLIMIT_NOFILE, Cur: 222, Max: 222}, // the Go runtime raises the soft limit of this one
		{Resource: unix.RLIMIT_FSIZE, Cur: 1 << 30, Max: 2 << 30},
	}
	r := startShareholder(t, supervisor.Share{Rlimits: limits})
	limits[0].Cur, limits[0].Max = 333, 333 // the caller's again
	for range 2 {
		files, err := supervisor.GetChildAttr[unix.Rlimit](r.Ctx, r.Sup, r.ID, "Files")
		require.NoError(t, err, "Files")
		require.Equal(t, unix.Rlimit{Cur: 222, Max: 222}, files, "limit of open files when the factory ran")
		require.Equal(t, []uint64{1 << 30, 2 << 30}, childtest.CallOf[[]uint64](t, r, r.ID, "Limit", unix.RLIMIT_FSIZE), "limit of file sizes")
		require.Equal(t, "222", childtest.CallOf[string](t, r, r.ID, "Shell", "ulimit -n"), "limit of open files of what the worker starts")
		require.NoError(t, r.Sup.Restart(r.Ctx, r.ID), "Restart")
	}
	var own unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &own), "Getrlimit")
	require.NotEqual(t, uint64(1<<30), own.Cur, "limit of the host")
	shutdown(t, r.Sup)
}

// No process may open more files than the kernel allows any.
func TestShareTheSystemRefuses(t *testing.T) {
	testkit.NoLeaks(t)
	sup := newSupervisor(t, supervisor.Process)
	register(t, sup, newShareholder, supervisor.Share{Rlimits: []supervisor.Rlimit{{Resource: unix.RLIMIT_NOFILE, Cur: 1 << 40, Max: 1 << 40}}})
	err := sup.StartLink(testkit.Context(t))
	var start *supervisor.StartError
	require.ErrorAs(t, err, &start, "StartLink")
	require.ErrorIs(t, err, syscall.EPERM, "StartLink")
}

func TestShareRefusals(t *testing.T) {
	testkit.NoLeaks(t)
	plain, err := os.Open(t.TempDir())
	require.NoError(t, err, "Open")
	defer plain.Close()
	sup := newSupervisor(t, supervisor.Process, supervisor.WithDefaults(supervisor.Share{CPU: 1}))
	limit := func(resource int, soft, hard uint64) supervisor.Share {
		return supervisor.Share{Rlimits: []supervisor.Rlimit{{Resource: resource, Cur: soft, Max: hard}}}
	}
	for _, tt := range []struct {
		name  string
		share supervisor.Share
		want  error
	}{
		{"processors", supervisor.Share{CPU: -1}, supervisor.ErrBadArgs},
		{"memory", supervisor.Share{Memory: -1}, supervisor.ErrBadArgs},
		{"cgroup", supervisor.Share{CgroupFD: -1}, supervisor.ErrBadArgs},
		{"no such limit", limit(1000, 1, 1), supervisor.ErrBadArgs},
		{"soft over hard", limit(unix.RLIMIT_NOFILE, 2, 1), supervisor.ErrBadArgs},
		{"no descriptor", supervisor.Share{CgroupFD: 1 << 20}, supervisor.ErrBadArgs},
		{"no cgroup", supervisor.Share{CgroupFD: int(plain.Fd())}, supervisor.ErrUnsupported},
	} {
		_, err := sup.Register(t.Context(), newShareholder, tt.share)
		require.ErrorIs(t, err, tt.want, tt.name)
		_, err = sup.Register(t.Context(), newShareholder, supervisor.WithType(supervisor.Goroutine), tt.share)
		require.ErrorIs(t, err, supervisor.ErrUnsupported, "%s, of a goroutine child", tt.name)
	}
	_, err = sup.Register(t.Context(), newShareholder, supervisor.WithType(supervisor.Goroutine))
	require.NoError(t, err, "a default that does not fit is left out")
}

// newCgroup makes a cgroup of version 2 below that of the tests; it is skipped where that is not permitted.
func newCgroup(t *testing.T) (dir string) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	require.NoError(t, err, "read the mounts")
	own, err := ownCgroup()
	require.NoError(t, err, "own cgroup")
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); fields[2] == "cgroup2" {
			dir, err = os.MkdirTemp(filepath.Join(fields[1], own), "share-test-") //nolint:usetesting // it has to be there
			if err == nil {
				t.Cleanup(func() { require.NoError(t, os.Remove(dir), "remove the cgroup, which must be empty") })
				return dir
			}
		}
	}
	t.Skipf("this system lets us make no cgroup of version 2: %v", err)
	return ""
}

func TestShareOfACgroup(t *testing.T) {
	dir := newCgroup(t)
	cgroup, err := os.Open(dir)
	require.NoError(t, err, "Open")
	t.Cleanup(func() { _ = cgroup.Close() })
	r := startShareholder(t, supervisor.Share{CgroupFD: int(cgroup.Fd())})
	for range 2 {
		in := childtest.CallOf[string](t, r, r.ID, "Cgroup")
		require.Equal(t, filepath.Base(dir), filepath.Base(in), "cgroup of the worker")
		procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		require.NoError(t, err, "read the processes of the cgroup")
		require.Contains(t, strings.Fields(string(procs)), strconv.Itoa(r.Child(t, r.ID).Pid), "processes of the cgroup")
		require.NoError(t, r.Sup.Restart(r.Ctx, r.ID), "Restart")
	}
	own, err := ownCgroup()
	require.NoError(t, err, "own cgroup")
	require.NotEqual(t, filepath.Base(dir), filepath.Base(own), "cgroup of the host")
	shutdown(t, r.Sup)
}

func TestShareOutOfMemory(t *testing.T) {
	if testkit.Slowdown > 1 {
		t.Skip("the race detector needs more address space than such a limit leaves")
	}
	const room = 4 << 30 // of addresses, most of which the runtime only reserves
	r := startShareholder(t, supervisor.Share{Rlimits: []supervisor.Rlimit{{Resource: unix.RLIMIT_AS, Cur: room, Max: room}}})
	_, err := supervisor.Call[any](r.Ctx, r.Sup, r.ID, "Eat", 64<<20)
	var exit *supervisor.ExitError
	require.ErrorAs(t, err, &exit, "verdict of a request that eats all memory")
	require.True(t, exit.OOM, "OOM of %v", exit)
	require.ErrorContains(t, err, "out of memory", "verdict")
	require.Empty(t, exit.KilledBy, "it was not the supervisor")
	require.Len(t, childtest.CallOf[[]int64](t, r, r.ID, "Part"), 2, "the life after it")
	_, err = supervisor.Call[any](r.Ctx, r.Sup, r.ID, "Shell", "kill -9 $PPID")
	require.ErrorAs(t, err, &exit, "verdict of a request whose worker is killed")
	require.False(t, exit.OOM, "OOM of %v, which had memory enough", exit)
	shutdown(t, r.Sup)
}
