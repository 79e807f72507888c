package faulttest_test

// However a host ends, it leaves nothing: no worker, none of their groups, no grandchild.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/workerlink/supervisor/internal/testkit"
)

// host is a helper that plays one.
type host struct {
	cmd     *exec.Cmd
	word    io.Closer     // its standard input, whose end is the word
	pipe    *os.File      // that its reports come through
	reports *json.Decoder // of hostReport
	stderr  *bytes.Buffer // complete when the host has ended
	before  []int         // children of the test that are none of the host's
}

// startHost starts a host in a session of its own, as a terminal or a service manager would: nobody who shares the session
// outlives it, so that the kernel continues what is stopped. runHost does so too, unless the command has attributes already.
func startHost(t *testing.T, helper string, args ...string) *host {
	t.Helper()
	return runHost(t, testkit.Command(t, helper, args...))
}

func runHost(t *testing.T, cmd *exec.Cmd) *host {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err, "Pipe")
	t.Cleanup(func() { _ = r.Close() })
	h := &host{cmd: cmd, pipe: r, reports: json.NewDecoder(r), stderr: new(bytes.Buffer), before: testkit.Children()}
	cmd.ExtraFiles, cmd.Stderr = append([]*os.File{w}, cmd.ExtraFiles...), h.stderr
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	h.word, err = cmd.StdinPipe()
	require.NoError(t, err, "StdinPipe")
	require.NoError(t, cmd.Start(), "start the host")
	require.NoError(t, w.Close(), "Close")
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // unless the test has seen its end
		_ = cmd.Wait()
	})
	return h
}

// report returns what the host says next, which must be no error, and as many processes.
func (h *host) report(t *testing.T, processes int) hostReport {
	t.Helper()
	var r hostReport
	require.NoError(t, h.pipe.SetReadDeadline(time.Now().Add(testkit.Limit)), "SetReadDeadline")
	require.NoError(t, h.reports.Decode(&r), "report of the host")
	require.Empty(t, r.Err, "error that the host reports")
	require.Len(t, r.Pids, processes, "processes of the host")
	return r
}

func (h *host) signal(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	require.NoError(t, syscall.Kill(pid, sig), "send %v to %d", sig, pid)
}

// gone waits until the host and all that descends from it have ended. What loses its parent becomes a child of the
// tests, so nothing can be missed; pids have been seen alive. It returns how much CPU time each orphan has taken in its life.
func (h *host) gone(t *testing.T, pids []int) map[int]time.Duration {
	t.Helper()
	took := make(map[int]time.Duration)
	testkit.Within(t, 2*time.Second, func() {
		_ = h.cmd.Wait() // the status is looked at where it matters
		for {
			left := slices.DeleteFunc(testkit.Children(), func(pid int) bool { return slices.Contains(h.before, pid) })
			if len(left) == 0 {
				return
			}
			for _, pid := range left {
				var usage syscall.Rusage
				for {
					if _, err := syscall.Wait4(pid, nil, 0, &usage); !errors.Is(err, syscall.EINTR) {
						break
					}
				}
				took[pid] = time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
			}
		}
	})
	for _, pid := range pids {
		require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "process %d after the end of its host", pid)
	}
	return took
}

// alive checks that the processes are there, so that they can be gone later.
func alive(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		require.NoError(t, syscall.Kill(pid, 0), "process %d while its host lives", pid)
	}
}

func TestH01InterruptOfHost(t *testing.T) {
	interrupt := func(t *testing.T, h *host, pids ...int) {
		t.Helper()
		for _, pid := range pids {
			h.signal(t, pid, syscall.SIGINT)
		}
	}
	for _, tt := range []struct {
		name  string
		start func(t *testing.T, helper string, args ...string) (*host, *os.File)
		hit   func(t *testing.T, h *host, keyboard *os.File, workers []int)
	}{
		{"its group", startHostAlone, func(t *testing.T, h *host, _ *os.File, _ []int) { interrupt(t, h, -h.cmd.Process.Pid) }},
		{"every process", startHostAlone, func(t *testing.T, h *host, _ *os.File, workers []int) {
			interrupt(t, h, append(slices.Clone(workers), -h.cmd.Process.Pid)...)
		}},
		{"control-C at its terminal", startHostAtTerminal, func(t *testing.T, _ *host, keyboard *os.File, _ []int) {
			_, err := keyboard.Write([]byte{3})
			require.NoError(t, err, "type control-C")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			testkit.NoLeaks(t)
			ledger := testkit.NewLedger(t)
			h, keyboard := tt.start(t, orderlyHost, ledger.Path)
			pids := h.report(t, 3).Pids
			alive(t, pids)
			want := make(map[string]int)
			for _, pid := range pids {
				group, err := syscall.Getpgid(pid)
				require.NoError(t, err, "Getpgid(%d)", pid)
				require.Equal(t, pid, group, "group of worker %d", pid)
				want[fmt.Sprint("closed ", pid)] = 1
			}
			tt.hit(t, h, keyboard, pids)
			require.Empty(t, h.report(t, 0).Text, "events that speak of anything but an orderly end")
			h.gone(t, pids)
			require.Equal(t, 0, h.cmd.ProcessState.ExitCode(), "exit status of the host: %v", h.cmd.ProcessState)
			require.Empty(t, h.stderr.String(), "stderr of the host")
			require.Equal(t, want, ledger.Counts(t), "workers that ended in order")
		})
	}
}

