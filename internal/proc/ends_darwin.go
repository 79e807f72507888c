package proc

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Close-on-exec cannot be had from the start on this system; ForkLock keeps processes from being started meanwhile.

func newPipe() (r, w int, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	var p [2]int
	if err := unix.Pipe(p[:]); err != nil {
		return 0, 0, err
	}
	unix.CloseOnExec(p[0])
	unix.CloseOnExec(p[1])
	return p[0], p[1], nil
}

func newSocketpair() (a, b int, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return 0, 0, err
	}
	unix.CloseOnExec(p[0])
	unix.CloseOnExec(p[1])
	return p[0], p[1], nil
}

// enlarge does nothing: the system sizes its pipes by itself.
func enlarge(fd int) {}

// self is the path of this program.
func self() (string, error) { return os.Executable() }
