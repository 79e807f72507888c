package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/workerlink/supervisor/future"
	"github.com/workerlink/supervisor/internal/inbox"
)

// RecvOption is an argument of [Supervisor.Recv] and [Supervisor.RecvAll].
type RecvOption interface{ applyRecv(*recvOptions) }

type recvOptionFunc func(*recvOptions)

func (f recvOptionFunc) applyRecv(o *recvOptions) { f(o) }

type recvOptions struct {
	ignoreErr bool
	idle      time.Duration
	onReply   func(*Waiting, RecvPayload) error
}

// IgnoreErr makes error replies ordinary results: they do not end RecvAll and
// are not Recv's error. The payload's Err has them.
func IgnoreErr() RecvOption {
	return recvOptionFunc(func(o *recvOptions) { o.ignoreErr = true })
}

// IdleTimeout limits the time between two awaited replies. Its expiry counts as
// the end of ctx by [ErrTimeout].
func IdleTimeout(d time.Duration) RecvOption {
	return recvOptionFunc(func(o *recvOptions) { o.idle = d })
}

// OnReply calls f for every awaited reply in the order of arrival, verdicts
// such as timeouts and crashes included, on the goroutine of RecvAll and under
// no lock. f may use the supervisor as it likes, and await more through w. Its
// error ends RecvAll, which returns it; its panic passes through RecvAll, and
// what was not yet taken stays receivable.
func OnReply(f func(w *Waiting, p RecvPayload) error) RecvOption {
	return recvOptionFunc(func(o *recvOptions) { o.onReply = f })
}

func newRecvOptions(opts []RecvOption) (recvOptions, error) {
	var o recvOptions
	for _, opt := range opts {
		if opt == nil {
			return o, fmt.Errorf("%w: nil receive option", ErrBadArgs)
		}
		opt.applyRecv(&o)
	}
	if o.idle < 0 {
		return o, fmt.Errorf("%w: negative IdleTimeout", ErrBadArgs)
	}
	return o, nil
}

// within returns the context of one wait.
func (o *recvOptions) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.idle == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, o.idle, ErrTimeout)
}

// receiving returns the generation whose replies can be taken.
func (s *Supervisor) receiving() (*generation, error) {
	g := s.gen.Load()
	if g.phase() == unstarted {
		return nil, ErrNotStarted
	}
	return g, nil
}

// Recv returns the next reply to a Send that no RecvAll waits for, in the order
// of arrival, and waits for one until ctx ends. An error reply gives the
// payload and its [*CallError]; Recv's own errors, such as [ErrTimeout] and
// [ErrClosed], are never one. What arrived before a shutdown can be taken until
// the next StartLink.
func (s *Supervisor) Recv(ctx context.Context, opts ...RecvOption) (RecvPayload, error) {
	o, err := newRecvOptions(opts)
	if err != nil {
		return RecvPayload{}, err
	}
	if o.onReply != nil {
		return RecvPayload{}, fmt.Errorf("%w: OnReply is for RecvAll", ErrBadArgs)
	}
	g, err := s.receiving()
	if err != nil {
		return RecvPayload{}, err
	}
	ctx, cancel := o.within(ctx)
	defer cancel()
	p, err := g.inbox.Next(ctx)
	switch {
	case errors.Is(err, inbox.ErrClosed):
		return RecvPayload{}, ErrClosed
	case err != nil:
		return RecvPayload{}, orErr(future.Cause(ctx), err)
	case o.ignoreErr:
		return p, nil
	default:
		return p, p.Err
	}
}

func orErr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// RecvAll waits for the replies to requests that were sent and returns one
// entry per request, in their order and with their ids, whoever answers first.
// Other replies are left for others, in their order. A request that was never
// sent, or whose reply was already taken, is an [ErrNoSuchRequest] at once; one
// that is listed twice has its reply twice.
//
// Without [IgnoreErr] the first error reply ends the wait and is the error; the
// entries that have no reply yet are [ErrPending] and stay receivable. When ctx
// ends, what is still open is abandoned: its entry is [ErrTimeout] or
// [ErrCanceled], its handler is told, its late reply is dropped. The error is
// then the first [*CallError], or nil with IgnoreErr.
func (s *Supervisor) RecvAll(ctx context.Context, reqs []SendPayload, opts ...RecvOption) ([]RecvPayload, error) {
	o, err := newRecvOptions(opts)
	if err != nil || len(reqs) == 0 {
		return []RecvPayload{}, err
	}
	g, err := s.receiving()
	if err != nil {
		return nil, err
	}
	w := &Waiting{sup: s, ctx: ctx, results: make([]RecvPayload, len(reqs)), at: make(map[string][]int, len(reqs))}
	ids := make([]string, len(reqs))
	for i, p := range reqs {
		ids[i] = p.ReqID
		w.at[p.ReqID] = append(w.at[p.ReqID], i)
		w.results[i] = p.unanswered(ErrPending)
	}
	if w.gather, err = g.inbox.Await(ids); err != nil {
		return nil, inboxError(err)
	}
	defer w.gather.Release()
	err = w.run(g, &o)
	return w.results, err
}

// unanswered is the entry of a request that has no reply.
func (p *SendPayload) unanswered(err error) RecvPayload {
	return RecvPayload{
		ProcID: p.ProcID, ReqID: p.ReqID, Method: p.Method,
		Err: &CallError{ProcID: p.ProcID, ReqID: p.ReqID, Method: p.Method, Err: err},
	}
}

