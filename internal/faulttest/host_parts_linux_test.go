package faulttest_test

// The hosts of host_linux_test.go: programs in odd places, which use the library there from start to end and report.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// guest is the object of children of a host in an odd place.
type guest struct{}

var newGuest = supervisor.Define("faulttest.guest", func(context.Context) (guest, error) { return guest{}, nil })

// Echo returns its argument.
func (guest) Echo(s string) string { return s }

// hostVisit uses a supervisor from start to end, with a child of each kind; the process child has a second life after
// a SIGKILL. It returns the process ids of both lives.
func hostVisit(ctx context.Context) (pids []int, err error) {
	exits := make(chan supervisor.Event, 16)
	sup, err := supervisor.New(supervisor.Process, supervisor.WithEvents(func(e supervisor.Event) {
		if e.Kind == supervisor.EventExited {
			exits <- e
		}
	}))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sup.Shutdown(ctx)) }()
	process, err := sup.Register(ctx, newGuest)
	if err != nil {
		return nil, err
	}
	goroutine, err := sup.Register(ctx, newGuest, supervisor.WithType(supervisor.Goroutine))
	if err != nil {
		return nil, err
	}
	if err := sup.StartLink(ctx); err != nil {
		return nil, err
	}
	if pids, err = hostEcho(ctx, sup, pids, process, goroutine); err != nil {
		return pids, err
	}
	if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
		return pids, err
	}
	var exit *supervisor.ExitError
	if e := <-exits; !errors.As(e.Err, &exit) || exit.Pid != pids[0] || exit.Signal != syscall.SIGKILL {
		return pids, fmt.Errorf("the end of the first life is told as %w", e.Err)
	}
	return hostEcho(ctx, sup, pids, process, goroutine)
}

// hostEcho has each child echo a megabyte, and adds the process id of the process child, which is the first.
func hostEcho(ctx context.Context, sup *supervisor.Supervisor, pids []int, ids ...int) ([]int, error) {
	text := strings.Repeat("x", 1<<20)
	for _, id := range ids {
		got, err := supervisor.Call[string](ctx, sup, id, "Echo", text)
		if err != nil {
			return pids, err
		}
		if got != text {
			return pids, fmt.Errorf("child %d echoed %d bytes that are others", id, len(got))
		}
	}
	return append(pids, sup.Snapshot().Children[ids[0]].Pid), nil
}

// oddHost uses the library once it has made its surroundings what its first argument says. It reports what it says of
// them, and the processes of its worker, all of them gone by then.
var oddHost = testkit.Helper("odd host", func() {
	text, err := oddities[os.Args[1]]()
	var pids []int
	if err == nil {
		pids, err = hostVisit(context.Background())
	}
	say(hostReport{Pids: pids, Text: []string{text}}, err)
})

// oddities are ways of making a host's surroundings odd.
var oddities = map[string]func() (string, error){
	"no working directory": func() (string, error) {
		dir, err := os.MkdirTemp("", "gone")
		if err == nil {
			err = os.Chdir(dir)
		}
		if err == nil {
			err = os.Remove(dir)
		}
		if err != nil {
			return "", err
		}
		return os.Readlink("/proc/self/cwd")
	},
	"no environment": func() (string, error) {
		os.Clearenv()
		return strings.Join(os.Environ(), " "), nil
	},
	"long TMPDIR": func() (string, error) {
		dir := filepath.Join(os.TempDir(), strings.Repeat("x", 150))
		return dir, errors.Join(os.Mkdir(dir, 0o700), os.Setenv("TMPDIR", dir))
	},
	"missing TMPDIR": func() (string, error) {
		return "", os.Setenv("TMPDIR", filepath.Join(os.TempDir(), "missing"))
	},
	"umask 0":    func() (string, error) { return strconv.Itoa(unix.Umask(0)), nil },
	"umask 0777": func() (string, error) { return strconv.Itoa(unix.Umask(0o777)), nil },
}

// adoptingHost gets children that are none of its own, uses the library, and reports what became of them.
var adoptingHost = testkit.Helper("adopting host", func() {
	text, err := hostAdopts()
	say(hostReport{Text: []string{text}}, err)
})

