package faulttest_test

// The hosts of orphans_linux_test.go: programs that are made to end while their workers are at it.

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

// hostReport is what a host says, one at a time, on descriptor 3: it may have no standard output.
type hostReport struct {
	Pids []int    // of its workers, in the order of their ids, then of what they started
	Text []string // what it found out
	Err  string   // empty if all went as it should
}

func say(r hostReport, err error) {
	if err != nil {
		r.Err = err.Error()
	}
	unix.CloseOnExec(3)
	text, err := json.Marshal(r)
	if err == nil {
		_, err = unix.Write(3, append(text, '\n'))
	}
	if err != nil {
		panic(err)
	}
}

// awaitWord returns when the test has written a line or has closed the host's standard input.
func awaitWord() { _, _ = bufio.NewReader(os.Stdin).ReadString('\n') }

// straggler is the object of workers that are in the middle of something when their host ends. What it has to say before a
// reply goes to descriptor 6.
type straggler struct{}

const stragglerFd = 6

var newStraggler = supervisor.DefineWith("supervisor_test.straggler", func(_ context.Context, hang bool) (straggler, error) {
	if hang {
		return straggler{}, straggler{}.Ignore()
	}
	return straggler{}, nil
})

// Ignore says which process it is and never returns; a context would not help.
func (straggler) Ignore() error {
	if _, err := unix.Write(stragglerFd, fmt.Appendln(nil, os.Getpid())); err != nil {
		return err
	}
	<-make(chan struct{})
	return nil
}

// Spawn starts a process that would last for five minutes.
func (straggler) Spawn() (int, error) {
	cmd := exec.CommandContext(context.Background(), "sleep", "300")
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	return cmd.Process.Pid, nil
}

// Take returns how much it got.
func (straggler) Take(b []byte) int { return len(b) }

// doomedHost reports when its workers are as its first argument says, and ends at a word as its second one says.
var doomedHost = testkit.Helper("doomed host", func() {
	pids, err := startStragglers(os.Args[1])
	say(hostReport{Pids: pids}, err)
	awaitWord()
	switch os.Args[2] {
	case "panic":
		panic("the host panics")
	case "exit":
		os.Exit(7)
	case "log":
		log.Fatal("the host gives up")
	case "fatal":
		new(sync.Mutex).Unlock() // no recover helps
	}
	<-make(chan struct{})
})

// startStragglers starts three workers: one that idles, one that ignores its context, one that has a child of its own. In
// the state "eight" there are eight of them, and all idle.
func startStragglers(state string) (pids []int, err error) {
	said, toSay, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	sup, err := supervisor.New(supervisor.Process, supervisor.WithDefaults(supervisor.Proc{ExtraFiles: []*os.File{toSay}}))
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	var stop supervisor.Stop
	if state == "hasty" { // the grace bounds what an orphan may take, which is a second at most
		stop.Grace = 100 * time.Millisecond
	}
	workers := 3
	if state == "eight" {
		workers = 8
	}
	for range workers {
		if _, err := sup.Register(ctx, newStraggler.With(state == "starting"), stop); err != nil {
			return nil, err
		}
	}
	switch state {
	case "launching":
		task.Go(func(context.Context) {
			awaitWord()
			_ = sup.StartLink(ctx) // the host will not see its end
		})
		return nil, nil
	case "starting":
		task.Go(func(context.Context) { _ = sup.StartLink(ctx) }) // likewise
		for range 3 {
			var pid int
			if _, err := fmt.Fscan(said, &pid); err != nil {
				return nil, err
			}
			pids = append(pids, pid)
		}
		return pids, nil
	}
	if err := sup.StartLink(ctx); err != nil {
		return nil, err
	}
	for _, c := range sup.Snapshot().Children {
		pids = append(pids, c.Pid)
	}
	if state == "eight" {
		return pids, nil
	}
	if err := sup.Send(ctx, supervisor.NewSendPayload(1, "Ignore")); err != nil {
		return nil, err
	}
	var busy int
	if _, err := fmt.Fscan(said, &busy); err != nil {
		return nil, err
	}
	grandchild, err := supervisor.Call[int](ctx, sup, 2, "Spawn")
	if err == nil && state == "sending" {
		if err = syscall.Kill(pids[0], syscall.SIGSTOP); err == nil { // it will not read all
			err = sup.Send(ctx, supervisor.NewSendPayload(0, "Take", make([]byte, 16<<20)))
		}
	}
	return append(pids, grandchild), err
}

