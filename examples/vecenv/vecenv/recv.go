package vecenv

import (
	"context"
	"fmt"

	"github.com/workerlink/supervisor/future"
)

// Kind says which request a [Result] belongs to.
type Kind int

// The kinds of request.
const (
	ResetResult Kind = iota + 1
	StepResult
)

// String returns "reset" or "step".
func (k Kind) String() string {
	switch k {
	case ResetResult:
		return "reset"
	case StepResult:
		return "step"
	default:
		return fmt.Sprintf("Kind(%d)", int(k))
	}
}

// Result is the verdict of one request of ResetAsync or StepAsync, or of a reset
// that followed from one.
type Result[O any] struct {
	Env  int
	Kind Kind
	Auto bool        // a reset after the end of an episode or a failed step
	Obs  O           // of a reset
	Step Timestep[O] // of a step; one that failed has Info.Abnormal
	Err  error       // why there is nothing else
}

// Recv returns the next result and waits for one until ctx ends. A request that
// failed is a result like any other: Recv's own error says that ctx has ended, or
// that the vector has and all results were received, and why. After a failure
// nothing runs any more once Recv has said so.
func (v *Vector[P, O, A]) Recv(ctx context.Context) (Result[O], error) {
	for {
		v.mu.Lock()
		g := v.gen
		if g == nil {
			v.mu.Unlock()
			return Result[O]{}, ErrClosed
		}
		over := g.over()
		if len(g.results) > 0 {
			r := g.results[0]
			g.results = g.results[1:]
			if len(g.results) > 0 {
				g.tell() // somebody else may wait too
			}
			v.mu.Unlock()
			return r, nil
		}
		v.mu.Unlock()
		if over {
			return Result[O]{}, g.why()
		}
		select {
		case <-g.news:
		case <-g.gone:
		case <-ctx.Done():
			return Result[O]{}, future.Cause(ctx)
		}
	}
}
