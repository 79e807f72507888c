//go:build linux || darwin

package proc

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// pipeSize is the capacity asked for the frame pipes, in bytes: a frame of that size goes over in one piece, without a
// wake-up for each 64 KiB.
const pipeSize = 1 << 20

// ends are the descriptors of one process. The zero value has none.
type ends struct {
	null                                       int
	stdout, stderr, requests, replies, control end
}

// end is one connection between host and child. The child's end blocks: its programs expect that of their standard output.
type end struct {
	host  *os.File
	child int // not inherited but through dup; 0 once closed
}

// open makes all descriptors. After an error some of them are open.
func (e *ends) open() error {
	null, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", os.DevNull, err)
	}
	if e.null, err = clearOfStdio(null); err != nil {
		return err
	}
	if err := e.stdout.pipeToHost("stdout"); err != nil {
		return err
	}
	if err := e.stderr.pipeToHost("stderr"); err != nil {
		return err
	}
	if err := e.requests.pipeToChild("requests"); err != nil {
		return err
	}
	if err := e.replies.pipeToHost("replies"); err != nil {
		return err
	}
	enlarge(e.requests.child)
	enlarge(e.replies.child)
	return e.control.socketpair("control")
}

func (e *ends) all() []*end {
	return []*end{&e.stdout, &e.stderr, &e.requests, &e.replies, &e.control}
}

// childFiles returns what becomes 0 to 5 in the child.
func (e *ends) childFiles() []uintptr {
	return []uintptr{
		uintptr(e.null), uintptr(e.stdout.child), uintptr(e.stderr.child),
		requestsFd: uintptr(e.requests.child), repliesFd: uintptr(e.replies.child), controlFd: uintptr(e.control.child),
	}
}

func (e *ends) closeChild() {
	closeFd(&e.null)
	for _, end := range e.all() {
		closeFd(&end.child)
	}
}

func (e *ends) closeHost() {
	for _, end := range e.all() {
		if end.host != nil {
			_ = end.host.Close()
		}
	}
}

func (e *end) pipeToHost(name string) error {
	r, w, err := newPipe()
	if err != nil {
		return fmt.Errorf("pipe for %s: %w", name, err)
	}
	return e.set(r, w, name)
}

func (e *end) pipeToChild(name string) error {
	r, w, err := newPipe()
	if err != nil {
		return fmt.Errorf("pipe for %s: %w", name, err)
	}
	return e.set(w, r, name)
}

func (e *end) socketpair(name string) error {
	host, child, err := newSocketpair()
	if err != nil {
		return fmt.Errorf("socketpair for %s: %w", name, err)
	}
	return e.set(host, child, name)
}

// set takes over both descriptors, also if it fails.
func (e *end) set(host, child int, name string) error {
	child, childErr := clearOfStdio(child)
	host, err := clearOfStdio(host)
	e.child = child
	if err == nil {
		err = unix.SetNonblock(host, true)
	}
	if err != nil {
		closeFd(&host)
		return fmt.Errorf("%s: %w", name, err)
	}
	e.host = os.NewFile(uintptr(host), name)
	// Without the poller the file would fail with EAGAIN instead of waiting.
	if err := e.host.SetDeadline(time.Time{}); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if childErr != nil {
		return fmt.Errorf("%s: %w", name, childErr)
	}
	return nil
}

// clearOfStdio moves a descriptor out of the way of 0 to 2, which are free in a host that closed its standard streams: a
// stray print would land in our pipe, and a broken pipe on 1 or 2 ends a Go program. After an error fd is closed, and 0
// is returned.
func clearOfStdio(fd int) (int, error) {
	if fd > 2 {
		return fd, nil
	}
	moved, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	_ = unix.Close(fd)
	if err != nil {
		return 0, err
	}
	return moved, nil
}

// closeFd closes a descriptor of ours unless it is 0, which none of them is.
func closeFd(fd *int) {
	if *fd != 0 {
		_ = unix.Close(*fd)
		*fd = 0
	}
}
