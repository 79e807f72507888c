package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"

	"github.com/workerlink/supervisor"
)

// config is what the flags say.
type config struct {
	dir     string // "" for the Go installation's own
	workers int
	kind    supervisor.ChildType
	chaos   int // workers to kill
	seed    uint64
	json    bool
}

// parseFlags reads args. What is wrong with them it also prints to out, with the usage.
func parseFlags(args []string, out io.Writer) (config, error) {
	c := config{kind: supervisor.Process}
	fs := flag.NewFlagSet("gostats", flag.ContinueOnError)
	fs.SetOutput(out)
	fs.StringVar(&c.dir, "dir", "", "the `folder` to count; default the source of the Go installation")
	fs.IntVar(&c.workers, "workers", runtime.GOMAXPROCS(0), "number of workers")
	fs.Func("type", "kind of worker, goroutine or process (default process)", func(s string) (err error) {
		c.kind, err = parseKind(s)
		return err
	})
	fs.IntVar(&c.chaos, "chaos", 0, "kill this many worker processes while they work")
	fs.Uint64Var(&c.seed, "seed", 0, "decides which and when; default a random one")
	fs.BoolVar(&c.json, "json", false, "print JSON")
	if err := fs.Parse(args); err != nil {
		return c, err
	}
	if err := c.check(fs.Args()); err != nil {
		_, _ = fmt.Fprintln(out, "gostats:", err)
		fs.Usage()
		return c, err
	}
	if c.seed == 0 {
		c.seed = rand.Uint64()
	}
	return c, nil
}

func parseKind(s string) (supervisor.ChildType, error) {
	for _, kind := range []supervisor.ChildType{supervisor.Goroutine, supervisor.Process} {
		if s == kind.String() {
			return kind, nil
		}
	}
	return 0, fmt.Errorf("must be %v or %v", supervisor.Goroutine, supervisor.Process)
}

func (c config) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case c.workers < 1:
		return fmt.Errorf("-workers %d: at least one is needed", c.workers)
	case c.chaos < 0:
		return fmt.Errorf("-chaos %d is negative", c.chaos)
	case c.chaos > 0 && c.kind != supervisor.Process:
		return fmt.Errorf("-chaos kills processes, and needs -type %v", supervisor.Process)
	}
	return nil
}
