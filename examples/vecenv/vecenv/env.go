package vecenv

import (
	"context"

	"github.com/workerlink/supervisor"
)

// Env is one environment. P is what a reset is told, O an observation, A an
// action; between processes they travel as the values of [supervisor] do. One
// method is called at a time.
type Env[P, O, A any] interface {
	// Spaces says what observations, actions and rewards look like.
	Spaces() Spaces
	// Seed makes what follows repeatable.
	Seed(seed int64) error
	// Reset begins an episode. It must return soon after the end of ctx.
	Reset(ctx context.Context, param P) (O, error)
	// Step goes one step on. It must return soon after the end of ctx.
	Step(ctx context.Context, action A) (Timestep[O], error)
	// Close is called at an orderly end.
	Close() error
}

// Timestep is what a step leads to.
type Timestep[O any] struct {
	Obs    O
	Reward float64
	Done   bool // the episode is over
	Info   Info
}

// Info is what else there is to say of a step.
type Info struct {
	// Abnormal steps are not to be learned from: the environment says so itself,
	// or Err does, and nothing else of the timestep is set.
	Abnormal bool
	Err      error          // why there is no step; the vector's to set
	More     map[string]any // the environment's own. Types of its own need supervisor.RegisterType
}

// missing stands where a step has failed, so that a batch keeps its shape.
func missing[O any](why error) Timestep[O] {
	return Timestep[O]{Info: Info{Abnormal: true, Err: why}}
}

// Spaces are what an environment deals in.
type Spaces struct{ Observation, Action, Reward Space }

// Space is a set of values: N choices, or numbers of a shape within bounds.
type Space struct {
	N         int       // choices, 0 … N-1; 0 for numbers
	Shape     []int     // of numbers
	Low, High []float64 // one each, or one for all
}

// Factory makes one environment. Get one from [Define] or [Maker.With].
type Factory[P, O, A any] struct{ spec supervisor.Spec }

// Define names a factory of environments, as [supervisor.Define] does: call it
// from a package variable.
func Define[E Env[P, O, A], P, O, A any](name string, factory func(ctx context.Context) (E, error)) Factory[P, O, A] {
	return Factory[P, O, A]{supervisor.Define(name, factory)}
}

// Maker makes factories that differ in their argument.
type Maker[C, P, O, A any] struct{ factory supervisor.Factory[C] }

// DefineWith is [Define] for a factory with an argument.
func DefineWith[C any, E Env[P, O, A], P, O, A any](
	name string, factory func(ctx context.Context, arg C) (E, error),
) Maker[C, P, O, A] {
	return Maker[C, P, O, A]{supervisor.DefineWith(name, factory)}
}

// With returns the factory that is given arg in each life.
func (m Maker[C, P, O, A]) With(arg C) Factory[P, O, A] { return Factory[P, O, A]{m.factory.With(arg)} }