// Waiting is the gather that calls an [OnReply] function. It is valid only
// during the call.
type Waiting struct {
	sup     *Supervisor
	gather  *inbox.Gather[RecvPayload]
	ctx     context.Context // RecvAll's; its owner is the goroutine that runs it
	results []RecvPayload
	at      map[string][]int // places of an id in results

	unsent map[string]SendPayload // added without having been sent
	local  []RecvPayload          // verdicts of our own that OnReply has not seen
	end    error                  // why the time is over; nil before
	nested bool                   // the function is being called for a request added after the end
	added  map[string]bool        // ids added after the end
}

// Send sends a request and awaits its reply in one step. The reply goes to
// OnReply only. After the end of RecvAll's ctx it is refused.
func (w *Waiting) Send(p SendPayload) error {
	if w.end != nil {
		return p.refused(w.end)
	}
	return w.sup.send(w.ctx, p, true, w.gather)
}

// Add awaits the replies to further requests, whether they were sent or will
// be by others. They go to OnReply only. After the end of RecvAll's ctx their
// verdict is [ErrTimeout], or [ErrCanceled], at once; requests added in answer
// to such a verdict are refused.
func (w *Waiting) Add(reqs ...SendPayload) error {
	for _, p := range reqs {
		if w.end != nil && w.nested {
			return p.refused(w.end)
		}
		if err := w.gather.Add(p.ReqID); err != nil {
			return p.refused(inboxError(err))
		}
		if w.unsent == nil {
			w.unsent = make(map[string]SendPayload)
		}
		w.unsent[p.ReqID] = p // whether it was sent shows only at the end
		if w.end != nil {
			if w.added == nil {
				w.added = make(map[string]bool)
			}
			w.added[p.ReqID] = true
		}
	}
	return nil
}

// run takes replies until nothing is awaited any more.
func (w *Waiting) run(g *generation, o *recvOptions) error {
	var first error
	for {
		p, more, err := w.next(g, o)
		if err != nil {
			return err
		}
		if !more {
			break
		}
		places := w.at[p.ReqID]
		delete(w.at, p.ReqID) // OnReply may send another request of this id
		delete(w.unsent, p.ReqID)
		for _, i := range places {
			w.results[i] = p
		}
		if p.Err != nil && first == nil && !o.ignoreErr && places != nil {
			first = p.Err
		}
		if o.onReply != nil {
			w.nested = w.added[p.ReqID]
			if err := o.onReply(w, p); err != nil {
				return err
			}
			w.nested = false
		}
		if first != nil && w.end == nil {
			return first
		}
	}
	return first
}

// next returns the next verdict. When the time is over it withdraws what is
// open, whose verdicts then arrive like any other.
func (w *Waiting) next(g *generation, o *recvOptions) (p RecvPayload, more bool, err error) {
	for {
		if w.end != nil {
			w.expire(g)
		}
		if len(w.local) > 0 {
			p, w.local = w.local[0], w.local[1:]
			return p, true, nil
		}
		ctx := context.Background() // after the end everything awaited arrives at once
		cancel := func() {}
		if w.end == nil {
			ctx, cancel = o.within(w.ctx)
		}
		_, p, err := w.gather.Next(ctx)
		ended := future.Cause(ctx)
		cancel()
		switch {
		case err == nil:
			return p, true, nil
		case errors.Is(err, inbox.ErrNone):
			return p, false, nil
		case errors.Is(err, inbox.ErrDropped): // a Send failed; after the end, expire looks again
			if w.end == nil {
				w.refuse()
			}
		case errors.Is(err, inbox.ErrClosed): // shut down: what was sent has its verdict
			w.end = ErrClosed
		case ended != nil && w.end == nil:
			w.end = ended
		default:
			return p, false, err
		}
	}
}

// expire gives every awaited request that has no verdict the one that the time
// is over.
func (w *Waiting) expire(g *generation) {
	var open []*call
	defer func() { withdrawAll(open, w.end) }()
	for _, id := range w.gather.Pending() {
		if w.gather.ForgetUnsent(id) {
			w.answer(id, w.end)
		} else if owner, _ := g.inbox.Owner(id); owner != nil { // else it arrived just now
			open = append(open, owner.(*call))
		}
	}
}

// refuse answers the listed requests that are not there any more, because their
// Sends failed meanwhile, as if RecvAll had been called a moment later.
func (w *Waiting) refuse() {
	for _, id := range w.gather.Unsent() {
		if _, listed := w.at[id]; listed && w.gather.ForgetUnsent(id) {
			w.answer(id, fmt.Errorf("%w: its Send was refused", ErrNoSuchRequest))
		}
	}
}

// answer is our own verdict of a request that was not sent.
func (w *Waiting) answer(id string, err error) {
	p := w.unsent[id]
	p.ReqID = id
	if places := w.at[id]; places != nil { // listed, and without a reply
		p.ProcID, p.Method = w.results[places[0]].ProcID, w.results[places[0]].Method
	}
	w.local = append(w.local, p.unanswered(err))
}

// Cancel withdraws requests of Send: their verdict is [ErrCanceled], their
// handlers are told. What is answered already stays so. Ids that are neither
// open nor unclaimed are an [ErrNoSuchRequest]; the others are cancelled all the same.
func (s *Supervisor) Cancel(reqIDs ...string) error {
	g, err := s.receiving()
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range reqIDs {
		owner, known := g.inbox.Owner(id)
		switch {
		case owner != nil:
			owner.(*call).withdraw(ErrCanceled)
		case !known:
			errs = append(errs, fmt.Errorf("%w: %q", ErrNoSuchRequest, id))
		}
	}
	return errors.Join(errs...)
}
