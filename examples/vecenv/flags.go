package main

import (
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/workerlink/supervisor"
)

// config is what the flags say.
type config struct {
	envs  int
	steps int // 0: no limit
	time  time.Duration
	kind  supervisor.ChildType
	chaos bool
	seed  int64
}

// parseFlags reads args. What is wrong with them it also prints to out, with the usage.
func parseFlags(args []string, out io.Writer) (config, error) {
	c := config{kind: supervisor.Process}
	fs := flag.NewFlagSet("vecenv", flag.ContinueOnError)
	fs.SetOutput(out)
	fs.IntVar(&c.envs, "envs", 4, "number of environments")
	fs.IntVar(&c.steps, "steps", 0, "end after so many steps of all environments together; 0: go on")
	fs.DurationVar(&c.time, "time", 3*time.Second, "end after so long")
	fs.Func("type", "kind of environment, goroutine or process (default process)", func(s string) error {
		for _, kind := range []supervisor.ChildType{supervisor.Goroutine, supervisor.Process} {
			if s == kind.String() {
				c.kind = kind
				return nil
			}
		}
		return fmt.Errorf("must be %v or %v", supervisor.Goroutine, supervisor.Process)
	})
	fs.BoolVar(&c.chaos, "chaos", false, "make the environments crash, hang and leak, each once at least, for which it may take 10 s longer; needs processes")
	fs.Int64Var(&c.seed, "seed", 1, "of the environments, the policy and the chaos")
	if err := fs.Parse(args); err != nil {
		return c, err
	}
	if err := c.check(fs.Args()); err != nil {
		_, _ = fmt.Fprintln(out, "vecenv:", err)
		fs.Usage()
		return c, err
	}
	return c, nil
}

func (c config) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case c.envs < 1:
		return fmt.Errorf("-envs %d: at least one is needed", c.envs)
	case c.steps < 0:
		return fmt.Errorf("-steps %d is negative", c.steps)
	case c.time <= 0:
		return fmt.Errorf("-time %v: there is no time", c.time)
	case c.chaos && c.kind != supervisor.Process:
		return fmt.Errorf("-chaos ends processes, and needs -type %v", supervisor.Process)
	}
	return nil
}
