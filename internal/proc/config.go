package proc

import (
	"os"
	"syscall"
)

// Config says what to start. The zero value starts the running binary once more, with an empty environment.
type Config struct {
	// Path is the program. It is found by the rules of [os/exec.LookPath], relative to the working directory of the host;
	// no shell is involved. Empty means the running binary: on Linux its open image, which is there even if the file
	// was replaced or removed.
	Path string
	// Argv0 is what the worker sees as its own name. Empty means the path.
	Argv0 string
	// Args are the arguments after the name.
	Args []string
	// Env is the whole environment; nothing is inherited. The marker that makes the process a worker is added.
	Env []string
	// Dir is the working directory; empty means that of the host.
	Dir string
	// Files become descriptors 6, 7, … of the worker. They stay the caller's, who may close them once Start has returned.
	Files []*os.File
	// SysProcAttr holds further attributes. It is copied. The process group, and on Linux Pdeathsig and PidFD, are set
	// by this package whatever it says.
	SysProcAttr *syscall.SysProcAttr

	// Rlimits are set before Start returns. Linux only.
	Rlimits []Rlimit
	// Cgroup is a descriptor of the directory of the cgroup in which the process starts; it stays the caller's. 0 means the
	// host's. Linux only.
	Cgroup int
}
