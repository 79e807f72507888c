package proc

import (
	"os"
	"sync"
)

// Worker is the worker's side: what it inherited from its host. Its files are non-blocking and not inherited further.
type Worker struct {
	Requests *os.File // to read from
	Replies  *os.File // to write to
	Control  *os.File // unix stream socket, both ways
	Files    int      // number of the host's files from descriptor 6 on, which are left to the user

	parent int // parent process at the start
}

// inherited is set by init, before any other package looks.
var inherited struct {
	marked bool
	files  int
	parent int
}

// The only effects of linking the package in, and only in a worker: the marker leaves the environment, so that the worker's
// own children are not taken for workers, and the inherited descriptors are closed on exec, so that these do not keep the
// worker's pipes open. It happens here because packages that import this one may start processes as they initialise.
func init() {
	value, ok := os.LookupEnv(markerName)
	if !ok {
		return
	}
	_ = os.Unsetenv(markerName)
	files, ok := parseMarker(value)
	if !ok || !plausible() {
		return
	}
	for fd := requestsFd; fd < firstFileFd+files; fd++ {
		closeOnExec(fd)
	}
	inherited.marked = true
	inherited.files = files
	inherited.parent = os.Getppid()
}

// Inherited returns the worker's side if this process was started by a [Starter], and false in any other process. Each call
// returns the same Worker.
func Inherited() (*Worker, bool) {
	w := openInherited()
	return w, w != nil
}

var openInherited = sync.OnceValue(func() *Worker {
	if !inherited.marked {
		return nil
	}
	return &Worker{
		Requests: openNonblocking(requestsFd, "requests"),
		Replies:  openNonblocking(repliesFd, "replies"),
		Control:  openNonblocking(controlFd, "control"),
		Files:    inherited.files,
		parent:   inherited.parent,
	}
})

// Orphaned reports whether the process that started this one is gone.
func (w *Worker) Orphaned() bool { return os.Getppid() != w.parent }
