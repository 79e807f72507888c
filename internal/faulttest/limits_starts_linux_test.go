package faulttest_test

// Starts that the system refuses.

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

// warmThreads makes the runtime start threads ahead: it cannot, and gives up, while the system grants no process.
func warmThreads() {
	var all, there sync.WaitGroup
	const threads = 24
	there.Add(threads)
	for range threads {
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			there.Done()
			there.Wait()
		})
	}
	all.Wait()
}

// The limit is on the processes of a user, and root has none.
func TestO02NoMoreProcesses(t *testing.T) {
	if !alone(t, asNobody) {
		return
	}
	testkit.NoLeaks(t)
	r := childtest.StartTwo(t, childtest.Processes())
	r.Fine(t, r.ID)
	warmThreads()
	restore := setLimit(t, unix.RLIMIT_NPROC, 1)
	testkit.Within(t, rawPrompt, func() {
		_, err := r.Kind.Register(r.Ctx, r.Sup, r.Job())
		startFault(t, err, syscall.EAGAIN)
	})
	r.Kind.Kill(t, r.Sup, r.ID)
	for range 2 {
		failedStart(t, r, r.ID, syscall.EAGAIN)
		r.Fine(t, r.Other)
	}
	sent := make(chan error, 1)
	p := supervisor.NewSendPayload(r.ID, "Text", "sent while it was away")
	task.Go(func(ctx context.Context) { sent <- r.Sup.Send(ctx, p) })
	restore()
	require.NoError(t, testkit.Receive(t, sent, "Send"), "Send that waited for the next life")
	require.Equal(t, "sent while it was away", r.Recv(t, p).Data, "value of the request that waited")

	var delays []time.Duration
	failures := 0
	for _, e := range r.Events.All() {
		switch {
		case e.ProcID != r.ID:
		case e.Kind == supervisor.EventRestarting:
			delays = append(delays, time.Duration(e.N))
		case e.Kind == supervisor.EventStartFailed:
			failures++
		}
	}
	require.Len(t, delays, failures+1, "a restart for the crash and for each start that failed")
	require.Equal(t, failures+1, r.Child(t, r.ID).Restarts, "restarts that were counted")
	require.Zero(t, delays[0], "delay of the first restart")
	for i, d := range delays[1:] {
		require.GreaterOrEqual(t, d, 50*time.Millisecond, "delay of restart %d, by the policy and its jitter", i+2)
	}
}

// refuseForks makes the kernel refuse, for good, the start of processes that ask for a new namespace of one of these kinds;
// real causes, such as memory that has run out, would hit the whole machine.
func refuseForks(t *testing.T, refusals map[uintptr]syscall.Errno) {
	t.Helper()
	const number, firstArgument = 0, 16 // of the structure that a filter sees
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	result := func(value uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: value} }
	program := []unix.SockFilter{
		load(number),
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_CLONE, Jt: 1},
		result(unix.SECCOMP_RET_ALLOW),
		load(firstArgument),
	}
	for flag, errno := range refusals {
		program = append(program,
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: uint32(flag), Jf: 1},
			result(unix.SECCOMP_RET_ERRNO|uint32(errno)))
	}
	program = append(program, result(unix.SECCOMP_RET_ALLOW))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	require.NoError(t, unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "give up privileges")
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&filter)))
	if errno != 0 {
		t.Skipf("this system has no filters for system calls: %v", errno)
	}
}

func TestO03RefusedStarts(t *testing.T) {
	if !alone(t) {
		return
	}
	testkit.NoLeaks(t)
	refuseForks(t, map[uintptr]syscall.Errno{unix.CLONE_NEWUTS: unix.ENOMEM, unix.CLONE_NEWIPC: unix.EPERM})
	r := childtest.StartTwo(t, childtest.Processes())
	r.Fine(t, r.ID)
	plain := filepath.Join(t.TempDir(), "plain")
	require.NoError(t, os.WriteFile(plain, []byte("no program"), 0o700))
	busy, writer := busyBinary(t)
	flagged := func(flag uintptr) supervisor.Proc {
		return supervisor.Proc{SysProcAttr: &syscall.SysProcAttr{Cloneflags: flag}}
	}
	for _, tt := range []struct {
		name    string
		program supervisor.Proc
		want    syscall.Errno
		retried bool
	}{
		{"no memory", flagged(unix.CLONE_NEWUTS), unix.ENOMEM, false},
		{"not permitted", flagged(unix.CLONE_NEWIPC), unix.EPERM, false},
		{"no such file", supervisor.Proc{Path: "/no/such/program"}, unix.ENOENT, false},
		{"no program", supervisor.Proc{Path: plain}, unix.ENOEXEC, false},
		{"environment too large", supervisor.Proc{Env: []string{"A=" + strings.Repeat("x", 200<<10)}}, unix.E2BIG, false},
		{"still being written", supervisor.Proc{Path: busy}, unix.ETXTBSY, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			open, children := openDescriptors(t), testkit.Children()
			fastest := time.Hour
			for range 5 {
				testkit.Within(t, rawPrompt, func() {
					began := time.Now()
					_, err := r.Kind.Register(r.Ctx, r.Sup, r.Job(), tt.program)
					fastest = min(fastest, time.Since(began))
					startFault(t, err, tt.want)
				})
			}
			const patience = 100 * time.Millisecond // the pauses between the tries are longer together
			require.Equal(t, tt.retried, fastest > patience, "whether it was tried again; the fastest start took %v", fastest)
			r.Fine(t, r.ID)
			r.Fine(t, r.Other)
			require.Equal(t, open, openDescriptors(t), "descriptors after the starts that failed")
			require.Equal(t, children, testkit.Children(), "processes after the starts that failed")
		})
	}
	time.AfterFunc(10*time.Millisecond, func() { _ = writer.Close() })
	id := r.Register(t, r.Job(), supervisor.Proc{Path: busy})
	r.Fine(t, id)
}

// busyBinary is a copy of this program that somebody has open for writing.
func busyBinary(t *testing.T) (path string, writer io.Closer) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "program")
	copySelf(t, path)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err, "open the copy for writing")
	t.Cleanup(func() { _ = f.Close() }) // most often it is closed
	return path, f
}

// copySelf writes this program anew.
func copySelf(t *testing.T, path string) {
	t.Helper()
	binary, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err, "read this program")
	_ = os.Remove(path) // an older copy may be there, and running
	require.NoError(t, os.WriteFile(path, binary, 0o700), "write a copy of it")
}

// What is forked while a file is being written has it open for a moment, too, and that makes it busy (go#22315).
func TestC21JustWrittenBinary(t *testing.T) {
	testkit.NoLeaks(t)
	over, noise := make(chan struct{}), sync.WaitGroup{}
	var env []string // so large that it takes some time from the fork to the end of its copy of our descriptors
	for i := range 14 {
		env = append(env, fmt.Sprintf("V%d=%s", i, strings.Repeat("x", 100<<10)))
	}
	for range 4 {
		noise.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
					cmd := exec.CommandContext(t.Context(), "true")
					cmd.Env = env
					_ = cmd.Run() // only its fork matters
				}
			}
		})
	}
	path := filepath.Join(t.TempDir(), "program")
	for range times(3, 20) {
		sup := newSupervisor(t, supervisor.Process)
		for range times(4, 50) {
			register(t, sup, newGlutton, supervisor.Proc{Path: path})
		}
		copySelf(t, path)
		require.NoError(t, sup.StartLink(t.Context()), "StartLink of binaries that were just written")
		shutdown(t, sup)
	}
	close(over)
	noise.Wait()
}
