//go:build !linux

package proc

import "fmt"

// Limitable says whether a Config may have Rlimits and a Cgroup here.
const Limitable = false

// Rlimit is one limit of setrlimit(2): a resource, and the soft and hard limit.
type Rlimit struct {
	Resource int
	Cur, Max uint64
}

// CheckRlimit returns [ErrUnsupported].
func CheckRlimit(Rlimit) error { return fmt.Errorf("%w: resource limits", ErrUnsupported) }

// CheckCgroup returns [ErrUnsupported].
func CheckCgroup(int) error { return fmt.Errorf("%w: cgroups", ErrUnsupported) }

func limit(int, []Rlimit) error { return nil }

type oomWatch struct{}

func watchOOM(int) oomWatch { return oomWatch{} }

func (oomWatch) killed() bool { return false }

func (oomWatch) close() {}
