package executor

import (
	"fmt"
	"slices"
	"time"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/inside"
)

// Options say what an executor is like. The zero value is ready. New copies them; one that is out of range is an error
// that is [supervisor.ErrBadArgs].
type Options struct {
	// Name tells executors apart: in events and snapshots, and for [Reusable], which has one of each name.
	Name string

	MaxWorkers  int           // workers at once; default [CPUs]
	MinIdle     int           // workers that are started at once and stay without work; default 0
	IdleTimeout time.Duration // after which a worker without work ends; default 10 s, negative for never
	Queue       int           // tasks that wait for a worker, default 16384; beyond it Submit waits

	// PoisonAfter is at how many crashes a task with [Retries] may be running before it gets [ErrPoison]; default 3,
	// negative for any number.
	PoisonAfter int
	Breaker     Breaker

	// Reuse says when [Reusable] gives an executor that is there. New does not look at it.
	Reuse ReuseMode

	// Workers are the options of every worker, as of a child of a supervisor: Proc with environment and directory, Share,
	// Recycle (whose MaxRequests counts tasks), Stop, Limits, Liveness, WithStartTimeout, and WithType for workers that
	// are goroutines. Of Restart only OnPanic applies; WithConcurrency and WithCopy are refused.
	Workers []supervisor.ChildOption
	// Supervisor are options of the executor's own supervisor, such as WithLogger. In place of WithEvents there is Events.
	Supervisor []supervisor.Option
	// Events is called for every [Event], one at a time, in order, on a goroutine of its own. While it is slow up to 1024
	// events wait; more are dropped.
	Events func(Event)
}

// Breaker says when an executor counts as broken: after more than Max failures of workers within a time, if no task
// has succeeded meanwhile. A failure is a worker that dies while it is needed or does not start, and an object of
// [Method] that cannot be made. A worker that was replaced because of [KillAfter] is none.
type Breaker struct {
	Max    int           // default 3 more than MaxWorkers; negative for any number
	Within time.Duration // default 1 min
	// Backoff is the delay before a worker is started after the first, the second, … failure in a row; defaults as of
	// supervisor.Restart.
	Backoff supervisor.Backoff
}

const (
	defaultIdleTimeout = 10 * time.Second
	defaultQueue       = 16384
	defaultPoisonAfter = 3
	breakerMargin      = 3
	defaultWithin      = time.Minute
)

// config is what options come to.
type config struct {
	Options
	maxDefault bool // MaxWorkers was not given
	child      inside.Child
	proc       supervisor.Proc
	recycle    supervisor.Recycle
	others     []supervisor.ChildOption // of Workers, without the two above
}

// newConfig checks the options and fills in defaults. It is the one place that does.
func newConfig(o Options) (*config, error) {
	c := &config{Options: o, maxDefault: o.MaxWorkers == 0}
	c.Workers, c.Supervisor = slices.Clone(o.Workers), slices.Clone(o.Supervisor)
	var err error
	if c.child, err = inside.Inspect(c.Workers); err != nil {
		return nil, fmt.Errorf("executor: Options.Workers: %w", err)
	}
	restart := supervisor.Restart{}
	for _, opt := range c.Workers {
		switch opt := opt.(type) {
		case supervisor.Proc:
			c.proc = opt
		case supervisor.Recycle:
			c.recycle = opt
		case supervisor.Restart:
			restart = opt
		default:
			c.others = append(c.others, opt)
		}
	}
	c.others = append(c.others, supervisor.Restart{Type: supervisor.Temporary, OnPanic: restart.OnPanic})
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("executor: %w", err)
	}
	c.fill()
	return c, nil
}

func (c *config) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", supervisor.ErrBadArgs, fmt.Sprintf(format, args...))
	}
	switch {
	case c.MaxWorkers < 0:
		return bad("MaxWorkers %d", c.MaxWorkers)
	case c.MinIdle < 0 || c.MaxWorkers > 0 && c.MinIdle > c.MaxWorkers:
		return bad("MinIdle %d of at most %d workers", c.MinIdle, c.MaxWorkers)
	case c.Queue < 0:
		return bad("Queue %d", c.Queue)
	case c.Breaker.Within < 0 || c.Breaker.Backoff.First < 0 || c.Breaker.Backoff.Min < 0 || c.Breaker.Backoff.Max < 0:
		return bad("negative time in Breaker")
	case c.Reuse < ReuseAuto || c.Reuse > ReuseNever:
		return bad("unknown %v", c.Reuse)
	case c.child.Concurrency > 1:
		return bad("WithConcurrency: a worker of an executor has one task at a time")
	case c.child.Copies:
		return bad("WithCopy in an executor")
	case c.proc.Path != "":
		return bad("Proc.Path: the workers of an executor are this binary")
	}
	return nil
}

func (c *config) fill() {
	if c.maxDefault {
		c.MaxWorkers = max(CPUs(), c.MinIdle)
	}
	if c.IdleTimeout == 0 {
		c.IdleTimeout = defaultIdleTimeout
	}
	if c.Queue == 0 {
		c.Queue = defaultQueue
	}
	if c.PoisonAfter == 0 {
		c.PoisonAfter = defaultPoisonAfter
	}
	if c.Breaker.Within == 0 {
		c.Breaker.Within = defaultWithin
	}
}

// text is the same for options that make the same executor, apart from its size, its reuse, and who is told of what
// happens.
func (c *config) text() string {
	o := c.Options
	return fmt.Sprintf("%d %v %d %d %#v %s", o.MinIdle, o.IdleTimeout, o.Queue, o.PoisonAfter, o.Breaker, c.child.Text)
}
