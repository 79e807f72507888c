package main

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/workerlink/supervisor/executor"
)

// config is what the flags say.
type config struct {
	dir      string // "" for the Go installation's own
	job      string
	poison   []string // paths below dir
	ordered  bool
	list     bool
	workers  int // of the first run
	resize   int // of the second
	memory   int // MiB
	deadline time.Duration
	idle     time.Duration
}

// parseFlags reads args. What is wrong with them it also prints to out, with the usage.
func parseFlags(args []string, out io.Writer) (config, error) {
	var c config
	fs := flag.NewFlagSet("parmap", flag.ContinueOnError)
	fs.SetOutput(out)
	fs.StringVar(&c.dir, "dir", "", "the `folder` whose .go files to read; default the source of the Go installation")
	fs.StringVar(&c.job, "job", "hash", "what to do with each file: "+strings.Join(jobNames(), ", "))
	fs.BoolVar(&c.ordered, "ordered", false, "results in the order of the files, not as they come")
	fs.BoolVar(&c.list, "list", false, "print a line for each file, in place of the progress bar")
	fs.Func("poison", "a `file`, as its path below the folder, that kills its worker; may be given again", func(s string) error {
		c.poison = append(c.poison, s)
		return nil
	})
	fs.IntVar(&c.workers, "workers", executor.CPUs(), "most workers of the first run")
	fs.IntVar(&c.resize, "resize", 0, "most workers of the second run; default one more than of the first")
	fs.IntVar(&c.memory, "memory", 256, "memory of a worker in `MiB`, of which one that does nothing has about 2; on Linux one that has more is replaced")
	fs.DurationVar(&c.deadline, "deadline", 5*time.Second, "time for one file")
	fs.DurationVar(&c.idle, "idle", 500*time.Millisecond, "time without work after which a worker ends")
	if err := fs.Parse(args); err != nil {
		return c, err
	}
	if err := c.check(fs.Args()); err != nil {
		_, _ = fmt.Fprintln(out, "parmap:", err)
		fs.Usage()
		return c, err
	}
	if c.resize == 0 {
		c.resize = c.workers + 1
	}
	return c, nil
}

func jobNames() []string { return slices.Sorted(maps.Keys(jobs)) }

func (c config) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case jobs[c.job] == nil:
		return fmt.Errorf("-job %s: must be one of %s", c.job, strings.Join(jobNames(), ", "))
	case c.workers < 1:
		return fmt.Errorf("-workers %d: at least one is needed", c.workers)
	case c.resize < 0:
		return fmt.Errorf("-resize %d is negative", c.resize)
	case c.memory < 1:
		return fmt.Errorf("-memory %d: at least 1 MiB is needed", c.memory)
	case c.deadline <= 0 || c.deadline > mostTime:
		return fmt.Errorf("-deadline %v: must be positive and at most %v", c.deadline, mostTime)
	case c.idle <= 0:
		return fmt.Errorf("-idle %v: must be positive", c.idle)
	}
	return nil
}
