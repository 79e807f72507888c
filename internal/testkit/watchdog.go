package testkit

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// tracesVariable names the directory where workers leave their stacks when the watchdog asks for them.
const tracesVariable = "TESTKIT_TRACES"

const (
	watchdogAhead = 10 * time.Second // before go test itself ends the run, which would hide the workers
	watchdogWait  = 3 * time.Second  // for the workers' stacks
)

// watch arms the watchdog, which ends a run that takes longer than the test flag timeout says, with the stacks of this process
// and of its workers. dir is what prepare made.
func watch(dir string) (stop func()) {
	d, err := time.ParseDuration(flag.Lookup("test.timeout").Value.String())
	if err != nil || d == 0 { // it may take for ever
		return func() {}
	}
	limit := max(d-watchdogAhead, d/2)
	timer := time.AfterFunc(limit, func() {
		report(filepath.Join(dir, "traces"), limit)
		_ = os.RemoveAll(dir) // nothing depends on it
		os.Exit(2)
	})
	return func() { timer.Stop() }
}

// report writes what every process is doing.
func report(traces string, limit time.Duration) {
	fmt.Fprintf(os.Stderr, "testkit: the tests are not done after %v\n\n%s\n", limit, Stacks())
	asked := quitChildren()
	deadline := time.Now().Add(watchdogWait)
	for time.Now().Before(deadline) {
		if len(left(traces)) >= asked {
			break
		}
		<-time.After(pollStep)
	}
	found := left(traces)
	for _, name := range found {
		stacks, err := os.ReadFile(name)
		fmt.Fprintf(os.Stderr, "testkit: worker %s %v\n\n%s\n", filepath.Base(name), orEmpty(err), stacks)
	}
	fmt.Fprintf(os.Stderr, "testkit: stacks of %d of %d child processes\n", len(found), asked)
}

// left lists the files of the workers that have answered.
func left(traces string) []string {
	found, _ := filepath.Glob(filepath.Join(traces, "[0-9]*")) // the pattern is valid
	return found
}

func orEmpty(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Stacks returns the stacks of all goroutines.
func Stacks() string {
	buf := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			return string(buf[:n])
		}
		buf = make([]byte, 2*len(buf))
	}
}
