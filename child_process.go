package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/workerlink/supervisor/future"
	"github.com/workerlink/supervisor/internal/proc"
	"github.com/workerlink/supervisor/internal/wire"
)

// processChild is the process kind: the object lives in a worker.
type processChild struct {
	slot    *slot
	name    string // of the factory
	arg     []byte // its argument, encoded once for all lives
	remote  bool   // the factory is defined in another binary only
	methods atomic.Pointer[methods]
}

func newProcessChild(spec Spec, sl *slot) (*processChild, error) {
	if !proc.Supported {
		return nil, fmt.Errorf("%w: process children", ErrUnsupported)
	}
	if p := sl.cfg.proc; p != nil && slices.Contains(p.ExtraFiles, nil) {
		return nil, fmt.Errorf("%w: nil file in Proc.ExtraFiles", ErrBadArgs)
	}
	def, err := definitions.find(spec.name)
	if err != nil {
		return nil, err
	}
	c := &processChild{slot: sl, name: spec.name, remote: def.declared}
	if c.arg, err = def.encodeArg(spec); err != nil {
		return nil, err
	}
	if def.declared {
		if sl.cfg.proc == nil || sl.cfg.proc.Path == "" {
			return nil, fmt.Errorf("%w: factory %q is only declared here, so its child needs Proc.Path", ErrBadArgs, spec.name)
		}
		return c, nil
	}
	m, err := def.methods()
	if err != nil {
		return nil, err
	}
	c.methods.Store(m)
	return c, nil
}

func (c *processChild) resolve(r *Request) error {
	m := c.methods.Load()
	if m == nil { // declared, and no life has said yet what it can do
		return ErrNotStarted
	}
	r.coded.table = m
	return m.resolve(r)
}

// snapshots reports whether the object may have the Snapshot hook: of a table
// from another binary it is not known.
func (c *processChild) snapshots() bool {
	m := c.methods.Load()
	return m != nil && (m.shows || c.remote)
}

// prepare encodes the arguments, so that they are the caller's again.
func (c *processChild) prepare(r *Request) (size int64, err error) {
	m := r.coded.table
	prefix := wire.RequestPrefix{HasDeadline: !r.deadline.IsZero(), Attr: r.Attr, Kwargs: len(r.kwargs) > 0, Timings: r.timed, Watch: r.watched}
	var codecs []*wire.Codec
	if r.method < 0 {
		prefix.Name = r.Method
	} else {
		if m.all[r.method].err != nil {
			return 0, m.all[r.method].err
		}
		codecs = m.all[r.method].codecs(len(r.Args))
	}
	vals := r.Args
	if r.Attr {
		codecs, vals = nil, nil
	}
	if prefix.Kwargs {
		codecs = append(slices.Clip(codecs[:min(len(codecs), len(vals))]), nil)
		vals = append(slices.Clip(vals), r.kwargs)
	}
	packing := wire.Packing{Registry: types, SelfContained: c.remote, Limit: c.slot.cfg.limits.Frame, Prefix: prefix.Append(nil)}
	if r.coded.body, err = packing.Prepare(codecs, vals); err != nil {
		return 0, err
	}
	r.coded.flags = prefix.Flags()
	return int64(r.coded.body.Size()), nil
}

// Start starts a worker and returns when its factory has made the object.
func (c *processChild) Start(ctx context.Context, life *Life) (Link, error) {
	p, err := c.slot.sup.starter.Start(c.config())
	if err != nil {
		return nil, err
	}
	l, err := newProcessLink(c, life, p)
	if err != nil {
		p.Kill()
		p.Wait()
		return nil, errors.Join(err, p.Close())
	}
	ready, err := l.handshake(ctx, c.hello(life))
	if err != nil {
		return nil, l.failStart(ctx, err)
	}
	m := c.methods.Load()
	if c.remote && (m == nil || m.agree(ready) != nil) { // the first life, or its binary was replaced
		if m, err = remoteMethods(ready); err != nil {
			return nil, l.failStart(ctx, err)
		}
		c.methods.Store(m)
	} else if err := m.agree(ready); err != nil {
		return nil, l.failStart(ctx, err)
	}
	l.serve(m)
	return l, nil
}

func (c *processChild) hello(life *Life) wire.Hello {
	cfg := &c.slot.cfg
	return wire.Hello{
		Min: wire.MinVersion, Max: wire.Version,
		Factory: c.name, Arg: c.arg, SelfContained: c.remote,
		Name: cfg.name, ProcID: life.ProcID(), Incarnation: life.Incarnation(),
		Concurrency: cfg.handlers.concurrency, EndOnPanic: cfg.restart.OnPanic == EndLife,
		HelloLimits: wire.HelloLimits{
			FrameLimit: cfg.limits.Frame, CloseGrace: cfg.stop.grace(), HealthLimit: cfg.watch.healthLimit(),
		},
	}
}

