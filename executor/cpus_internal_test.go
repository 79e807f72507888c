//go:build linux

// The files of the kernel can only be made up from inside.
package executor

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestCgroupQuota(t *testing.T) {
	for _, tt := range []struct {
		name  string
		text  string // of /proc/self/cgroup
		files map[string]string
		want  int
	}{
		{"none", "0::/\n", nil, 0},
		{"half a CPU", "0::/\n", map[string]string{"cpu.max": "50000 100000\n"}, 1},
		{"one and a half", "0::/a\n", map[string]string{"a/cpu.max": "150000 100000\n"}, 2},
		{"no limit", "0::/a\n", map[string]string{"a/cpu.max": "max 100000\n"}, 0},
		{"an empty file", "0::/a\n", map[string]string{"a/cpu.max": ""}, 0},
		{"of a group above", "0::/a/b/c\n", map[string]string{"a/b/c/cpu.max": "max 100000", "a/cpu.max": "300000 100000", "cpu.max": "800000 100000"}, 3},
		{"in a container", "0::/../outside\n", map[string]string{"cpu.max": "200000 100000"}, 2},
		{"of version 1", "4:memory:/x\n3:cpu,cpuacct:/a\n0::/\n", map[string]string{
			"cpu,cpuacct/a/cpu.cfs_quota_us": "250000\n", "cpu,cpuacct/a/cpu.cfs_period_us": "100000\n",
		}, 3},
		{"of version 1, without limit", "3:cpu,cpuacct:/a\n", map[string]string{
			"cpu,cpuacct/a/cpu.cfs_quota_us": "-1\n", "cpu,cpuacct/a/cpu.cfs_period_us": "100000\n",
		}, 0},
		{"garbage", "garbage\n0::/a\n", map[string]string{"a/cpu.max": "many more"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			for name, text := range tt.files {
				path := filepath.Join(root, name)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700), "make the group")
				require.NoError(t, os.WriteFile(path, []byte(text), 0o600), "write the file")
			}
			require.Equal(t, tt.want, quotaBelow(root, tt.text), "quota")
		})
	}
}

func TestCPUs(t *testing.T) {
	n := CPUs()
	require.GreaterOrEqual(t, n, 1, "CPUs")
	t.Setenv(maxWorkersVariable, "1")
	require.Equal(t, 1, CPUs(), "CPUs with an upper bound")
	for _, none := range []string{"0", "-3", "many", ""} {
		t.Setenv(maxWorkersVariable, none)
		require.Equal(t, n, CPUs(), "CPUs with a bound of %q", none)
	}
	t.Setenv(maxWorkersVariable, "100000")
	require.Equal(t, n, CPUs(), "CPUs with a bound that is none")

	var set unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &set), "affinity")
	require.Equal(t, set.Count(), affinity(), "affinity")
}

// A thread that may run on one CPU only is enough to see it; it ends with its goroutine, which never gives it back.
func TestL146AffinityToOneCPU(t *testing.T) {
	var before unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &before), "affinity")
	first := 0
	for !before.IsSet(first) {
		first++
	}
	counted := make(chan int)
	go func() {
		runtime.LockOSThread()
		one := unix.CPUSet{}
		one.Set(first)
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			counted <- -1
			return
		}
		counted <- CPUs()
	}()
	require.Equal(t, 1, <-counted, "CPUs")
	t.Setenv(maxWorkersVariable, "2")
	require.LessOrEqual(t, CPUs(), 2, "CPUs with a bound, on another thread")
}
