// Command gostats counts what the Go files of a tree hold. Workers parse the files, and the table that it prints is the
// same to the byte whatever their kind and number are, and however many of them are killed at work:
//
//	gostats -dir ~/src -type process -workers 8 -chaos 5
//
// The table, or with -json its JSON, goes to standard output; a progress bar and a summary go to standard error. Ctrl-C
// stops the workers and exits with status 130.
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
	"time"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/examples/internal/gosource"
	"github.com/workerlink/supervisor/examples/internal/progress"
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
	err = gostats(ctx, c, stdout, stderr)
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		_, _ = fmt.Fprintln(stderr, "gostats: interrupted")
		return exitInterrupted
	default:
		_, _ = fmt.Fprintln(stderr, "gostats:", err)
		return exitFailure
	}
}

// gostats finds the files, has them parsed and prints the table and the summary.
func gostats(ctx context.Context, c config, stdout io.Writer, stderr *os.File) error {
	dir := c.dir
	if dir == "" {
		var err error
		if dir, err = standardLibrary(ctx); err != nil {
			return err
		}
	}
	found, err := gosource.Walk(dir)
	if err != nil {
		return err
	}
	table := gosource.NewTable(dir)
	for _, p := range found.Problems {
		table.AddProblem(p)
	}
	bar := progress.New(stderr, "parsing", len(found.Files))
	defer bar.Close()
	start := time.Now()
	t, err := parseAll(ctx, c, parser, found.Files, table, bar)
	if err != nil {
		return err
	}
	bar.Close()
	write := table.Report().WriteText
	if c.json {
		write = table.Report().WriteJSON
	}
	if err := write(stdout); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(stderr, t.summary(c, time.Since(start)))
	return nil
}

// standardLibrary is the source folder of the Go installation.
func standardLibrary(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("asking the go command for its folder, as there is no -dir: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "src"), nil
}