// agree checks that the worker's table is the host's: with the same factory in
// another binary, or in one that was replaced, the numbers could mean others.
func (m *methods) agree(ready wire.Ready) error {
	ours := m.announced
	if ours.Methods == nil {
		ours = m.describe(ready.Version)
	}
	same := ours.Handles == ready.Handles && slices.EqualFunc(ours.Methods, ready.Methods, func(a, b wire.MethodDesc) bool {
		return a.Name == b.Name && a.Field == b.Field && a.Context == b.Context && a.Variadic == b.Variadic &&
			slices.Equal(a.In, b.In) && a.Out == b.Out
	})
	if !same {
		return fmt.Errorf("%w: the worker's program has other methods under this factory's name; use Declare for another binary", ErrVersion)
	}
	return nil
}

// config says how the worker is started.
func (c *processChild) config() proc.Config {
	p := c.slot.cfg.proc
	if p == nil {
		p = &Proc{}
	}
	argv0 := c.slot.cfg.name
	if argv0 == "" && p.Path == "" {
		argv0 = os.Args[0]
	}
	cfg := proc.Config{
		Path: p.Path, Argv0: argv0, Args: p.Args, Dir: p.Dir,
		Env:   workerEnv(os.Environ(), p, c.slot.cfg.share.env()),
		Files: p.ExtraFiles, SysProcAttr: p.SysProcAttr,
	}
	c.slot.cfg.share.apply(&cfg)
	return cfg
}

// notInherited belong to this process alone: a worker that used them would
// speak to the service manager in the host's name.
var notInherited = []string{"NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"}

// cleanEnv is what a worker with CleanEnv still gets.
var cleanEnv = []string{"PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR"}

// workerEnv is a worker's environment. What p adds wins, and its last word at
// that: of two entries a program would see the first. Its share comes after that.
func workerEnv(host []string, p *Proc, share []string) []string {
	var env []string
	seen := make(map[string]bool)
	add := func(kv string) {
		name, _, _ := strings.Cut(kv, "=")
		if !seen[name] {
			seen[name] = true
			env = append(env, kv)
		}
	}
	for _, kv := range slices.Backward(p.Env) {
		add(kv)
	}
	for _, kv := range share {
		add(kv)
	}
	for _, kv := range host {
		name, _, _ := strings.Cut(kv, "=")
		if !slices.Contains(notInherited, name) && (!p.CleanEnv || slices.Contains(cleanEnv, name)) {
			add(kv)
		}
	}
	return env
}

// killWait is how long the kernel gets to end a process after SIGKILL.
const killWait = 2 * time.Second

// handshake sends the Hello and waits for the answer until ctx ends.
func (l *processLink) handshake(ctx context.Context, hello wire.Hello) (wire.Ready, error) {
	// The end of ctx wakes the read; the start has failed then, and the deadline stays.
	wake := context.AfterFunc(ctx, func() { _ = l.process.Replies.SetReadDeadline(time.Unix(1, 0)) })
	defer wake()
	if err := l.writer.SendBytes(wire.Header{Kind: wire.KindHello}, hello.Append(nil)); err != nil {
		return wire.Ready{}, err
	}
	h, body, err := l.reader.Next()
	if err != nil {
		if cause := future.Cause(ctx); cause != nil && errors.Is(err, os.ErrDeadlineExceeded) {
			return wire.Ready{}, cause
		}
		return wire.Ready{}, err
	}
	if !wake() {
		return wire.Ready{}, future.Cause(ctx)
	}
	switch h.Kind {
	case wire.KindReady:
		return wire.ParseReady(body)
	case wire.KindFailed:
		failed, err := wire.ParseFailed(body)
		if err != nil {
			return wire.Ready{}, err
		}
		return wire.Ready{}, &reportedError{fromNode(failed.Node)}
	default:
		return wire.Ready{}, fmt.Errorf("%w: %v frame before the worker was ready", ErrProtocol, h.Kind)
	}
}

// reportedError is what the worker itself says about its failed start: the
// whole cause, whatever its exit status.
type reportedError struct{ error }

func (e *reportedError) Unwrap() error { return e.error }

// failStart ends the process of a start that failed and returns why.
func (l *processLink) failStart(ctx context.Context, err error) error {
	if failure, ok := err.(*reportedError); ok { //nolint:errorlint // handshake returns it as it is
		l.expectEnd() // the worker ends by itself
		l.awaitDone(time.Second)
		l.kill("its start failed")
		l.awaitDone(killWait)
		return failure.error
	}
	gone := errors.Is(err, os.ErrClosed) || isEOF(err)
	if gone {
		l.awaitDone(exitWait)
	}
	switch cause := future.Cause(ctx); {
	case errors.Is(cause, ErrTimeout):
		l.kill("its start took too long")
	case cause != nil:
		l.kill("its start was called off")
	default:
		l.kill("its start failed")
	}
	l.awaitDone(killWait)
	exit := l.exitError()
	if !gone {
		exit.Err = err
	} else if exit.Code == 0 {
		exit.Err = errors.New("it never spoke to its host: is supervisor.Init the first line of its main?")
	}
	if p := l.child.slot.cfg.proc; p != nil && p.Path != "" { // most often it is the wrong program
		return &whereError{"program " + p.Path, exit}
	}
	return exit
}