func TestH02KilledHost(t *testing.T) {
	for _, tt := range []struct {
		name      string
		state     string
		processes int
		before    func(t *testing.T, h *host, pids []int)
	}{
		{"while workers are idle and busy", "plain", 4, nil},
		{"while the first process appears", "launching", 0, func(t *testing.T, h *host, _ []int) {
			require.NoError(t, h.word.Close(), "Close")
			testkit.Until(t, "the host has a child", func() bool { return len(childrenOf(t, h.cmd.Process.Pid)) > 0 })
		}},
		{"while factories run", "starting", 3, nil},
		{"while 16 MiB are on their way", "sending", 4, func(t *testing.T, _ *host, pids []int) {
			testkit.Until(t, "the pipe is full", func() bool { return inPipe(t, pids[0]) >= 32<<10 })
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			testkit.NoLeaks(t)
			h := startHost(t, doomedHost, tt.state, "")
			pids := h.report(t, tt.processes).Pids
			alive(t, pids)
			if tt.before != nil {
				tt.before(t, h, pids)
			}
			h.signal(t, h.cmd.Process.Pid, syscall.SIGKILL)
			h.gone(t, pids)
		})
	}
}

// childrenOf returns the children of another process.
func childrenOf(t *testing.T, pid int) []string {
	t.Helper()
	lists, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	require.NoError(t, err, "Glob")
	require.NotEmpty(t, lists, "lists of the kernel")
	var pids []string
	for _, name := range lists {
		list, _ := os.ReadFile(name) // of a thread that has ended there is nothing
		pids = append(pids, strings.Fields(string(list))...)
	}
	return pids
}

// inPipe returns how many bytes a worker has not read of what was sent to it.
func inPipe(t *testing.T, worker int) int {
	t.Helper()
	fd, err := unix.Open("/proc/"+strconv.Itoa(worker)+"/fd/3", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	require.NoError(t, err, "open the request pipe of worker %d", worker)
	defer func() { _ = unix.Close(fd) }()
	n, err := unix.IoctlGetInt(fd, unix.TIOCINQ)
	require.NoError(t, err, "bytes in the request pipe")
	return n
}

func TestH03FailingHost(t *testing.T) {
	for _, tt := range []struct {
		end, stderr string
		status      int
	}{
		{"panic", "panic: the host panics", 2},
		{"exit", "", 7},
		{"log", "the host gives up", 1},
		{"fatal", "fatal error: sync: unlock of unlocked mutex", 2},
	} {
		t.Run(tt.end, func(t *testing.T) {
			testkit.NoLeaks(t)
			h := startHost(t, doomedHost, "hasty", tt.end)
			pids := h.report(t, 4).Pids
			alive(t, pids)
			require.NoError(t, h.word.Close(), "Close")
			h.gone(t, pids)
			require.Equal(t, tt.status, h.cmd.ProcessState.ExitCode(), "exit status of the host: %v", h.cmd.ProcessState)
			require.Contains(t, h.stderr.String(), tt.stderr, "stderr of the host")
		})
	}
}

func TestH04TerminatedHost(t *testing.T) {
	for _, tt := range []struct {
		name  string
		sig   syscall.Signal // what ends the host
		start func(t *testing.T, helper string, args ...string) (*host, *os.File)
		send  func(t *testing.T, h *host, terminal *os.File)
	}{
		{"terminated", syscall.SIGTERM, startHostAlone, func(t *testing.T, h *host, _ *os.File) {
			h.signal(t, h.cmd.Process.Pid, syscall.SIGTERM)
		}},
		{"hangup", syscall.SIGHUP, startHostAlone, func(t *testing.T, h *host, _ *os.File) {
			h.signal(t, h.cmd.Process.Pid, syscall.SIGHUP)
		}},
		{"its terminal hangs up", syscall.SIGHUP, startHostAtTerminal, func(t *testing.T, _ *host, terminal *os.File) {
			require.NoError(t, terminal.Close(), "Close")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sig := tt.sig
			if signal.Ignored(sig) { // as under nohup
				t.Skipf("this run was started with %v ignored, and a host inherits that", sig)
			}
			testkit.NoLeaks(t)
			h, terminal := tt.start(t, doomedHost, "hasty", "")
			pids := h.report(t, 4).Pids
			alive(t, pids)
			tt.send(t, h, terminal)
			h.gone(t, pids)
			status, ok := h.cmd.ProcessState.Sys().(syscall.WaitStatus)
			require.True(t, ok && status.Signaled(), "the host ended by a signal: %v", h.cmd.ProcessState)
			require.Equal(t, sig, status.Signal(), "the signal")
		})
	}
}
