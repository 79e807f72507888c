package vecenv

import (
	"context"
	"errors"
	"fmt"

	"github.com/workerlink/supervisor"
)

// Ready returns the environments that wait for an action, in ascending order, and
// what each of them saw last.
func (v *Vector[P, O, A]) Ready() (ids []int, seen []O) {
	v.each(func(l *lane[P, O, A]) {
		if l.state == Run {
			ids, seen = append(ids, l.id), append(seen, l.obs)
		}
	})
	return ids, seen
}

// States returns what each environment is doing.
func (v *Vector[P, O, A]) States() []State {
	states := make([]State, v.n)
	v.each(func(l *lane[P, O, A]) { states[l.id] = l.state })
	return states
}

// Done reports whether the vector runs and no environment has anything left to
// do: each is done, or was given up.
func (v *Vector[P, O, A]) Done() bool {
	ended := 0
	v.each(func(l *lane[P, O, A]) {
		if l.state == Done || l.state == Error {
			ended++
		}
	})
	return ended == v.n
}

// Stats counts what happened to one environment since Launch.
type Stats struct {
	Steps        int
	Episodes     int // that came to their end
	Abnormal     int // steps
	Resets       int
	FailedResets int // tries of them
	Renewed      int // how often another environment took its place
	LastError    error
}

// Stats returns the counts of each environment, also after the end.
func (v *Vector[P, O, A]) Stats() []Stats {
	stats := make([]Stats, v.n)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.gen != nil {
		for i, l := range v.gen.lanes {
			stats[i] = l.stats
		}
	}
	return stats
}

// Spaces returns what the environments deal in, as environment 0 said at Launch.
func (v *Vector[P, O, A]) Spaces() (Spaces, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.errLocked(); err != nil {
		return Spaces{}, err
	}
	return v.gen.spaces, nil
}

// Params returns what each environment is told at its next reset, nil if the
// vector does not run.
func (v *Vector[P, O, A]) Params() (params []P) {
	v.each(func(l *lane[P, O, A]) { params = append(params, l.param) })
	return params
}

// SetParam changes what an environment is told at its next reset.
func (v *Vector[P, O, A]) SetParam(id int, param P) error {
	if id < 0 || id >= v.n {
		return fmt.Errorf("%w: vecenv: environment %d of %d", supervisor.ErrBadArgs, id, v.n)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.errLocked(); err != nil {
		return err
	}
	v.gen.lanes[id].param = param
	return nil
}

// Attr reads an attribute of every environment: an exported field, or a method
// without arguments and with one result. It waits behind what they work on.
func Attr[T, P, O, A any](ctx context.Context, v *Vector[P, O, A], name string) ([]T, error) {
	if err := v.Err(); err != nil {
		return nil, err
	}
	results, err := supervisor.GetAttr[T](ctx, v.sup, name)
	if err != nil {
		if end := v.Err(); end != nil {
			err = errors.Join(end, err)
		}
		return nil, err
	}
	values := make([]T, len(results))
	for i, r := range results {
		values[i] = r.Value
	}
	return values, nil
}

// each calls f for the lanes of a vector that runs, with its mutex held.
func (v *Vector[P, O, A]) each(f func(*lane[P, O, A])) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.errLocked() != nil {
		return
	}
	for _, l := range v.gen.lanes {
		f(l)
	}
}