// steady is the object of workers that are to end in order.
type steady struct{ ledger testkit.Ledger }

var newSteady = supervisor.DefineWith("supervisor_test.steady", func(_ context.Context, path string) (steady, error) {
	return steady{testkit.Ledger{Path: path}}, nil
})

// Hold says that it runs, and returns when descriptor 7 is at its end.
func (steady) Hold() (string, error) {
	if _, err := unix.Write(stragglerFd, []byte("runs\n")); err != nil {
		return "", err
	}
	gate := os.NewFile(stragglerFd+1, "gate")
	defer gate.Close()
	_, _ = gate.Read(make([]byte, 1)) // nothing is ever written
	return "held", nil
}

// Close leaves a line that shows that it ran.
func (s steady) Close() error { return s.ledger.Enter(fmt.Sprint("closed ", os.Getpid())) }

// orderlyHost serves until it is interrupted, as a program does that is started from a terminal. Its argument is the
// path of the workers' ledger.
var orderlyHost = testkit.Helper("orderly host", func() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if text, err := serveInterrupted(ctx, os.Args[1]); err != nil {
		say(hostReport{}, err)
	} else {
		say(hostReport{Text: text}, nil)
	}
})

// serveInterrupted reports once the first of three workers is busy, and returns what went wrong until all have ended.
func serveInterrupted(ctx context.Context, ledger string) (noise []string, err error) {
	said, toSay, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	gate, openGate, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex // guards noise
	sup, err := supervisor.New(supervisor.Process,
		supervisor.WithDefaults(supervisor.Proc{ExtraFiles: []*os.File{toSay, gate}}),
		supervisor.WithEvents(func(e supervisor.Event) {
			if e.Kind != supervisor.EventShutdown && e.Err != nil || e.Kind == supervisor.EventRestarting {
				mu.Lock()
				noise = append(noise, fmt.Sprintf("%+v", e))
				mu.Unlock()
			}
		}))
	if err != nil {
		return nil, err
	}
	for range 3 {
		if _, err := sup.Register(ctx, newSteady.With(ledger)); err != nil {
			return nil, err
		}
	}
	result := make(chan error, 1)
	serving, fail := context.WithCancel(ctx)
	defer fail()
	task.Go(func(context.Context) {
		err := reportHeld(ctx, sup, said, openGate)
		if err != nil {
			fail()
		}
		result <- err
	})
	if err := sup.Serve(serving); err != nil {
		return nil, err
	}
	err = <-result
	mu.Lock()
	defer mu.Unlock()
	return noise, err
}

// reportHeld has a worker hold a request from before the interrupt to after it.
func reportHeld(ctx context.Context, sup *supervisor.Supervisor, said, openGate *os.File) error {
	for sup.Healthy() != nil && ctx.Err() == nil { // Serve starts them and says nothing
		<-time.After(time.Millisecond)
	}
	context.AfterFunc(ctx, func() { _ = openGate.Close() })
	hold := supervisor.NewSendPayload(0, "Hold")
	if err := sup.Send(ctx, hold); err != nil {
		return err
	}
	if _, err := bufio.NewReader(said).ReadString('\n'); err != nil {
		return err
	}
	var pids []int
	for _, c := range sup.Snapshot().Children {
		pids = append(pids, c.Pid)
	}
	say(hostReport{Pids: pids}, nil)
	got, err := sup.Recv(context.WithoutCancel(ctx))
	if err == nil && got.Data != "held" {
		err = fmt.Errorf("its value is %v", got.Data)
	}
	if err != nil {
		return fmt.Errorf("reply to the request that was under way: %w", err)
	}
	return nil
}
