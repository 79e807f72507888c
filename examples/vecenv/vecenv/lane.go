package vecenv

import (
	"context"
	"errors"

	"github.com/workerlink/supervisor"
)

// lane is one environment. Its goroutine executes one request after another, and
// what follows from it; so nothing that one environment waits for holds up others.
type lane[P, O, A any] struct {
	g    *generation[P, O, A]
	id   int
	seed *int64
	work chan *request[O, A] // room for one: who puts one in has seen, under the mutex, that the state takes it

	// Of the goroutine alone.
	life       uint64 // that was reset
	lastLife   uint64 // that had the last request
	seededLife uint64 // that was seeded; 0 if the one that comes has to be

	// Guarded by the vector's mutex.
	state State
	obs   O
	param P
	stats Stats
	cut   int // episodes in a row that failed steps cut short
}

// request is what a lane is asked for.
type request[O, A any] struct {
	kind   Kind
	ctx    context.Context
	action A
	batch  *batch[O] // of a caller who waits; nil if the result is for Recv
	index  int       // in the batch
}

// run executes requests until the generation ends. All that were accepted get
// their verdict.
func (l *lane[P, O, A]) run() {
	for {
		select {
		case r := <-l.work:
			l.execute(r)
		case <-l.g.ctx.Done():
			l.refuse()
			return
		}
	}
}

// refuse ends the request that the lane will not come to any more, if there is
// one. After it the generation takes no more.
func (l *lane[P, O, A]) refuse() {
	l.g.v.mu.Lock()
	defer l.g.v.mu.Unlock()
	l.g.open = false
	select {
	case r := <-l.work:
		l.answerLocked(r, l.result(r.kind, l.g.why()))
		r.settleLocked(nil)
	default:
	}
}

func (l *lane[P, O, A]) execute(r *request[O, A]) {
	ctx, cancel := context.WithCancelCause(r.ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.g.ctx, func() { cancel(l.g.why()) })()
	if r.kind == ResetResult {
		l.resetFor(ctx, r)
		return
	}
	why, goesOn := l.step(ctx, r)
	var err error
	switch {
	case goesOn: // by the generation's own context: it is no longer the caller's affair
		_, err = l.autoReset(why, r.batch == nil)
	case why != nil:
		err = l.giveUp(why, r.batch == nil)
	}
	l.g.v.mu.Lock()
	defer l.g.v.mu.Unlock()
	r.settleLocked(err)
}

// resetFor is a reset that somebody asked for.
func (l *lane[P, O, A]) resetFor(ctx context.Context, r *request[O, A]) {
	l.g.v.mu.Lock()
	l.cut = 0
	l.g.v.mu.Unlock()
	obs, err := l.reset(ctx, nil)
	l.g.v.mu.Lock()
	defer l.g.v.mu.Unlock()
	result := l.result(ResetResult, err)
	result.Obs = obs
	l.answerLocked(r, result)
	r.settleLocked(err)
}

// autoReset is a reset that follows from a step; why says that the step failed.
func (l *lane[P, O, A]) autoReset(why error, report bool) (O, error) {
	obs, err := l.reset(l.g.ctx, why)
	if report {
		l.g.v.mu.Lock()
		defer l.g.v.mu.Unlock()
		result := l.result(ResetResult, err)
		result.Obs, result.Auto = obs, true
		l.g.deliverLocked(result)
	}
	return obs, err
}

// giveUp is what follows instead when too many episodes were cut short.
func (l *lane[P, O, A]) giveUp(why error, report bool) error {
	l.g.v.mu.Lock()
	failed := &AbnormalError{Env: l.id, Episodes: l.cut, Err: why}
	if report {
		result := l.result(ResetResult, failed)
		result.Auto = true
		l.g.deliverLocked(result)
	}
	l.g.v.mu.Unlock()
	if l.g.v.opts.GiveUp == GiveUpAll {
		l.g.end(failed)
	}
	return failed
}

func (l *lane[P, O, A]) result(k Kind, err error) Result[O] {
	r := Result[O]{Env: l.id, Kind: k, Err: err}
	if k == StepResult && err != nil {
		r.Step = missing[O](err)
	}
	return r
}

// answerLocked gives a request its one verdict.
func (l *lane[P, O, A]) answerLocked(r *request[O, A], result Result[O]) {
	if r.batch == nil {
		l.g.deliverLocked(result)
		return
	}
	r.batch.steps[r.index] = result.Step
	r.batch.unanswered--
	if r.batch.unanswered == 0 {
		close(r.batch.answered)
	}
}

// settleLocked says that nothing more follows from a request; err, that the
// environment did not get ready again.
func (r *request[O, A]) settleLocked(err error) {
	b := r.batch
	if b == nil {
		return
	}
	b.errs = append(b.errs, err)
	if len(b.errs) == len(b.steps) {
		close(b.settled)
	}
}

// step executes a step. A reset follows if goesOn says so, then because of why,
// if the step has failed. If none follows after a failure the environment is
// given up.
func (l *lane[P, O, A]) step(ctx context.Context, r *request[O, A]) (why error, goesOn bool) {
	o := &l.g.v.opts
	reply, err := l.do(ctx, o.StepTimeout, "Step", r.action)
	var ts Timestep[O]
	if err == nil {
		ts, err = supervisor.Value[Timestep[O]](reply)
	}
	if err == nil && reply.Incarnation != l.life {
		err = ErrReplaced
	}
	l.g.v.mu.Lock()
	defer l.g.v.mu.Unlock()
	result := l.result(StepResult, err)
	l.stats.Steps++
	switch {
	case err != nil:
		l.stats.Abnormal++
		l.state = l.state.to(Error)
		if !errors.Is(err, errWithdrawn) && l.g.ctx.Err() == nil {
			l.cut++
		}
		goesOn = l.cut < o.MaxAbnormal
	case ts.Done:
		l.cut = 0
		l.stats.Episodes++
		l.obs, l.state = ts.Obs, l.state.to(Done)
		goesOn = !o.ManualReset && (o.EpisodeNum == 0 || l.stats.Episodes < o.EpisodeNum)
	default:
		l.obs, l.state = ts.Obs, l.state.to(Run)
	}
	if err == nil {
		result.Step = ts
		if ts.Info.Abnormal {
			l.stats.Abnormal++
		}
	}
	if goesOn { // under the same lock, so that nobody else begins a reset
		l.state = l.state.to(l.afterFailure(err))
	}
	l.answerLocked(r, result)
	return err, goesOn
}
