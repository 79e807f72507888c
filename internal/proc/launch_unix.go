//go:build linux || darwin

package proc

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// launch is one start, from the making of its descriptors to the running process.
type launch struct {
	path string
	argv []string
	attr syscall.ProcAttr
	user []*os.File // become 6, 7, …
	ends ends
	pid  int
	id   identity // filled by fork
	oom  oomWatch
}

func newLaunch(cfg Config) (*launch, error) {
	path, err := resolve(cfg.Path)
	if err != nil {
		return nil, err
	}
	argv0 := cfg.Argv0
	if argv0 == "" {
		argv0 = path
	}
	l := &launch{
		path: path,
		argv: append([]string{argv0}, cfg.Args...),
		attr: syscall.ProcAttr{Dir: cfg.Dir, Env: withMarker(cfg.Env, len(cfg.Files)), Sys: new(syscall.SysProcAttr)},
		user: cfg.Files,
	}
	if cfg.SysProcAttr != nil {
		*l.attr.Sys = *cfg.SysProcAttr
	}
	// A session leader leads a group already, and may not make another one.
	l.attr.Sys.Setpgid = !l.attr.Sys.Setsid
	l.attr.Sys.Pgid = 0
	if cfg.Cgroup > 0 {
		enterCgroup(l.attr.Sys, cfg.Cgroup)
	}
	l.oom = watchOOM(cfg.Cgroup)
	err = l.ends.open()
	if err == nil {
		err = l.id.prepare(l.attr.Sys)
	}
	if err != nil {
		l.abandon()
		return nil, err
	}
	return l, nil
}

// resolve returns the absolute path of a program.
func resolve(path string) (string, error) {
	if path == "" {
		return self()
	}
	if filepath.IsAbs(path) {
		return path, nil
	}
	// A program found in the working directory by way of PATH is the error exec.ErrDot.
	path, err := exec.LookPath(path)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// fork starts the process. It must run on the start thread and may be called again if it failed.
func (l *launch) fork() error {
	files := l.ends.childFiles()
	return withFds(l.user, files, func(files []uintptr) error {
		l.attr.Files = files
		pid, _, err := syscall.StartProcess(l.path, l.argv, &l.attr)
		if err == nil {
			l.pid = pid
		}
		return err
	})
}

// withFds calls f with fds and the descriptors of files behind them, which cannot be closed meanwhile. File.Fd will not do: it
// would make the caller's file blocking.
func withFds(files []*os.File, fds []uintptr, f func([]uintptr) error) error {
	if len(files) == 0 {
		return f(fds)
	}
	conn, err := files[0].SyscallConn()
	if err != nil {
		return fmt.Errorf("file for descriptor %d: %w", len(fds), err)
	}
	var inner error
	if conn.Control(func(fd uintptr) { inner = withFds(files[1:], append(fds, fd), f) }) != nil {
		return fmt.Errorf("file for descriptor %d: %w", len(fds), os.ErrClosed)
	}
	return inner
}

// abandon closes everything of a process that is not going to be.
func (l *launch) abandon() {
	l.ends.closeChild()
	l.ends.closeHost()
	l.id.discard()
	l.oom.close()
}

// process returns the running process, which owns the host's ends. The child's ends are closed: kept open here, they
// would keep end of file from ever coming.
func (l *launch) process(release func()) *Process {
	l.ends.closeChild()
	return &Process{
		Requests: l.ends.requests.host,
		Replies:  l.ends.replies.host,
		Control:  l.ends.control.host,
		Stdout:   l.ends.stdout.host,
		Stderr:   l.ends.stderr.host,
		pid:      l.pid,
		release:  release,
		ending:   ending{oom: l.oom},
		handle:   l.id.handle(l.pid),
	}
}
