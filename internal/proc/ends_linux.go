package proc

import "golang.org/x/sys/unix"

func newPipe() (r, w int, err error) {
	var p [2]int
	err = unix.Pipe2(p[:], unix.O_CLOEXEC)
	return p[0], p[1], err
}

func newSocketpair() (a, b int, err error) {
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	return p[0], p[1], err
}

// enlarge asks for a larger pipe. It is refused beyond the user's allowance, and the pipe is as good as before.
func enlarge(fd int) { _, _ = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, pipeSize) }

// self is the open image of this program, which cannot be replaced or removed.
func self() (string, error) { return "/proc/self/exe", nil }