func hostAdopts() (string, error) {
	ctx := context.Background()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil { // process 1 is one anyway
		return "", err
	}
	lasting, err := hostStranger()
	if err != nil {
		return "", err
	}
	ended, err := hostStranger()
	if err == nil {
		err = syscall.Kill(ended, syscall.SIGKILL)
	}
	if err == nil {
		err = unix.Waitid(unix.P_PID, ended, nil, unix.WEXITED|unix.WNOWAIT, nil)
	}
	if err != nil {
		return "", err
	}
	if _, err := hostVisit(ctx); err != nil {
		return "", err
	}
	var status syscall.WaitStatus
	if pid, err := syscall.Wait4(ended, &status, syscall.WNOHANG, nil); pid != ended || status.Signal() != syscall.SIGKILL {
		return "", fmt.Errorf("a stranger that had ended is reaped: %d, %v, %w", pid, status, err)
	}
	if pid, err := syscall.Wait4(lasting, &status, syscall.WNOHANG, nil); pid != 0 || err != nil {
		return "", fmt.Errorf("a stranger has ended: %d, %v, %w", pid, status, err)
	}
	if err := syscall.Kill(lasting, syscall.SIGKILL); err != nil {
		return "", err
	}
	if _, err := syscall.Wait4(lasting, &status, 0, nil); err != nil {
		return "", err
	}
	_, err = syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
	return fmt.Sprintf("process 1: %t, further children: %t", os.Getpid() == 1, !errors.Is(err, syscall.ECHILD)), nil
}

// hostStranger starts a process whose parent ends at once, so that it becomes a child of the host that the host has not
// started.
func hostStranger() (pid int, err error) {
	out, err := exec.CommandContext(context.Background(), "/bin/sh", "-c", "sleep 300 >&- 2>&- & echo $!").Output()
	if err == nil {
		pid, err = strconv.Atoi(strings.TrimSpace(string(out)))
	}
	return pid, err
}

// proudHost handles signals itself. Its argument is nothing, or what makes a successor of it.
var proudHost = testkit.Helper("host with handlers of its own", func() {
	text, err := hostHandles()
	say(hostReport{Text: text}, err)
})

// hostHandles counts the signals that reach the program's own handlers while it uses the library.
func hostHandles() ([]string, error) {
	before, err := hostSignals()
	if err != nil {
		return nil, err
	}
	got := make(chan os.Signal, 64)
	signal.Notify(got, syscall.SIGCHLD, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1)
	during, err := hostSignals()
	if err != nil {
		return nil, err
	}
	if _, err := hostVisit(context.Background()); err != nil {
		return nil, err
	}
	select {
	case s := <-got:
		if s != syscall.SIGCHLD {
			return nil, fmt.Errorf("the death of a worker is told as %v", s)
		}
	case <-time.After(testkit.Limit):
		return nil, errors.New("the host's own handler is not told of the death of a worker")
	}
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1} {
		if err := syscall.Kill(os.Getpid(), s); err != nil {
			return nil, err
		}
		for {
			if next := <-got; next == s {
				break
			} else if next != syscall.SIGCHLD {
				return nil, fmt.Errorf("%v came as %v", s, next)
			}
		}
	}
	after, err := hostSignals()
	if err == nil && after != during {
		err = fmt.Errorf("the signals were handled as\n%s\nand are as\n%s", during, after)
	}
	signal.Reset()
	if last, e := hostSignals(); err == nil && last != before {
		err = errors.Join(e, fmt.Errorf("the signals were handled as\n%s\nand after Reset they are as\n%s", before, last))
	}
	return nil, err
}

// hostSignals says which signals the process catches and ignores, as the kernel sees it; which are blocked is a thread's.
func hostSignals() (string, error) {
	status, err := os.ReadFile("/proc/self/status")
	var lines []string
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "SigIgn") || strings.HasPrefix(line, "SigCgt") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, ""), err
}

// becomingHost starts workers and becomes another program, the successor. Its argument is the variable that makes it that.
var becomingHost = testkit.Helper("host that becomes another program", func() {
	pids, err := startStragglers("hasty")
	say(hostReport{Pids: pids}, err)
	if _, err := unix.FcntlInt(3, unix.F_SETFD, 0); err != nil {
		say(hostReport{}, err)
	}
	say(hostReport{}, syscall.Exec("/proc/self/exe", os.Args[:1], append(os.Environ(), os.Args[1])))
})

// successor waits for the workers of the program that it was, and reports how many there were and what it has inherited.
var successor = testkit.Helper("successor", func() {
	ended := 0
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(-1, &status, 0, nil)
		if errors.Is(err, syscall.ECHILD) {
			break
		}
		if err == nil {
			ended++
		}
	}
	text := []string{strconv.Itoa(ended), fmt.Sprint(marked(os.Environ()))}
	for fd := 4; fd < 256; fd++ {
		target, err := os.Readlink(fmt.Sprint("/proc/self/fd/", fd))
		if err == nil && (strings.HasPrefix(target, "pipe:") || strings.HasPrefix(target, "socket:") || strings.Contains(target, "pidfd")) {
			text = append(text, target)
		}
	}
	say(hostReport{Text: text}, nil)
})
