package supervisor

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"syscall"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/workerlink/supervisor/internal/proc"
)

// ChildType is the kind of a child.
type ChildType int

const (
	// Goroutine children share the host's memory: values pass by reference,
	// and code that ignores its context cannot be ended.
	Goroutine ChildType = iota
	// Process children are operating-system processes: values are copied, and
	// every one of them can be ended.
	Process
)

// String returns "goroutine" or "process".
func (t ChildType) String() string {
	switch t {
	case Goroutine:
		return "goroutine"
	case Process:
		return "process"
	default:
		return fmt.Sprintf("ChildType(%d)", int(t))
	}
}

// Option is an argument of [New].
type Option interface{ apply(*options) }

type optionFunc func(*options)

func (f optionFunc) apply(o *options) { f(o) }

// options is what New was told.
type options struct {
	logs       []zapcore.Core
	events     func(Event)
	defaults   []ChildOption
	inboxLimit int
	strategy   Strategy
}

// WithLogger logs every event to l. Without a logger the library is silent.
func WithLogger(l *zap.Logger) Option {
	return optionFunc(func(o *options) {
		if l != nil {
			o.logs = append(o.logs, l.Core())
		}
	})
}

// WithSlog logs every event to l.
func WithSlog(l *slog.Logger) Option {
	return optionFunc(func(o *options) {
		if l != nil {
			o.logs = append(o.logs, slogCore{handler: l.Handler()})
		}
	})
}

// WithEvents calls f for every [Event], one at a time, in order, on a goroutine
// of its own. While f is slow up to 1024 events wait; more are dropped and
// counted. f must not wait for the supervisor to shut down. Events are of this
// supervisor and its children alone: those of a supervisor below it go to that
// one's own function, and are not forwarded.
func WithEvents(f func(Event)) Option {
	return optionFunc(func(o *options) { o.events = f })
}

// WithDefaults gives options to every child; those of Register come after
// them. A default that does not fit a child's kind is left out for that child.
func WithDefaults(opts ...ChildOption) Option {
	return optionFunc(func(o *options) { o.defaults = append(o.defaults, opts...) })
}

// WithInboxLimit bounds how many requests of Send are open or unclaimed at
// once, 1 Mi by default. Over it Send returns [ErrBusy] at once.
func WithInboxLimit(n int) Option {
	return optionFunc(func(o *options) { o.inboxLimit = n })
}

const defaultInboxLimit = 1 << 20

// ChildOption is an argument of Register. The policy structs are child options
// themselves; the last one of a kind wins; a zero field is its default; one
// that does not fit the child's kind is an error.
type ChildOption interface{ applyChild(*childConfig) }

type childOptionFunc func(*childConfig)

func (f childOptionFunc) applyChild(c *childConfig) { f(c) }

// Proc says which program a process child runs, and how. Process children only.
type Proc struct {
	Path     string    // program; default this binary, through its open image. Another binary needs [Declare]
	Args     []string  // arguments after argv[0]; none by default
	Env      []string  // added to the environment, "key=value"
	CleanEnv bool      // start from PATH, HOME, USER, LANG, LC_ALL, TZ and TMPDIR alone instead of all of the host's
	Dir      string    // working directory; default the host's
	Stdout   io.Writer // gets the worker's output instead of the events; written by one goroutine at a time, which is left behind if it blocks at the end
	Stderr   io.Writer // likewise; it may be the same

	// ExtraFiles become descriptors 6, 7, … of every life. They stay the caller's.
	ExtraFiles []*os.File
	// SysProcAttr is copied; the library sets the process group in its copy.
	SysProcAttr *syscall.SysProcAttr
}

func (p Proc) applyChild(c *childConfig) {
	p.Args, p.Env, p.ExtraFiles = slices.Clone(p.Args), slices.Clone(p.Env), slices.Clone(p.ExtraFiles)
	c.proc = &p
}

// Limits bounds what a child may hold.
type Limits struct {
	Queue      int   // open requests of a child, default 1024
	QueueBytes int64 // bytes of their encoded arguments, default 64 MiB; a larger single request enters an empty queue
	Frame      int   // bytes of one encoded request or reply, default 512 MiB. Process children only
	Line       int   // bytes of a line of output; the rest of it is cut, default 64 KiB. Process children only
	Tail       int   // bytes of output kept for errors, default 16 KiB. Process children only
}

func (l Limits) applyChild(c *childConfig) { c.limits = l }

func (l Limits) withDefaults() Limits {
	if l.Queue == 0 {
		l.Queue = 1024
	}
	if l.QueueBytes == 0 {
		l.QueueBytes = 64 << 20
	}
	if l.Frame == 0 {
		l.Frame = 512 << 20
	}
	if l.Line == 0 {
		l.Line = 64 << 10
	}
	if l.Tail == 0 {
		l.Tail = 16 << 10
	}
	return l
}

// WithName names the child in events, start errors, snapshots and, for a process,
// in argv[0]. The default for an [Object] with a Serve loop is the first line of its
// String method, if it has one; other children have none.
func WithName(name string) ChildOption {
	return childOptionFunc(func(c *childConfig) { c.name = name })
}

// WithType makes the child of this kind, whatever the supervisor's is.
func WithType(t ChildType) ChildOption {
	return childOptionFunc(func(c *childConfig) { c.kind = t })
}

