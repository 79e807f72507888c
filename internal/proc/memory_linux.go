package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// Measurable says whether PrivateMemory works here.
const Measurable = true

// PrivateMemory returns how much memory a process has resident that it shares with nobody, in bytes: anonymous pages, and not
// those of its program, of files, or of shared memory, which each process would count anew.
func PrivateMemory(pid int) (int64, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, fmt.Errorf("supervisor: memory of a process: %w", err)
	}
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte("RssAnon:")); ok {
			kib, err := strconv.ParseInt(string(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte(" kB"))), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("supervisor: memory of a process: %w", err)
			}
			return kib << 10, nil
		}
	}
	return 0, fmt.Errorf("supervisor: memory of process %d: it has none any more", pid)
}
