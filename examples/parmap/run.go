package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/examples/internal/progress"
	"github.com/workerlink/supervisor/executor"
)

// outcome is what one run has brought.
type outcome struct {
	texts    map[string]string // of the files that went well, by path
	problems []string
	bytes    int64
}

// runOnce does the job with every file, and prints what came of it. A file that fails is part of that, not an error.
func runOnce(ctx context.Context, c config, lease *executor.Lease, tasks []task, stdout io.Writer, stderr *os.File) (outcome, error) {
	bar := progress.New(stderr, c.job, len(tasks))
	defer bar.Close()
	most := lease.Stats().Workers.Max
	each := executor.MapUnordered[task, result, iter.Seq[task]]
	if c.ordered {
		each = executor.Map[task, result, iter.Seq[task]]
	}
	out := outcome{texts: make(map[string]string)}
	start := time.Now()
	for item := range each(ctx, lease.Executor, jobs[c.job], slices.Values(tasks)) {
		if ctx.Err() != nil { // what is left has failed because of it
			return out, context.Cause(ctx)
		}
		if errors.Is(item.Err, executor.ErrBroken) { // and so has everything after it
			return out, item.Err
		}
		line := out.add(c.relative(item.In.Path), item.Out, item.Err)
		if !c.list {
			bar.Step(1)
		} else if _, err := fmt.Fprintln(stdout, line); err != nil {
			return out, err
		}
	}
	took := time.Since(start)
	bar.Close()
	slices.Sort(out.problems)
	_, err := fmt.Fprintf(stdout, "parmap: %s of %d files, %.1f MB, in %.2f s; executor %v, at most %d workers; %d failed\n%s",
		c.job, len(tasks), float64(out.bytes)/1e6, took.Seconds(), lease.Reason(), most, len(out.problems), strings.Join(out.problems, ""))
	return out, err
}

// add takes a result and returns its line.
func (o *outcome) add(path string, r result, err error) (line string) {
	if err != nil {
		line = path + ": " + why(err)
		o.problems = append(o.problems, "  "+line+"\n")
		return line
	}
	o.texts[path] = r.Text
	o.bytes += r.Bytes
	return r.Text + "  " + path
}

// why says what became of a file, without what differs from one time to the next.
func why(err error) string {
	var failed *executor.TaskError
	if !errors.As(err, &failed) {
		return err.Error()
	}
	exit := failed.Exit()
	switch {
	case errors.Is(err, supervisor.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return "its time is over"
	case exit == nil:
		return failed.Err.Error()
	case exit.Signal != 0:
		return fmt.Sprintf("its worker was killed by signal %d (%v)", int(exit.Signal), exit.Signal)
	default:
		return fmt.Sprintf("its worker exited with code %d", exit.Code)
	}
}

// same compares the files that went well both times.
func (o outcome) same(other outcome) (path string, ok bool) {
	for path, text := range o.texts {
		if again, ok := other.texts[path]; ok && again != text {
			return path, false
		}
	}
	return "", true
}

// relative writes a path as seen from the tree's root.
func (c config) relative(path string) string {
	if short, err := filepath.Rel(c.dir, path); err == nil {
		path = short
	}
	return filepath.ToSlash(path)
}
