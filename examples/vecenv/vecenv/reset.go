package vecenv

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/workerlink/supervisor"
)

// afterFailure is the state in which what failed is mended.
func (l *lane[P, O, A]) afterFailure(why error) State {
	if why == nil || answered(why) {
		return Resetting
	}
	return Hung
}

func (l *lane[P, O, A]) set(s State) {
	l.g.v.mu.Lock()
	defer l.g.v.mu.Unlock()
	l.state = l.state.to(s)
}

// reset brings the environment to the beginning of an episode, in as many tries
// as there are. why is what failed before, and is mended first. The state is
// Resetting or, with why, what afterFailure says.
func (l *lane[P, O, A]) reset(ctx context.Context, why error) (obs O, err error) {
	o := &l.g.v.opts
	renew := false
	for try := 1; ; try++ {
		if why != nil {
			l.mend(ctx, why, renew)
		}
		if obs, err = l.tryReset(ctx); err == nil {
			return l.ready(obs), nil
		}
		if ctx.Err() != nil {
			l.set(Error)
			return obs, context.Cause(ctx)
		}
		if l.failed(try, err) {
			break
		}
		wait := time.NewTimer(o.RetryWait)
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			l.set(Error)
			return obs, context.Cause(ctx)
		}
		why, renew = err, o.Retry == RetryRenew
		if next := l.afterFailure(why); next == Hung || !renew {
			l.set(next)
		}
	}
	failed := &FailedError{Env: l.id, Tries: o.MaxTry, Err: err}
	l.set(Error)
	if o.GiveUp == GiveUpAll {
		l.g.end(failed)
	}
	return obs, failed
}

// failed counts a try and reports whether it was the last.
func (l *lane[P, O, A]) failed(try int, err error) bool {
	l.g.v.mu.Lock()
	defer l.g.v.mu.Unlock()
	l.stats.FailedResets++
	l.stats.LastError = err
	if try >= l.g.v.opts.MaxTry {
		return true
	}
	l.state = l.state.to(Waiting)
	return false
}

func (l *lane[P, O, A]) ready(obs O) O {
	l.g.v.mu.Lock()
	defer l.g.v.mu.Unlock()
	l.stats.Resets++
	l.obs, l.state = obs, l.state.to(Run)
	return obs
}

// tryReset seeds the environment, if that is due, and resets it.
func (l *lane[P, O, A]) tryReset(ctx context.Context) (obs O, err error) {
	l.g.v.mu.Lock()
	param := l.param
	l.g.v.mu.Unlock()
	timeout := l.g.v.opts.ResetTimeout
	for range 3 { // one may die between the two requests
		if l.seed != nil && l.seededLife == 0 {
			reply, err := l.do(ctx, timeout, "Seed", *l.seed)
			if err != nil {
				return obs, err
			}
			l.seededLife = reply.Incarnation
		}
		reply, err := l.do(ctx, timeout, "Reset", param)
		if err != nil {
			return obs, err
		}
		if l.seed != nil && reply.Incarnation != l.seededLife {
			l.seededLife = 0
			continue
		}
		l.lived(reply.Incarnation)
		return supervisor.Value[O](reply)
	}
	return obs, ErrReplaced
}

// lived notes which life is the environment's now.
func (l *lane[P, O, A]) lived(life uint64) {
	if l.life != 0 && l.life != life {
		l.g.v.mu.Lock()
		l.stats.Renewed++
		l.g.v.mu.Unlock()
	}
	l.life = life
}

// mend makes sure that something is there to be reset. One that did not answer
// is heard first: if it has hung, KillAfter ends it, and the next one answers.
func (l *lane[P, O, A]) mend(ctx context.Context, why error, renew bool) {
	before := l.lastLife
	there := answered(why)
	if !there {
		there = l.hear(ctx, why)
		l.seededLife = 0
	}
	if (!there || renew && l.lastLife == before) && ctx.Err() == nil { // one that was replaced on the way need not be again
		l.set(Renewing)
		l.seededLife = 0
		limit, cancel := context.WithTimeout(ctx, l.g.v.opts.RenewTimeout)
		defer cancel()
		_ = l.g.v.sup.Restart(limit, l.id) // if it fails so does the reset, and says the same
	}
	l.g.v.mu.Lock()
	defer l.g.v.mu.Unlock()
	if l.state != Resetting {
		l.state = l.state.to(Resetting)
	}
}

// hear waits until the environment, or the one after it, answers.
func (l *lane[P, O, A]) hear(ctx context.Context, why error) bool {
	limit := l.g.v.opts.HangGrace
	if !errors.Is(why, errWithdrawn) { // otherwise KillAfter may be far away
		limit += l.g.v.opts.RenewTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for range 3 {
		if ctx.Err() != nil || errors.Is(why, supervisor.ErrRestartLimit) {
			break
		}
		if _, why = l.do(ctx, 0, "Spaces"); why == nil || answered(why) {
			return true
		}
	}
	return false
}

// do sends one request and waits for its verdict, at most until its deadline.
func (l *lane[P, O, A]) do(
	ctx context.Context, timeout time.Duration, method string, args ...any,
) (supervisor.RecvPayload, error) {
	reply, err := l.g.v.sup.Do(ctx, supervisor.SendPayload{
		ProcID: l.id, Method: method, Args: args,
		Timeout: timeout, KillAfter: l.g.v.opts.killAfter(timeout),
	})
	if reply.Incarnation != 0 {
		l.lastLife = reply.Incarnation
	}
	switch {
	case err == nil:
	case l.g.ctx.Err() != nil:
		err = l.g.why()
	case ctx.Err() != nil && !answered(err):
		err = fmt.Errorf("%w: %w", errWithdrawn, err)
	}
	return reply, err
}
