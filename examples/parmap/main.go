// Command parmap does a job with each file of a tree on worker processes that come and go with the work. It runs twice in
// one program: the second run reuses the executor of the first one, with another number of workers, and at the end they
// leave because there is nothing left to do.
//
//	parmap -job compress -dir ~/src -ordered -list -poison net/http/server.go
//
// The file that -poison names kills its worker. It is reported with the signal, the rest of the files is done, and the exit
// status is 0. Results go to standard output, a progress bar goes to standard error. Ctrl-C ends the workers and exits with
// status 130.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/workerlink/supervisor"
)

// Exit statuses beside 0.
const (
	exitFailure     = 1
	exitUsage       = 2
	exitInterrupted = 130 // what shells report after Ctrl-C
)

func main() {
	supervisor.Init() // first line: in a worker process it serves and never returns
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends us the hard way
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is main with everything that it depends on, and returns the exit status.
func run(ctx context.Context, args []string, stdout io.Writer, stderr *os.File) int {
	c, err := parseFlags(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil: // the flag set has printed it
		return exitUsage
	}
	err = parmap(ctx, c, stdout, stderr)
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		_, _ = fmt.Fprintln(stderr, "parmap: interrupted")
		return exitInterrupted
	default:
		_, _ = fmt.Fprintln(stderr, "parmap:", err)
		return exitFailure
	}
}

// standardLibrary is the source folder of the Go installation.
func standardLibrary(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("asking the go command for its folder, as there is no -dir: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "src"), nil
}
