package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Limitable says whether a Config may have Rlimits and a Cgroup here.
const Limitable = true

// Rlimit is one limit of setrlimit(2): a resource such as unix.RLIMIT_NOFILE, and the soft and hard limit.
type Rlimit struct {
	Resource int
	Cur, Max uint64
}

// CheckRlimit returns an error if the kernel knows no such limit.
func CheckRlimit(r Rlimit) error {
	var old unix.Rlimit
	if err := unix.Getrlimit(r.Resource, &old); err != nil {
		return fmt.Errorf("supervisor: resource limit %d: %w", r.Resource, err)
	}
	if r.Cur > r.Max {
		return fmt.Errorf("supervisor: resource limit %d: %d is over the hard limit %d", r.Resource, r.Cur, r.Max)
	}
	return nil
}

// CheckCgroup returns [ErrUnsupported] if fd is no directory of a cgroup of version 2.
func CheckCgroup(fd int) error {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return fmt.Errorf("supervisor: cgroup descriptor %d: %w", fd, err)
	}
	if fs.Type != unix.CGROUP2_SUPER_MAGIC {
		return fmt.Errorf("%w: descriptor %d is no directory of a cgroup of version 2", ErrUnsupported, fd)
	}
	return nil
}

// limit sets the limits of a process that has just been started.
func limit(pid int, limits []Rlimit) error {
	for _, r := range limits {
		if err := unix.Prlimit(pid, r.Resource, &unix.Rlimit{Cur: r.Cur, Max: r.Max}, nil); err != nil {
			return fmt.Errorf("supervisor: set resource limit %d: %w", r.Resource, err)
		}
	}
	return nil
}

// oomWatch sees whether the kernel kills for want of memory in the cgroup of a process.
type oomWatch struct {
	events string   // the file that counts; empty if there is none
	file   *os.File // the same, for a cgroup that came as a descriptor
	before int64    // kills before the process was there
}

// watchOOM begins with the cgroup behind fd, or with that of this program, which a process inherits.
func watchOOM(fd int) (w oomWatch) {
	if fd > 0 {
		w.file, _ = os.Open("/proc/self/fd/" + strconv.Itoa(fd) + "/memory.events") // it may have no memory controller
	} else if text, err := os.ReadFile("/proc/self/cgroup"); err == nil {
		for line := range strings.Lines(string(text)) {
			if dir, ok := strings.CutPrefix(line, "0::"); ok {
				w.events = "/sys/fs/cgroup" + strings.TrimSpace(dir) + "/memory.events"
			}
		}
	}
	w.before = w.count()
	return w
}

// count is how many were killed so far, 0 if that cannot be known.
func (w oomWatch) count() int64 {
	var text []byte
	switch {
	case w.file != nil:
		buf := make([]byte, 4096)
		n, err := w.file.ReadAt(buf, 0)
		if n == 0 && err != nil {
			return 0
		}
		text = buf[:n]
	case w.events != "":
		var err error
		if text, err = os.ReadFile(w.events); err != nil {
			return 0
		}
	}
	for line := range strings.Lines(string(text)) {
		if n, ok := strings.CutPrefix(line, "oom_kill "); ok {
			kills, err := strconv.ParseInt(strings.TrimSpace(n), 10, 64)
			if err == nil {
				return kills
			}
		}
	}
	return 0
}

// killed reports whether somebody was killed since, and ends the watch.
func (w oomWatch) killed() bool {
	after := w.count()
	w.close()
	return after > w.before
}

func (w oomWatch) close() {
	if w.file != nil {
		_ = w.file.Close() // only read from
	}
}
