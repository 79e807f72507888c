//go:build linux || darwin

package testkit

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/workerlink/supervisor/internal/task"
)

// traceOnQuit makes a child of the tests leave its stacks in a file when it gets SIGQUIT, and then die of it as usual:
// its standard error goes to a host that may be the one that hangs.
func traceOnQuit() {
	dir := os.Getenv(tracesVariable)
	if dir == "" {
		return
	}
	quit := make(chan os.Signal, 1)
	signal.Notify(quit, syscall.SIGQUIT)
	task.Go(func(context.Context) {
		<-quit
		leaveStacks(dir)
		signal.Reset(syscall.SIGQUIT)
		_ = syscall.Kill(os.Getpid(), syscall.SIGQUIT) // cannot fail for ourselves
	})
}

// leaveStacks writes the file in one step, so that nobody reads half of it. Without it the report lacks something.
func leaveStacks(dir string) {
	name := strconv.Itoa(os.Getpid())
	draft := filepath.Join(dir, "draft-"+name)
	if err := os.WriteFile(draft, []byte(Stacks()), 0o600); err == nil {
		_ = os.Rename(draft, filepath.Join(dir, name)) // likewise
	}
}

// quitChildren asks every child process for its stacks and returns how many there are.
func quitChildren() (asked int) {
	for _, p := range children() {
		if p.state != "Z" && syscall.Kill(p.pid, syscall.SIGQUIT) == nil {
			asked++
		}
	}
	return asked
}
