package faulttest_test

// What others reported about programs of this kind, and what it is about here.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
	"github.com/workerlink/supervisor/internal/wire"
)

// Looking after a child opens nothing (go-plugin#378).
func TestC08LooksLeakNothing(t *testing.T) {
	testkit.NoLeaks(t)
	r := childtest.StartTwo(t, childtest.Processes())
	r.Fine(t, r.ID)
	r.Fine(t, r.Other)
	open := openDescriptors(t)
	for n := range times(100, 6000) {
		require.NoError(t, r.Sup.Healthy(), "Healthy")
		require.NotZero(t, r.Child(t, r.ID).Pid, "process in the snapshot")
		if n%50 == 49 {
			require.Equal(t, open, openDescriptors(t), "descriptors after %d looks", n+1)
		}
	}
	shutdown(t, r.Sup)
}

// lastWords is what a worker answers before it exits.
var lastWords = strings.Repeat("w", 64<<10)

func init() {
	rawPart("last words", func(w *rawWorker) { // the reply to the first request, and then at once the end
		table := []wire.MethodDesc{{Name: "Echo", In: []string{"int"}, Out: "string"}}
		w.write(wire.AppendFrame(nil, wire.Header{Kind: wire.KindReady}, wire.Ready{Version: wire.Version, Methods: table}.Append(nil)))
		value := append([]byte{0x20}, 0x80, 0x80, 0x04) // a string of 64 KiB
		w.write(rawReply(w.request().num, append(value, lastWords...)))
	})
}

// occupyProcessors makes goroutines wait for their turn, so that the answer and the exit of a worker are seen at once.
func occupyProcessors() (release func()) {
	var over atomic.Bool
	var spinning sync.WaitGroup
	for range 2 * runtime.GOMAXPROCS(0) {
		spinning.Go(func() {
			for !over.Load() {
			}
		})
	}
	return func() {
		over.Store(true)
		spinning.Wait()
	}
}

func TestC19LastReplyIsDelivered(t *testing.T) {
	r := newRawRig(t)
	for n := range times(10, 1000) {
		r.played(t, "last words")
		var got string
		var err error
		testkit.Within(t, rawPrompt, func() {
			defer occupyProcessors()()
			got, err = supervisor.Call[string](testkit.Context(t), r.sup, r.raw, "Echo", n)
		})
		require.NoError(t, err, "call %d of a worker that answers and exits", n)
		require.Len(t, got, len(lastWords), "length of the answer to call %d", n)
		require.Equal(t, lastWords, got, "answer to call %d", n)
		exit(t, r.ends(t))
	}
}

// demotedHost has workers that run as another user, one of which has a child.
var demotedHost = testkit.Helper("host of another user's workers", func() {
	ctx := context.Background()
	var pids []int
	sup, err := supervisor.New(supervisor.Process, supervisor.WithDefaults(supervisor.Proc{
		Dir: "/", SysProcAttr: &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}},
	}))
	for range 2 {
		if err == nil {
			_, err = sup.Register(ctx, newParent)
		}
	}
	if err == nil {
		err = sup.StartLink(ctx)
	}
	if err == nil {
		var pid int
		pid, err = supervisor.Call[int](ctx, sup, 0, "Start", "group")
		for _, c := range sup.Snapshot().Children {
			pids = append(pids, c.Pid)
		}
		pids = append(pids, pid)
	}
	if err == nil {
		err = sup.Send(ctx, supervisor.NewSendPayload(1, "Hang"))
	}
	say(hostReport{Pids: pids}, err)
	<-make(chan struct{})
})

// A change of user takes the death signal away (go#9686).
func TestC22WorkersOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("it takes privileges to start processes of another user")
	}
	testkit.NoLeaks(t)
	h := startHost(t, demotedHost)
	pids := h.report(t, 3).Pids
	alive(t, pids)
	for _, pid := range pids {
		status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
		require.NoError(t, err, "status of process %d", pid)
		require.Contains(t, string(status), fmt.Sprintf("\nUid:\t%d\t", nobody), "user of process %d", pid)
	}
	h.signal(t, h.cmd.Process.Pid, syscall.SIGKILL)
	h.gone(t, pids)
}

