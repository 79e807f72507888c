package executor

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// affinity is how many CPUs this thread may run on; 0 if that is not known.
func affinity() int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return 0
	}
	return set.Count()
}

// cgroupQuota is the least quota of this process's cgroup and those above it, in CPUs rounded up; 0 without one.
func cgroupQuota() int {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return 0
	}
	return quotaBelow("/sys/fs/cgroup", string(text))
}

// quotaBelow is cgroupQuota of the groups in text, as in /proc/self/cgroup, below root.
func quotaBelow(root, text string) int {
	least := 0
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		dir, read := "", quotaV2
		for _, controller := range strings.Split(parts[1], ",") {
			if controller == "cpu" {
				dir, read = parts[1], quotaV1
			}
		}
		if parts[1] != "" && dir == "" {
			continue
		}
		// The path may lie above what is mounted here, as in a container: then only the root is there.
		for path := filepath.Clean("/" + parts[2]); ; path = filepath.Dir(path) {
			if n := read(filepath.Join(root, dir, path)); n > 0 && (least == 0 || n < least) {
				least = n
			}
			if path == "/" {
				break
			}
		}
	}
	return least
}

func quotaV2(dir string) int {
	text, err := os.ReadFile(filepath.Join(dir, "cpu.max"))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) != 2 { // an empty file is no limit
		return 0
	}
	return cpus(fields[0], fields[1])
}

func quotaV1(dir string) int {
	quota, err := os.ReadFile(filepath.Join(dir, "cpu.cfs_quota_us"))
	if err != nil {
		return 0
	}
	period, err := os.ReadFile(filepath.Join(dir, "cpu.cfs_period_us"))
	if err != nil {
		return 0
	}
	return cpus(strings.TrimSpace(string(quota)), strings.TrimSpace(string(period)))
}

// cpus is a quota in CPUs; 0 for none, which is written as max or -1.
func cpus(quota, period string) int {
	q, err := strconv.ParseFloat(quota, 64)
	if err != nil || q <= 0 {
		return 0
	}
	p, err := strconv.ParseFloat(period, 64)
	if err != nil || p <= 0 {
		return 0
	}
	return int(math.Ceil(q / p))
}
