package executor

import "runtime"

// maxWorkersVariable is an upper bound for the default of MaxWorkers.
const maxWorkersVariable = "SUPERVISOR_MAX_WORKERS"

// CPUs returns how many workers an executor has by default: the CPUs that this process may use now, by its affinity and by the
// quota of its cgroup, rounded up, and not more than the environment variable SUPERVISOR_MAX_WORKERS says. It is at
// least 1.
func CPUs() int {
	n := runtime.NumCPU()
	if usable := affinity(); usable > 0 {
		n = min(n, usable)
	}
	if quota := cgroupQuota(); quota > 0 {
		n = min(n, quota)
	}
	if most := number(maxWorkersVariable, 0); most > 0 {
		n = min(n, most)
	}
	return max(1, n)
}