// talker is the object of workers that print without end.
type talker struct{ straggler }

var newTalker = supervisor.Define("faulttest.talker", func(context.Context) (talker, error) { return talker{}, nil })

// Start starts a process that lasts.
func (t talker) Start() (int, error) { return t.Spawn() }

// Take returns how much it got.
func (t talker) Take(b []byte) int { return len(b) }

// Talk prints until that fails, and then does nothing, which a context would not change.
func (talker) Talk(fd int) {
	out := map[int]*os.File{1: os.Stdout, 2: os.Stderr}[fd]
	for {
		if _, err := out.WriteString("talk\n"); err != nil {
			<-make(chan struct{})
		}
	}
}

// talkingHost has a worker that prints all the time, on the stream that its argument names, and has a child.
var talkingHost = testkit.Helper("host of a worker that talks", func() {
	ctx := context.Background()
	fd, err := strconv.Atoi(os.Args[1])
	var sup *supervisor.Supervisor
	if err == nil {
		sup, err = supervisor.New(supervisor.Process)
	}
	if err == nil {
		_, err = sup.Register(ctx, newTalker, supervisor.Proc{Stdout: io.Discard, Stderr: io.Discard})
	}
	if err == nil {
		err = sup.StartLink(ctx)
	}
	var pids []int
	if err == nil {
		var pid int
		pid, err = supervisor.Call[int](ctx, sup, 0, "Start")
		pids = []int{sup.Snapshot().Children[0].Pid, pid}
	}
	if err == nil {
		err = sup.Send(ctx, supervisor.NewSendPayload(0, "Talk", fd))
	}
	say(hostReport{Pids: pids}, err)
	<-make(chan struct{})
})

// brokenHost has no standard streams, and a worker that is killed while the host writes to it.
var brokenHost = testkit.Helper("host whose pipe breaks", func() {
	pids, err := breakPipe(context.Background())
	say(hostReport{Pids: pids}, err)
})

func breakPipe(ctx context.Context) (pids []int, err error) {
	sup, err := supervisor.New(supervisor.Process)
	if err != nil {
		return nil, err
	}
	if _, err = sup.Register(ctx, newTalker); err != nil {
		return nil, err
	}
	if err = sup.StartLink(ctx); err != nil {
		return nil, err
	}
	pid := sup.Snapshot().Children[0].Pid
	if err = syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return nil, err
	}
	if err = sup.Send(ctx, supervisor.NewSendPayload(0, "Take", make([]byte, 16<<20))); err != nil {
		return nil, err
	}
	if err = syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return nil, err
	}
	var exit *supervisor.ExitError
	if _, err = sup.Recv(ctx); !errors.As(err, &exit) {
		return nil, fmt.Errorf("verdict of the request that was being written: %w", err)
	}
	n, err := supervisor.Call[int](ctx, sup, 0, "Take", make([]byte, 1<<20))
	if err == nil && n != 1<<20 {
		err = fmt.Errorf("the next life got %d bytes", n)
	}
	return []int{pid}, errors.Join(err, sup.Shutdown(ctx))
}

func TestO11BrokenPipes(t *testing.T) {
	for _, fd := range []int{1, 2} {
		t.Run(fmt.Sprint("of a worker that prints on ", fd), func(t *testing.T) {
			testkit.NoLeaks(t)
			h := startHost(t, talkingHost, strconv.Itoa(fd))
			pids := h.report(t, 2).Pids
			alive(t, pids)
			h.signal(t, h.cmd.Process.Pid, syscall.SIGKILL)
			h.gone(t, pids)
		})
	}
	t.Run("of a host without standard streams", func(t *testing.T) {
		testkit.NoLeaks(t)
		cmd := testkit.Command(t, brokenHost, "-c", `exec "$0" <&- >&- 2>&-`, os.Args[0])
		cmd.Path = "/bin/sh"
		h := runHost(t, cmd)
		h.gone(t, h.report(t, 1).Pids)
		require.Equal(t, 0, h.cmd.ProcessState.ExitCode(), "exit status of the host: %v", h.cmd.ProcessState)
	})
}
