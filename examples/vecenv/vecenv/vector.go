package vecenv

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/future"
)

// A Vector is a number of environments that are stepped side by side. New is the
// only way to make one. Its methods may be called concurrently.
type Vector[P, O, A any] struct {
	opts Options // set once
	sup  *supervisor.Supervisor
	n    int

	mu    sync.Mutex
	seeds map[int]int64
	gen   *generation[P, O, A] // the current one, or the last; nil before the first Launch
}

// New returns a vector of one environment per factory. It starts none.
func New[P, O, A any](opts Options, envs ...Factory[P, O, A]) (*Vector[P, O, A], error) {
	if len(envs) == 0 {
		return nil, fmt.Errorf("%w: vecenv: no environments", supervisor.ErrBadArgs)
	}
	opts, err := opts.check()
	if err != nil {
		return nil, err
	}
	sup, err := supervisor.New(opts.Kind, opts.Supervisor...)
	if err != nil {
		return nil, err
	}
	for _, env := range envs {
		if _, err := sup.Register(context.Background(), env.spec, opts.child()...); err != nil {
			return nil, err
		}
	}
	return &Vector[P, O, A]{opts: opts, sup: sup, n: len(envs), seeds: make(map[int]int64)}, nil
}

// Len returns the number of environments.
func (v *Vector[P, O, A]) Len() int { return v.n }

// Seed seeds environment i with seed+i at the next Launch, before its first
// reset, and whenever it is replaced. Seeds stay until they are set anew.
func (v *Vector[P, O, A]) Seed(seed int64) {
	seeds := make([]int64, v.n)
	for i := range seeds {
		seeds[i] = seed + int64(i)
	}
	_ = v.SeedEach(seeds) // the number fits
}

// SeedEach is Seed with one seed for each environment.
func (v *Vector[P, O, A]) SeedEach(seeds []int64) error {
	if len(seeds) != v.n {
		return fmt.Errorf("%w: vecenv: %d seeds for %d environments", supervisor.ErrBadArgs, len(seeds), v.n)
	}
	some := make(map[int]int64, v.n)
	for id, seed := range seeds {
		some[id] = seed
	}
	return v.SeedSome(some)
}

// SeedSome is Seed for the environments that the map names; the others are not
// seeded.
func (v *Vector[P, O, A]) SeedSome(seeds map[int]int64) error {
	for id := range seeds {
		if id < 0 || id >= v.n {
			return fmt.Errorf("%w: vecenv: seed for environment %d of %d", supervisor.ErrBadArgs, id, v.n)
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seeds = maps.Clone(seeds)
	return nil
}

// Launch starts, seeds and resets the environments and waits until all are ready.
// params is one per environment, or nil for zero values; they are used for later
// resets too. All or nothing: after an error, or when ctx ends, the vector is
// closed, but for one of environments that [GiveUpEnv] leaves behind.
func (v *Vector[P, O, A]) Launch(ctx context.Context, params []P) error {
	g, err := v.start(ctx, params)
	if err != nil {
		return err
	}
	if err := v.resetAll(ctx, g); err == nil || g.ctx.Err() == nil && ctx.Err() == nil {
		return err
	}
	if cause := future.Cause(ctx); cause != nil {
		g.end(cause)
	}
	<-g.gone
	return g.why()
}

// LaunchAsync is Launch that does not wait for the resets: their results come
// through Recv.
func (v *Vector[P, O, A]) LaunchAsync(ctx context.Context, params []P) error {
	if _, err := v.start(ctx, params); err != nil {
		return err
	}
	return v.ResetAsync(nil, nil)
}

func (v *Vector[P, O, A]) resetAll(ctx context.Context, g *generation[P, O, A]) error {
	b, err := v.post(g, orders[P, O, A]{kind: ResetResult, ctx: ctx}, true)
	if err != nil {
		return err
	}
	<-b.settled
	return errors.Join(b.errs...)
}

// start begins a generation whose children are up.
func (v *Vector[P, O, A]) start(ctx context.Context, params []P) (*generation[P, O, A], error) {
	if len(params) != 0 && len(params) != v.n {
		return nil, fmt.Errorf("%w: vecenv: %d parameters for %d environments", supervisor.ErrBadArgs, len(params), v.n)
	}
	v.mu.Lock()
	if v.gen != nil && !v.gen.over() {
		v.mu.Unlock()
		return nil, ErrLaunched
	}
	g := v.begin(params)
	v.gen = g
	v.mu.Unlock()

	stop := context.AfterFunc(ctx, func() { g.end(future.Cause(ctx)) })
	defer stop()
	err := v.sup.StartLink(g.ctx)
	var spaces Spaces
	if err == nil { // the environments know; no further one is made to be asked
		spaces, err = supervisor.Call[Spaces](g.ctx, v.sup, 0, "Spaces")
	}
	if err != nil {
		g.end(err)
		close(g.up)
		<-g.gone
		return nil, g.why()
	}
	v.mu.Lock()
	g.spaces, g.open = spaces, g.ctx.Err() == nil
	v.mu.Unlock()
	close(g.up)
	return g, nil
}

// Close stops the environments in order, the one that is at work included, and
// forgets what they were doing. Requests that are open end with [ErrClosed]; their
// results can still be received. When ctx ends it kills what is left. An error
// says what could not be ended. It may be called at any time and again.
func (v *Vector[P, O, A]) Close(ctx context.Context) error {
	v.mu.Lock()
	g := v.gen
	v.mu.Unlock()
	if g == nil {
		return nil
	}
	g.end(ErrClosed)
	defer context.AfterFunc(ctx, g.kill)()
	<-g.gone
	return g.failure
}

// over reports whether nothing runs any more.
func (g *generation[P, O, A]) over() bool {
	select {
	case <-g.gone:
		return true
	default:
		return false
	}
}

// Closed reports whether the vector is not launched, or not any more.
func (v *Vector[P, O, A]) Closed() bool { return v.Err() != nil }

// Err returns why the vector takes no requests: a [*FailedError], an
// [*AbnormalError], what Launch returned, or [ErrClosed]. It is nil while it takes some.
func (v *Vector[P, O, A]) Err() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.errLocked()
}

func (v *Vector[P, O, A]) errLocked() error {
	switch g := v.gen; {
	case g == nil:
		return ErrClosed
	case g.ctx.Err() != nil:
		return g.why()
	case !g.open: // still being launched
		return ErrClosed
	default:
		return nil
	}
}
