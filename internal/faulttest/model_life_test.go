package faulttest_test

import (
	"context"
	"slices"
	"time"

	"github.com/workerlink/supervisor"
)

// has reports whether the batch does something to a child.
func (b *modelBatch) has(c *modelChild, what string) bool {
	return slices.ContainsFunc(slices.Concat(b.steps...), func(s *modelStep) bool { return s.Do == what && s.child == c })
}

// doLife does the steps that concern lives.
func (r *modelRun) doLife(ctx context.Context, s *modelStep) {
	switch s.Do {
	case opRestart, opUnregister:
		r.endLife(s)
	case opRegister:
		c := &modelChild{temporary: s.Ignore, process: r.process}
		var err error
		c.id, err = r.register(c)
		if err != nil {
			may := fate(0)
			if r.batch.down {
				may = fateClosed
			}
			r.expect(s, err, may)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if slices.ContainsFunc(slices.Concat(r.children, r.joined), func(other *modelChild) bool { return other.id == c.id }) {
			r.book.complain("Register returns %d, which is or was another child's", c.id)
		}
		r.joined = append(r.joined, c)
	case opKill:
		at, _ := r.look(s.child)
		if at.State != supervisor.StateUp {
			return
		}
		r.mu.Lock()
		r.killed[s.child] = at.Pid
		r.mu.Unlock()
		chaosSignal(at.Pid, sigKill)
	case opFreeze:
		at, _ := r.look(s.child)
		chaosSignal(at.Pid, sigStop)
		<-time.After(s.Takes)
		chaosSignal(at.Pid, sigCont)
	case opShutdown:
		err := r.sup.Shutdown(ctx)
		may := fateValue
		if r.batch.forced {
			may |= fateTimeout | fateStuck
		}
		r.expect(s, err, may)
	case opClose:
		r.expect(s, r.sup.Close(), fateValue|fateStuck) // a goroutine on a busy machine
	case opStartLink:
		r.expect(s, r.sup.StartLink(context.Background()), fateValue)
	}
}

// endLife is Restart and Unregister.
func (r *modelRun) endLife(s *modelStep) {
	may := fateValue
	if r.batch.down {
		may |= fateClosed
	}
	if r.batch.has(s.child, opUnregister) {
		may |= fateNoChild
		if s.Do == opRestart {
			may |= fateClosed
		}
	}
	if s.Do == opRestart && s.child.temporary && r.batch.has(s.child, opKill) {
		may |= fateExit
	}
	if s.child.gone {
		may = may&fateClosed | fateNoChild
	}
	if r.batch.forced && s.Do == opUnregister {
		may |= fateTimeout | fateStuck // a Shutdown that kills has cut it short
	}
	ctx, cancel := context.WithTimeout(context.Background(), modelPatience)
	defer cancel()
	if s.Do == opRestart {
		r.expect(s, r.sup.Restart(ctx, s.child.id), may)
		return
	}
	r.expect(s, r.sup.Unregister(ctx, s.child.id), may)
}
