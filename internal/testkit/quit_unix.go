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
		_ = os.WriteFile(filepath.Join(dir, strconv.Itoa(os.Getpid())), []byte(Stacks()), 0o600) // a test without traces goes on
		signal.Reset(syscall.SIGQUIT)
		_ = syscall.Kill(os.Getpid(), syscall.SIGQUIT) // cannot fail for ourselves
	})
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
