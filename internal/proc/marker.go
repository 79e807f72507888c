package proc

import (
	"strconv"
	"strings"
)

// The marker is the environment variable that makes a process a worker. Its value is the layout of the descriptors and
// the number of files from descriptor 6 on, as in "1,0".
const (
	markerName   = "SUPERVISOR_WORKER"
	markerLayout = "1"
)

// Descriptors of a worker.
const (
	requestsFd  = 3
	repliesFd   = 4
	controlFd   = 5
	firstFileFd = 6
)

// maxFiles bounds what a marker may claim.
const maxFiles = 1 << 16

func formatMarker(files int) string {
	return markerName + "=" + markerLayout + "," + strconv.Itoa(files)
}

// parseMarker returns the number of files that a marker's value announces.
func parseMarker(value string) (files int, ok bool) {
	layout, count, ok := strings.Cut(value, ",")
	if !ok || layout != markerLayout {
		return 0, false
	}
	files, err := strconv.Atoi(count)
	if err != nil || files < 0 || files > maxFiles {
		return 0, false
	}
	return files, true
}

// withMarker returns env with our marker and no other.
func withMarker(env []string, files int) []string {
	out := make([]string, 0, len(env)+1)
	for _, kv := range env {
		if !strings.HasPrefix(kv, markerName+"=") {
			out = append(out, kv)
		}
	}
	return append(out, formatMarker(files))
}
