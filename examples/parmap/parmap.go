package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/examples/internal/gosource"
	"github.com/workerlink/supervisor/executor"
)

// parmap finds the files, and does the job with all of them twice.
func parmap(ctx context.Context, c config, stdout io.Writer, stderr *os.File) (err error) {
	tasks, err := find(ctx, &c)
	if err != nil {
		return err
	}
	staff := newStaff()
	o := options(c)
	o.Events = staff.see
	first, err := executor.Reusable(ctx, o)
	if err != nil {
		return err
	}
	// A second lease has the same executor, so this ends all workers whatever happens; after an orderly end there are none.
	defer func() { err = errors.Join(err, first.KillWorkers()) }()
	before, err := runOnce(ctx, c, first, tasks, stdout, stderr)
	if err != nil {
		return err
	}

	// Elsewhere in a program that does not know of the first run, this would be the same call. The workers that are there
	// go on; there may only be another number of them.
	o.MaxWorkers = c.resize
	second, err := executor.Reusable(ctx, o)
	if err != nil {
		return err
	}
	after, err := runOnce(ctx, c, second, tasks, stdout, stderr)
	if err != nil {
		return err
	}
	if path, same := before.same(after); !same {
		return fmt.Errorf("%s has changed between the runs, or the executor is wrong", path)
	}

	if err := staff.gone(ctx, second.Executor); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(stdout, staff.report(c)); err != nil {
		return err
	}
	return second.Shutdown(ctx)
}

// options are those of the executor.
func options(c config) executor.Options {
	most := int64(c.memory) << 20
	var limit supervisor.ChildOption = supervisor.Recycle{MaxMemory: most} // a worker that has more is replaced between files
	if runtime.GOOS != "linux" {                                           // where the memory of a process cannot be measured
		limit = supervisor.Share{Memory: most} // its own runtime keeps to it as far as it can
	}
	return executor.Options{
		Name: "parmap", MaxWorkers: c.workers, IdleTimeout: c.idle, Workers: []supervisor.ChildOption{limit},
	}
}

// find lists the files of the tree. It resolves c.dir.
func find(ctx context.Context, c *config) ([]task, error) {
	if c.dir == "" {
		var err error
		if c.dir, err = standardLibrary(ctx); err != nil {
			return nil, err
		}
	}
	found, err := gosource.Walk(c.dir)
	if err != nil {
		return nil, err
	}
	poison := make(map[string]bool)
	for _, path := range c.poison {
		poison[filepath.Join(c.dir, filepath.FromSlash(path))] = true
	}
	var tasks []task
	for _, path := range found.Files {
		tasks = append(tasks, task{path, c.deadline, poison[path]})
		delete(poison, path)
	}
	for path := range poison {
		return nil, fmt.Errorf("-poison: no file %s", path)
	}
	return tasks, nil
}