// WithConcurrency lets up to n handlers of the child run at once. The default
// is one at a time, in the order of the sends.
func WithConcurrency(n int) ChildOption {
	return childOptionFunc(func(c *childConfig) { c.handlers.concurrency = n })
}

// WithCopy makes a goroutine child receive and return copies, as a process does.
func WithCopy() ChildOption {
	return childOptionFunc(func(c *childConfig) { c.handlers.copy = true })
}

// WithTimings fills Queued and Ran of each reply.
func WithTimings() ChildOption {
	return childOptionFunc(func(c *childConfig) { c.handlers.timings = true })
}

// WithStartTimeout bounds every start of the child, factory included; default 10 s.
func WithStartTimeout(d time.Duration) ChildOption {
	return childOptionFunc(func(c *childConfig) { c.startTimeout = d })
}

const defaultStartTimeout = 10 * time.Second

// childConfig is the sum of a child's options.
type childConfig struct {
	name         string
	kind         ChildType
	outside      bool // a Child made elsewhere: only what the supervisor itself does applies
	restart      Restart
	stop         Stop
	watch        watchConfig
	limits       Limits
	proc         *Proc
	share        *Share
	handlers     handlerConfig
	startTimeout time.Duration
}

// handlerConfig says how the requests of a built-in kind are executed.
type handlerConfig struct {
	concurrency int
	copy        bool
	timings     bool
}

// newChildConfig applies defaults and options for a child of a supervisor of
// kind kind, and checks them. It is the one place that resolves them.
func newChildConfig(kind ChildType, outside bool, defaults, opts []ChildOption) (childConfig, error) {
	c := childConfig{kind: kind, outside: outside}
	for _, o := range defaults {
		o.applyChild(&c)
	}
	trial := c // the kind decides which defaults fit, so it comes first
	for _, o := range opts {
		if o == nil {
			return c, fmt.Errorf("%w: nil child option", ErrBadArgs)
		}
		o.applyChild(&trial)
	}
	c.kind = trial.kind
	c.dropUnfit()
	for _, o := range opts {
		o.applyChild(&c)
	}
	return c, c.check()
}

// dropUnfit takes back defaults that do not fit the kind.
func (c *childConfig) dropUnfit() {
	if c.kind != Process || c.outside {
		c.proc = nil
		c.limits.Frame, c.limits.Line, c.limits.Tail = 0, 0, 0
	}
	if c.kind != Goroutine || c.outside {
		c.handlers.copy = false
	}
	if c.kind != Process || c.outside {
		c.share, c.watch.recycle.MaxMemory = nil, 0
		c.watch.recycle.Rolling = c.watch.recycle.Rolling && c.watch.recycle.on()
	}
	if c.outside {
		c.handlers.concurrency, c.handlers.timings = 0, false
		c.restart.OnPanic, c.watch.liveness = KeepObject, Liveness{}
	}
}

// given is what the options of Register themselves say, without the defaults.
func given(opts []ChildOption) (c childConfig) {
	for _, o := range opts {
		o.applyChild(&c)
	}
	return c
}

// unfit refuses an option that a child of this kind cannot have.
func unfit(what, kind string) error {
	return &libraryError{is: ErrUnsupported, text: fmt.Sprintf("supervisor: %s does not fit a child of kind %s", what, kind)}
}

func (c *childConfig) check() error {
	unfit := func(what string) error {
		if c.outside {
			return unfit(what, "outside")
		}
		return unfit(what, c.kind.String())
	}
	switch {
	case c.kind != Goroutine && c.kind != Process:
		return fmt.Errorf("%w: unknown %v", ErrBadArgs, c.kind)
	case c.proc != nil && (c.kind != Process || c.outside):
		return unfit("Proc")
	case (c.limits.Frame != 0 || c.limits.Line != 0 || c.limits.Tail != 0) && (c.kind != Process || c.outside):
		return unfit("Limits.Frame, Line or Tail")
	case c.handlers.copy && (c.kind != Goroutine || c.outside):
		return unfit("WithCopy")
	case (c.handlers.concurrency != 0 || c.handlers.timings) && c.outside:
		return unfit("WithConcurrency or WithTimings")
	case c.watch.liveness.Every > 0 && c.outside:
		return unfit("Liveness")
	case c.watch.recycle.MaxMemory > 0 && (c.kind != Process || c.outside):
		return unfit("Recycle.MaxMemory")
	case c.watch.recycle.MaxMemory > 0 && !proc.Measurable:
		return fmt.Errorf("%w: Recycle.MaxMemory on this system", ErrUnsupported)
	case c.share != nil && (c.kind != Process || c.outside):
		return unfit("Share")
	case c.restart.OnPanic != KeepObject && c.outside:
		return unfit("Restart.OnPanic")
	case c.handlers.concurrency < 0 || c.startTimeout < 0:
		return fmt.Errorf("%w: negative concurrency or start timeout", ErrBadArgs)
	case c.limits.Queue < 0 || c.limits.QueueBytes < 0 || c.limits.Frame < 0 || c.limits.Line < 0 || c.limits.Tail < 0:
		return fmt.Errorf("%w: negative limit", ErrBadArgs)
	}
	if err := errors.Join(c.restart.check(), c.watch.check(), c.share.check()); err != nil {
		return err
	}
	c.limits = c.limits.withDefaults()
	if c.handlers.concurrency == 0 {
		c.handlers.concurrency = 1
	}
	c.startTimeout = orDefault(c.startTimeout, defaultStartTimeout)
	return nil
}
