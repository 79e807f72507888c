//go:build linux || darwin

package faulttest_test

// The object of workers that die in ways that the suite's worker does not know.

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"unsafe"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/task"
)

type mortal struct{ gate string } // the address of the test's gate

var newMortal = supervisor.DefineWith("faulttest.mortal", func(_ context.Context, gate string) (*mortal, error) {
	return &mortal{gate}, nil
})

// Pid returns the id of the process.
func (m *mortal) Pid() int { return os.Getpid() }

// ExitLater returns, and exits once the gate says so, while no handler runs.
func (m *mortal) ExitLater() {
	task.Go(func(context.Context) {
		_, _ = childtest.WaitAt(context.Background(), m.gate, "exit")
		os.Exit(0)
	})
}

// PanicLater is the same with a write to a map that is not there.
func (m *mortal) PanicLater() {
	task.Go(func(context.Context) {
		_, _ = childtest.WaitAt(context.Background(), m.gate, "panic")
		writeToNilMap(nil)
	})
}

func writeToNilMap(m map[string]int) { m["x"] = 1 }

// PrintAndPanic prints so many lines and panics at once, on a goroutine of its own.
func (m *mortal) PrintAndPanic(lines int, text string) {
	for i := range lines {
		fmt.Fprintf(os.Stderr, "line %d of %s\n", i, text)
	}
	crashing := make(chan struct{})
	task.Go(func(context.Context) { panic(text) })
	<-crashing
}

// Die ends the process in the way of that name. It does what it can to survive.
func (m *mortal) Die(how string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("recovered: %v", r)
		}
	}()
	fatalFaults[how](m)
	return nil
}

var fatalFaults = map[string]func(*mortal){
	"wild pointer":   storeWildly,
	"stack overflow": func(*mortal) { debug.SetMaxStack(1 << 20); fmt.Println(deeper(1)) },
	"map writes": func(*mortal) {
		m := make(map[int]int)
		for range 4 {
			task.Go(func(context.Context) { writeForEver(m) })
		}
		<-make(chan struct{})
	},
	"unlocked mutex": func(*mortal) { new(sync.Mutex).Unlock() },
}

//go:nocheckptr
func storeWildly(m *mortal) { *(*int)(unsafe.Add(unsafe.Pointer(m), 1<<44)) = 1 }

// deeper calls itself until there is no stack left.
func deeper(n int) int {
	if n == 0 {
		return 0
	}
	return 1 + deeper(n+1)
}

//go:norace
func writeForEver(m map[int]int) {
	for i := 0; ; i++ {
		m[i%1000] = i
	}
}

// Sleepers never return; nothing in this process can wake them.
func (m *mortal) Sleepers() { <-make(chan struct{}) }

// Deafen ignores the signals that ask for an end, and then waits at the gate, whatever happens.
func (m *mortal) Deafen(name string) (string, error) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
	return childtest.WaitAt(context.Background(), m.gate, name)
}

// Sever closes descriptors that are not its own, and then waits at the gate, whatever happens.
func (m *mortal) Sever(fds []int) (string, error) {
	for _, fd := range fds {
		if err := syscall.Close(fd); err != nil {
			return "", err
		}
	}
	return childtest.WaitAt(context.Background(), m.gate, "severed")
}
