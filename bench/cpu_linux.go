package bench

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// cpuTime returns what this process and its children have used so far, from
// the scheduler's own account: the one of the process is in ticks of 10 ms.
func cpuTime() time.Duration {
	total := ofProcess("self")
	lists, _ := filepath.Glob("/proc/self/task/*/children") // a fixed pattern is never bad
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for _, pid := range strings.Fields(string(text)) {
			total += ofProcess(pid)
		}
	}
	return total
}

func ofProcess(pid string) (total time.Duration) {
	stats, _ := filepath.Glob("/proc/" + pid + "/task/*/schedstat") // as above
	for _, stat := range stats {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue
		}
		running, _, _ := strings.Cut(string(text), " ")
		ns, err := strconv.ParseInt(running, 10, 64)
		if err == nil {
			total += time.Duration(ns)
		}
	}
	return total
}
