package supervisor

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/workerlink/supervisor/internal/proc"
)

// Share is the part of the machine that a process child gets. Go programs keep
// CPU and Memory by themselves; Rlimits and CgroupFD are the kernel's, on Linux
// only, and are in force before the factory runs.
type Share struct {
	CPU    int   // processors that run Go code at once, as GOMAXPROCS; 0: the worker's own default
	Memory int64 // soft limit of the Go runtime in bytes, as GOMEMLIMIT; 0: none

	// Rlimits are set for the worker and what it starts. A limit that the host
	// may not set is the error of the start.
	Rlimits []Rlimit

	// CgroupFD is an open directory of the cgroup (version 2) in which the
	// worker starts; it stays the caller's. 0 means the host's cgroup. A kill by
	// the kernel for want of memory in it is [ExitError].OOM.
	CgroupFD int
}

// Rlimit is one limit of setrlimit(2): a resource, such as unix.RLIMIT_NOFILE,
// and its soft and hard limit. A worker is a Go program, whose runtime raises the
// soft limit of RLIMIT_NOFILE to the hard one, so of that Cur is not what the
// worker sees unless it equals Max.
type Rlimit struct {
	Resource int
	Cur, Max uint64
}

func (s Share) applyChild(c *childConfig) {
	s.Rlimits = slices.Clone(s.Rlimits)
	c.share = &s
}

func (s *Share) check() error {
	switch {
	case s == nil:
		return nil
	case s.CPU < 0 || s.Memory < 0 || s.CgroupFD < 0:
		return fmt.Errorf("%w: negative Share", ErrBadArgs)
	case (len(s.Rlimits) > 0 || s.CgroupFD > 0) && !proc.Limitable:
		return fmt.Errorf("%w: Share.Rlimits and Share.CgroupFD on this system", ErrUnsupported)
	}
	for _, r := range s.Rlimits {
		if err := proc.CheckRlimit(proc.Rlimit(r)); err != nil {
			return fmt.Errorf("%w: %s", ErrBadArgs, bare(err))
		}
	}
	if s.CgroupFD > 0 {
		if err := proc.CheckCgroup(s.CgroupFD); err != nil && !errors.Is(err, ErrUnsupported) {
			return fmt.Errorf("%w: %s", ErrBadArgs, bare(err))
		} else if err != nil {
			return err
		}
	}
	return nil
}

// apply brings the share into what is started.
func (s *Share) apply(cfg *proc.Config) {
	if s == nil {
		return
	}
	cfg.Cgroup = s.CgroupFD
	for _, r := range s.Rlimits {
		cfg.Rlimits = append(cfg.Rlimits, proc.Rlimit(r))
	}
}

// env is what the share adds to a worker's environment.
func (s *Share) env() (env []string) {
	if s == nil {
		return nil
	}
	if s.CPU > 0 {
		env = append(env, "GOMAXPROCS="+strconv.Itoa(s.CPU))
	}
	if s.Memory > 0 {
		env = append(env, "GOMEMLIMIT="+strconv.FormatInt(s.Memory, 10))
	}
	return env
}
