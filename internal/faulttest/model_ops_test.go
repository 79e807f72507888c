package faulttest_test

import (
	"context"
	"errors"
	"slices"

	"github.com/workerlink/supervisor"
)

// errModelScript ends a RecvAll.
var errModelScript = errors.New("model: enough")

// limit is the context of the step's call.
func (s *modelStep) limit() (context.Context, context.CancelFunc) {
	limit := s.Limit
	if limit == 0 {
		limit = modelPatience
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	if s.Limit < 0 {
		ctx, cancel = context.WithCancel(context.Background())
		cancel()
	}
	return ctx, cancel
}

// payload is the step's request.
func (r *modelRun) payload(q *modelRequest, s *modelStep, how string) supervisor.SendPayload {
	p := supervisor.NewSendPayload(q.child.id, "Toil", q.id, s.Takes, how)
	p.ReqID = q.id
	r.book.open(q.id, toilPage{child: q.child.id, method: "Toil", may: q.may}, "%s", s.describe())
	return p
}

// do does one step and holds its outcome against the model.
func (r *modelRun) do(s *modelStep) {
	ctx, cancel := s.limit()
	defer cancel()
	switch s.Do {
	case opSend:
		p := r.payload(s.req, s, s.How)
		p.Timeout = s.Timeout
		r.handed(s.req, r.sup.Send(ctx, p))
	case opTrySend:
		p := r.payload(s.req, s, s.How)
		p.Timeout = s.Timeout
		r.handed(s.req, r.sup.TrySend(p))
	case opTwice:
		p := supervisor.NewSendPayload(s.ids[0].child.id, "Toil", s.ids[0].id, s.Takes, s.How)
		p.ReqID = s.ids[0].id
		r.expect(s, r.sup.TrySend(p), fateDuplicate|fateNoChild|fateClosed)
	case opDo:
		p := r.payload(s.req, s, s.How)
		p.Timeout = s.Timeout
		r.book.allow(s.req.id, s.req.refuse)
		reply, err := r.sup.Do(ctx, p)
		if reply.Err != err { //nolint:errorlint // it is the very same
			r.book.complain("%s: Do returns %v, and %v in the reply", p.ReqID, err, reply.Err)
		}
		r.barred(s.req, err)
		r.book.answered(p.ReqID, reply)
	case opGo:
		r.goDo(s)
	case opCancel:
		r.expect(s, r.sup.Cancel(idsOfModel(s.ids)...), r.known(s, 0))
	case opRecv:
		r.recv(s)
	case opRecvAll, opOnReply:
		r.recvAll(ctx, s)
	default:
		r.doLife(ctx, s)
	}
}

func idsOfModel(list []*modelRequest) (ids []string) {
	for _, q := range list {
		ids = append(ids, q.id)
	}
	return ids
}

// barred complains about a request that should have been refused.
func (r *modelRun) barred(q *modelRequest, err error) {
	if e := new(supervisor.CallError); q.barred && (fateOf(err)&q.refuse == 0 || !errors.As(err, &e) || !e.Unexecuted) {
		r.book.complain("%s: it had to be refused as %q, and was not: %v", q.id, q.refuse, err)
	}
}

func (r *modelRun) handed(q *modelRequest, err error) {
	r.barred(q, err)
	switch { // nobody else reads it before the end of the batch
	case r.book.handed(q.id, err, q.refuse):
		q.held = true
	case q.listed:
		q.ghosts++
	}
}

// goDo begins a request in the background, which the end of the next batch awaits.
func (r *modelRun) goDo(s *modelStep) {
	p := r.payload(s.req, s, s.How)
	r.book.allow(s.req.id, s.req.refuse)
	ctx := context.Background()
	if s.Limit != 0 { // it must outlast the step
		limited, cancel := s.limit()
		ctx = limited
		r.t.Cleanup(cancel)
	}
	f := supervisor.Go[string](ctx, r.sup, p.ProcID, p.Method, p.Args...)
	r.book.handed(p.ReqID, nil, 0) // a refusal comes by the future
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gone = append(r.gone, modelGoing{s.req, f})
}

// expect complains about an outcome that may not be.
func (r *modelRun) expect(s *modelStep, err error, may fate) {
	if got := fateOf(err); got&may == 0 {
		r.book.complain("%s: the outcome may only be %q, and is %q: %v", s.describe(), may, got, err)
	}
}

// known says whether the ids of a step are known to be open or unclaimed, if that many others take replies meanwhile.
func (r *modelRun) known(s *modelStep, own int) fate {
	sure := r.batch.takers == own
	for _, q := range s.ids {
		own := slices.Index(r.requests, q) >= r.batch.first
		switch {
		case !own && !r.batch.held[q]:
			return fateNoRequest
		case own:
			sure = false
		}
	}
	if sure {
		return fateValue
	}
	return fateValue | fateNoRequest
}

func (r *modelRun) recv(s *modelStep) {
	if s.Limit == 0 {
		s.Limit = modelSoon
	}
	ctx, cancel := s.limit()
	defer cancel()
	var opts []supervisor.RecvOption
	if s.Ignore {
		opts = append(opts, supervisor.IgnoreErr())
	}
	p, err := r.sup.Recv(ctx, opts...)
	if p.ReqID != "" {
		if s.Ignore && err != nil || !s.Ignore && err != p.Err { //nolint:errorlint // it is the very same
			r.book.complain("%s: Recv returns %v, and %v in the reply", p.ReqID, err, p.Err)
		}
		r.took(p)
		return
	}
	may := fateTimeout | fateCanceled
	if r.batch.down {
		may |= fateClosed
	}
	r.expect(s, err, may)
}

func (r *modelRun) took(p supervisor.RecvPayload) {
	r.book.note(p.ReqID, "taken")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken = append(r.taken, p)
}

// recvAll is RecvAll with and without OnReply.
func (r *modelRun) recvAll(ctx context.Context, s *modelStep) {
	var reqs []supervisor.SendPayload
	for _, q := range s.ids {
		r.book.note(q.id, "awaited by %s", s.describe())
		reqs = append(reqs, supervisor.SendPayload{ProcID: q.child.id, ReqID: q.id, Method: "Toil"})
	}
	var opts []supervisor.RecvOption
	if s.Ignore {
		opts = append(opts, supervisor.IgnoreErr())
	}
	seen, calls := make(map[string]error), 0
	if s.Do == opOnReply {
		opts = append(opts, supervisor.OnReply(func(w *supervisor.Waiting, p supervisor.RecvPayload) error {
			if _, again := seen[p.ReqID]; !again { // what is added once more has no second reply, but the end of the wait
				seen[p.ReqID] = p.Err
			}
			calls++
			if s.extra == nil || p.ReqID != s.extra.id || s.Script != scriptGhost {
				r.took(p)
			} else if fateOf(p.Err)&(fateTimeout|fateCanceled|fateClosed) == 0 {
				r.book.complain("%s: a verdict of a request that nobody sent: %+v", p.ReqID, p)
			}
			return r.play(w, s, calls)
		}))
	}
	got, err := r.sup.RecvAll(ctx, reqs, opts...)
	switch f := fateOf(err); {
	case err == errModelScript: //nolint:errorlint // it is the very same
	case got == nil:
		may := r.known(s, 1) &^ fateValue
		if r.batch.down {
			may |= fateClosed
		}
		r.expect(s, err, may)
		return
	case r.known(s, 1) == fateNoRequest:
		r.book.complain("%s: an id is unknown, and the outcome is %q", s.describe(), f)
	case s.Ignore && err != nil:
		r.book.complain("%s with IgnoreErr: %v", s.describe(), err)
	case err != nil && !slices.ContainsFunc(got, func(p supervisor.RecvPayload) bool { return p.Err == err }): //nolint:errorlint // it is the very same
		r.book.complain("%s: its error is that of no entry: %v", s.describe(), err)
	}
	r.entries(s, got, err, seen)
}

// entries checks what RecvAll returns, and takes the verdicts unless OnReply has.
func (r *modelRun) entries(s *modelStep, got []supervisor.RecvPayload, err error, seen map[string]error) {
	if len(got) != len(s.ids) {
		r.book.complain("%s: %d entries", s.describe(), len(got))
		return
	}
	done := make(map[string]error)
	for i, p := range got {
		if p.ReqID != s.ids[i].id || p.ProcID != s.ids[i].child.id {
			r.book.complain("%s: entry %d is of %s, child %d", s.describe(), i, p.ReqID, p.ProcID)
			continue
		}
		if fateOf(p.Err) == fatePending {
			if err == nil {
				r.book.complain("%s: entry %d is pending, and there is no error", s.describe(), i)
			}
			continue
		}
		if err == nil && !s.Ignore && p.Err != nil {
			r.book.complain("%s: entry %d is an error, and RecvAll's is nil: %v", s.describe(), i, p.Err)
		}
		known, twice := done[p.ReqID]
		if s.Do == opOnReply {
			known, twice = seen[p.ReqID]
			if !twice {
				r.book.complain("%s: OnReply has not seen entry %d", s.describe(), i)
			}
		}
		if twice && known != p.Err { //nolint:errorlint // it is the very same
			r.book.complain("%s: entry %d is %v, its reply was %v", s.describe(), i, p.Err, known)
		}
		if done[p.ReqID] = p.Err; !twice {
			r.took(p)
		}
	}
}

// play does at the first reply what the script says.
func (r *modelRun) play(w *supervisor.Waiting, s *modelStep, call int) error {
	if call != 1 {
		return nil
	}
	switch s.Script {
	case scriptSend:
		if s.extra != nil {
			r.handed(s.extra, w.Send(r.payload(s.extra, s, byValue)))
		}
	case scriptAdd, scriptGhost:
		if s.extra != nil {
			err := w.Add(supervisor.SendPayload{ProcID: s.extra.child.id, ReqID: s.extra.id, Method: "Toil"})
			r.expect(s, err, fateValue|fateNoRequest|fateTimeout|fateCanceled|fateClosed)
		}
	case scriptFail:
		return errModelScript
	}
	return nil
}
