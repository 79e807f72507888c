package supervisor

import (
	"bytes"
	"runtime"
	"slices"
	"strings"
)

// goroutineID is the number of the calling goroutine as stack dumps show it.
// It is read once per goroutine, so that a stuck one can be found later.
func goroutineID() string {
	var buf [64]byte
	return idOf(string(buf[:runtime.Stack(buf[:], false)]))
}

// idOf is the number of the goroutine whose stack this is.
func idOf(stack string) string {
	id, _, _ := strings.Cut(strings.TrimPrefix(stack, "goroutine "), " ")
	return id
}

const maxStackDump = 16 << 20

// allStacks are the stacks of all goroutines, that of the caller first. The
// program stands still while they are taken. What does not fit into
// maxStackDump is left out.
func allStacks() []string {
	for size := 64 << 10; ; size *= 4 {
		buf := make([]byte, min(size, maxStackDump))
		if n := runtime.Stack(buf, true); n < len(buf) || len(buf) == maxStackDump {
			return strings.Split(string(bytes.TrimSpace(buf[:n])), "\n\n")
		}
	}
}

// stacksOf are the stacks of some goroutines; of one that has ended there is
// none, nor of "".
func stacksOf(goroutines ...string) string {
	if !slices.ContainsFunc(goroutines, func(id string) bool { return id != "" }) {
		return ""
	}
	var found []string
	for _, stack := range allStacks() {
		if slices.Contains(goroutines, idOf(stack)) {
			found = append(found, stack)
		}
	}
	return strings.Join(found, "\n\n")
}

// stacksBehind are the stacks of all goroutines but the caller's, with those of
// some in front.
func stacksBehind(goroutines ...string) string {
	all := allStacks()[1:]
	rank := func(stack string) int {
		if slices.Contains(goroutines, idOf(stack)) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b string) int { return rank(a) - rank(b) })
	return strings.Join(all, "\n\n")
}
