package proc_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/workerlink/supervisor/internal/proc"
)

// playHost is a host of two workers. It sends each of them the commands in PROC_TEST_COMMANDS, reports their pids, or the
// error, on descriptor 3, and then does what its standard input says.
func playHost(part string) {
	report := os.NewFile(3, "report")
	stdin := os.Stdin
	switch part {
	case "removed":
		if err := os.Remove(os.Args[0]); err != nil {
			say(report, err)
		}
	case "closed":
		fd, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 10)
		if err != nil {
			say(report, err)
		}
		stdin = os.NewFile(uintptr(fd), "stdin")
		for fd := range 3 {
			_ = unix.Close(fd)
		}
	}
	pids, err := startTwo(strings.Split(os.Getenv("PROC_TEST_COMMANDS"), ";"))
	say(report, strings.Join(pids, " "), err)
	_ = report.Close()
	word, _ := bufio.NewReader(stdin).ReadString('\n')
	if word == "panic\n" {
		panic("host")
	}
	os.Exit(0)
}

func say(report *os.File, words ...any) { _, _ = fmt.Fprintln(report, words...) }

func startTwo(commands []string) (pids []string, err error) {
	var s proc.Starter
	for range 2 {
		p, err := s.Start(proc.Config{Env: workerEnv()})
		if err != nil {
			return pids, err
		}
		for _, f := range []*os.File{p.Requests, p.Replies, p.Control, p.Stdout, p.Stderr} {
			if f.Fd() < 3 {
				return pids, errors.New(f.Name() + " is a standard stream of the host")
			}
			_ = unix.SetNonblock(int(f.Fd()), true)
		}
		replies := bufio.NewReader(p.Replies)
		pids = append(pids, strconv.Itoa(p.Pid()))
		for _, command := range commands {
			if _, err := p.Requests.WriteString(command + "\n"); err != nil {
				return pids, err
			}
			reply, err := replies.ReadString('\n')
			if err != nil {
				return pids, err
			}
			if command == "spawn" {
				pids = append(pids, strings.TrimSpace(reply))
			}
		}
	}
	return pids, nil
}

// startHost starts a host in a session of its own, as a service manager would, and returns what it reports.
func startHost(t *testing.T, path, part, commands string) (host *exec.Cmd, tell *os.File, report string) {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = r.Close() }()
	stdin, tell, err := os.Pipe()
	require.NoError(t, err)
	host = exec.CommandContext(t.Context(), path)
	host.Env = append(workerEnv(), "PROC_TEST_HOST="+part, "PROC_TEST_COMMANDS="+commands)
	host.Stdin = stdin
	host.ExtraFiles = []*os.File{w}
	host.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	require.NoError(t, host.Start(), "start a host")
	require.NoError(t, stdin.Close())
	require.NoError(t, w.Close())
	t.Cleanup(func() {
		_ = tell.Close()
		_ = host.Process.Kill()
		_ = host.Wait()
	})
	return host, tell, strings.TrimSpace(readAll(t, r))
}

// H02, H03, H04: a host that is gone takes its workers and their groups with it, however it went.
func TestHostDies(t *testing.T) {
	deaths := []struct {
		name string
		die  func(host *exec.Cmd, tell *os.File) error
	}{
		{"SIGKILL", func(host *exec.Cmd, _ *os.File) error { return host.Process.Kill() }},
		{"SIGTERM", func(host *exec.Cmd, _ *os.File) error { return host.Process.Signal(syscall.SIGTERM) }},
		{"SIGHUP", func(host *exec.Cmd, _ *os.File) error { return host.Process.Signal(syscall.SIGHUP) }},
		{"exit", func(_ *exec.Cmd, tell *os.File) error { return tell.Close() }},
		{"panic", func(_ *exec.Cmd, tell *os.File) error { _, err := tell.WriteString("panic\n"); return err }},
	}
	workers := []struct{ name, commands string }{
		{"end of requests", "hold;kill-group-at-end;spawn"},
		{"death signal alone", "die-by-signal-only;spawn"},
		{"workers are stopped", "die-by-signal-only;spawn;kill-group-at-end"},
	}
	for _, death := range deaths {
		for _, worker := range workers {
			t.Run(death.name+"/"+worker.name, func(t *testing.T) {
				checkLeaks(t)
				host, tell, report := startHost(t, "/proc/self/exe", "plain", worker.commands)
				pids, ok := strings.CutSuffix(report, " <nil>")
				require.True(t, ok, "host reports %s", report)
				var fds, numbers []int
				for _, field := range strings.Fields(pids) {
					pid, err := strconv.Atoi(field)
					require.NoError(t, err, "host reports %s", report)
					fd, err := unix.PidfdOpen(pid, 0)
					require.NoError(t, err, "PidfdOpen(%d)", pid)
					fds, numbers = append(fds, fd), append(numbers, pid)
				}
				require.Len(t, fds, 4, "two workers and a child of each")
				if worker.name == "workers are stopped" {
					for _, leader := range []int{numbers[0], numbers[2]} {
						require.NoError(t, unix.Kill(-leader, unix.SIGSTOP))
					}
					for _, pid := range numbers {
						awaitStopped(t, pid)
					}
				}
				require.NoError(t, death.die(host, tell))
				deadline := time.Now().Add(2 * time.Second * slowdown)
				for i, fd := range fds {
					awaitPidfd(t, fd, numbers[i], time.Until(deadline))
				}
			})
		}
	}
}

// H10: no descriptor of ours takes the place of a closed standard stream.
func TestHostWithoutStandardStreams(t *testing.T) {
	checkLeaks(t)
	_, _, report := startHost(t, "/proc/self/exe", "closed", "print x;echo x")
	require.Regexp(t, `^\d+ \d+ <nil>$`, report, "host reports")
}

func TestHostWhoseBinaryIsGone(t *testing.T) {
	checkLeaks(t)
	binary, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "host")
	require.NoError(t, os.WriteFile(path, binary, 0o700))
	_, _, report := startHost(t, path, "removed", "echo x")
	require.Regexp(t, `^\d+ \d+ <nil>$`, report, "host reports")
}
