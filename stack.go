package supervisor

import (
	"bytes"
	"runtime"
)

// goroutineID is the number of the calling goroutine as stack dumps show it.
// It is read once per goroutine, so that a stuck one can be found later.
func goroutineID() string {
	var buf [64]byte
	head := bytes.TrimPrefix(buf[:runtime.Stack(buf[:], false)], []byte("goroutine "))
	id, _, _ := bytes.Cut(head, []byte(" "))
	return string(id)
}

const maxStackDump = 16 << 20

// goroutineStack is the stack of the goroutine with this number, or "".
func goroutineStack(id string) string {
	if id == "" {
		return ""
	}
	for size := 64 << 10; ; size *= 4 {
		buf := make([]byte, min(size, maxStackDump))
		n := runtime.Stack(buf, true)
		if stack, ok := findStack(buf[:n], id); ok || n < len(buf) || len(buf) == maxStackDump {
			return stack
		}
	}
}

func findStack(dump []byte, id string) (string, bool) {
	for len(dump) > 0 {
		one, rest, more := bytes.Cut(dump, []byte("\n\n"))
		if bytes.HasPrefix(one, []byte("goroutine "+id+" ")) {
			return string(one), more
		}
		dump = rest
	}
	return "", false
}
