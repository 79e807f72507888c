package vecenv

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/future"
)

// batch is what a caller waits for. Its fields are guarded by the vector's mutex
// until the channel that goes with them is closed.
type batch[O any] struct {
	steps      []Timestep[O]
	unanswered int
	answered   chan struct{} // all have their verdict

	errs    []error       // one for each that is settled: nil, or why the environment is not ready
	settled chan struct{} // nothing more follows from them
}

// orders are requests of one kind to several environments.
type orders[P, O, A any] struct {
	kind    Kind
	ctx     context.Context
	ids     []int // nil: all
	actions []A   // one per id, of steps
	params  []P   // one per id, of resets; nil: those of the last time
}

// Reset begins an episode in each of the environments, nil for all, and waits
// until they are ready. params is one per id, or nil for what these environments
// were told last. When ctx ends the resets that are under way are withdrawn and
// leave their environments in [Error].
func (v *Vector[P, O, A]) Reset(ctx context.Context, ids []int, params []P) error {
	b, err := v.post(nil, orders[P, O, A]{kind: ResetResult, ctx: ctx, ids: ids, params: params}, true)
	if err != nil {
		return err
	}
	<-b.settled
	return v.outcome(errors.Join(b.errs...))
}

// ResetAsync is Reset that does not wait.
func (v *Vector[P, O, A]) ResetAsync(ids []int, params []P) error {
	_, err := v.post(nil, orders[P, O, A]{kind: ResetResult, ctx: context.Background(), ids: ids, params: params}, false)
	return err
}

// Step does one action in each of the environments, nil for all, and returns one
// timestep per action, in their order; of a step that failed it is one with
// Info.Abnormal. It returns once the environments are ready again, or are done.
// Without timesteps the error says that nothing was sent; with them, that an
// environment could not be reset, or that ctx has ended: then the steps that had
// not ended are withdrawn, and the resets go on.
func (v *Vector[P, O, A]) Step(ctx context.Context, ids []int, actions []A) ([]Timestep[O], error) {
	b, err := v.post(nil, orders[P, O, A]{kind: StepResult, ctx: ctx, ids: ids, actions: actions}, true)
	if err != nil {
		return nil, err
	}
	<-b.answered
	select {
	case <-b.settled:
		err = v.outcome(errors.Join(b.errs...))
	case <-ctx.Done():
		return b.steps, future.Cause(ctx)
	}
	if err == nil && slices.ContainsFunc(b.steps, func(s Timestep[O]) bool { return errors.Is(s.Info.Err, errWithdrawn) }) {
		err = future.Cause(ctx)
	}
	return b.steps, err
}

// StepAsync is Step that does not wait.
func (v *Vector[P, O, A]) StepAsync(ids []int, actions []A) error {
	_, err := v.post(nil, orders[P, O, A]{kind: StepResult, ctx: context.Background(), ids: ids, actions: actions}, false)
	return err
}

// outcome is the error of a batch. If the vector has ended it is that, and
// nothing runs any more.
func (v *Vector[P, O, A]) outcome(err error) error {
	v.mu.Lock()
	g := v.gen
	v.mu.Unlock()
	if err != nil && g.ctx.Err() != nil {
		<-g.gone
		return g.why()
	}
	return err
}

// unclaimed is how many results per environment may wait for Recv.
const unclaimed = 64

// post hands requests to their lanes, all of them or none. g is the generation
// that they are for, nil for the current one.
func (v *Vector[P, O, A]) post(g *generation[P, O, A], o orders[P, O, A], wait bool) (*batch[O], error) {
	if o.ids == nil {
		for id := range v.n {
			o.ids = append(o.ids, id)
		}
	}
	if err := v.check(o); err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.errLocked(); err != nil {
		return nil, err
	}
	if g != nil && g != v.gen {
		return nil, ErrClosed
	}
	g = v.gen
	for _, id := range o.ids {
		if s := g.lanes[id].state; !s.takes(o.kind) {
			return nil, fmt.Errorf("%w: environment %d is in %v", ErrBusy, id, s)
		}
	}
	if !wait && len(g.results)+len(o.ids) > unclaimed*v.n {
		return nil, fmt.Errorf("%w: %d results wait for Recv", ErrBusy, len(g.results))
	}
	var b *batch[O]
	if wait {
		b = &batch[O]{
			steps: make([]Timestep[O], len(o.ids)), unanswered: len(o.ids),
			answered: make(chan struct{}), settled: make(chan struct{}),
		}
	}
	for i, id := range o.ids {
		l := g.lanes[id]
		r := &request[O, A]{kind: o.kind, ctx: o.ctx, batch: b, index: i}
		if o.kind == StepResult {
			r.action, l.state = o.actions[i], l.state.to(Stepping)
		} else {
			if o.params != nil {
				l.param = o.params[i]
			}
			l.state = l.state.to(Resetting)
		}
		l.work <- r // there is room: the state says that the lane has nothing to do
	}
	return b, nil
}

// check says what is wrong with orders by themselves.
func (v *Vector[P, O, A]) check(o orders[P, O, A]) error {
	given := len(o.actions)
	if o.kind == ResetResult {
		if given = len(o.params); o.params == nil {
			given = len(o.ids)
		}
	}
	switch {
	case len(o.ids) == 0:
		return fmt.Errorf("%w: vecenv: no environments to %v", supervisor.ErrBadArgs, o.kind)
	case given != len(o.ids):
		return fmt.Errorf("%w: vecenv: %d values for %d environments", supervisor.ErrBadArgs, given, len(o.ids))
	}
	seen := make([]bool, v.n)
	for _, id := range o.ids {
		if id < 0 || id >= v.n || seen[id] {
			return fmt.Errorf("%w: vecenv: environment %d of %d does not exist, or is named twice", supervisor.ErrBadArgs, id, v.n)
		}
		seen[id] = true
	}
	return nil
}
