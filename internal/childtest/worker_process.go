package childtest

import (
	"io"
	"os"
	"os/exec"
	"sync"
)

// Pid returns the id of the process.
func (w *Worker) Pid() int { return os.Getpid() }

// Exit ends the process.
func (w *Worker) Exit(code int) { os.Exit(code) }

// Crash panics on a goroutine of its own and never returns.
func (w *Worker) Crash(text string) {
	crashing := make(chan struct{})
	var once sync.WaitGroup
	once.Go(func() { panic(text) })
	<-crashing
}

// Print writes to the standard streams.
func (w *Worker) Print(stdout, stderr string) {
	_, _ = os.Stdout.WriteString(stdout)
	_, _ = os.Stderr.WriteString(stderr)
}

// Environ returns the environment.
func (w *Worker) Environ() []string { return os.Environ() }

// Args returns the command line.
func (w *Worker) Args() []string { return os.Args }

// Dir returns the working directory.
func (w *Worker) Dir() (string, error) { return os.Getwd() }

// ReadFile reads from an inherited descriptor until its end.
func (w *Worker) ReadFile(fd int) (string, error) {
	text, err := io.ReadAll(os.NewFile(uintptr(fd), "inherited"))
	return string(text), err
}

// Stdin reads the standard input until its end.
func (w *Worker) Stdin() (string, error) {
	text, err := io.ReadAll(os.Stdin)
	return string(text), err
}

// Spawn starts a process that outlives its parent, and returns its id.
func (w *Worker) Spawn() (int, error) {
	cmd := exec.Command("sleep", "1000") //nolint:noctx // it is to be left behind
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	return cmd.Process.Pid, nil
}
