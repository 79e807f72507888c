package faulttest_test

// A model of the supervisor under callers that do all at once. It does not say what a request ends with, which
// depends on timing, but what it may end with: what its handler does, and what was done meanwhile that can concern it. The
// sequential model, which knows the outcome of everything, is that of the root package.

import (
	"slices"
	"time"
)

// modelOp is one operation, as drawn.
type modelOp struct {
	Do      string        // one of the operations below
	Child   int           // by its place among those that there are
	Pick    []int         // requests, by their age: 0 is the newest
	Takes   time.Duration // of the handler, or of a freeze
	How     string        // the handler ends
	Timeout time.Duration // of the request; 0: none
	Limit   time.Duration // of the call's ctx; 0: long, negative: it has ended
	Ignore  bool          // IgnoreErr
	Script  string        // what OnReply does at its first call
}

// The operations.
const (
	opSend       = "Send"
	opTrySend    = "TrySend"
	opTwice      = "TrySend of an id that is taken"
	opDo         = "Do"
	opGo         = "Go" // a Do in the background
	opCancel     = "Cancel"
	opRecv       = "Recv"
	opRecvAll    = "RecvAll"
	opOnReply    = "OnReply"
	opRestart    = "Restart"
	opUnregister = "Unregister"
	opRegister   = "Register"
	opKill       = "kill"
	opFreeze     = "freeze"
	opShutdown   = "Shutdown"
	opClose      = "Close"
	opStartLink  = "StartLink"
)

// The scripts of OnReply.
const (
	scriptNone  = ""
	scriptSend  = "send"
	scriptAdd   = "add"
	scriptGhost = "add what nobody sends"
	scriptFail  = "fail"
)

// modelRules are what one model begins with.
type modelRules struct {
	Inbox     int    // WithInboxLimit
	Queue     int    // Limits.Queue
	Temporary []bool // of each child at the beginning
	Wide      []bool // it has concurrency
}

// modelChild is one child.
type modelChild struct {
	id        int
	temporary bool
	wide      bool
	process   bool
	gone      bool // unregistered
	ended     bool // it died and does not come back by itself
	kills     int
}

// modelRequest is one request.
type modelRequest struct {
	id     string
	child  *modelChild
	may    fate // that its verdict may be
	refuse fate // that its refusal may be
	barred bool // it must be refused, because its child has ended or its ctx
	tried  bool // by TrySend
	sent   bool // by Send or TrySend, so that its verdict comes through the inbox
	held   bool // accepted, and its verdict was not taken
	listed bool // awaited in the batch that sends it
	ghosts int  // how often somebody may have awaited it in vain: after it was taken, or while it was refused
}

// modelState is everything that is known between two batches.
type modelState struct {
	rules    modelRules
	process  bool
	children []*modelChild
	requests []*modelRequest
	returns  map[*modelChild]bool // in this batch, even if it had ended
}

// modelStep is an operation with what it means.
type modelStep struct {
	modelOp
	child *modelChild
	req   *modelRequest   // that it sends
	ids   []*modelRequest // that it awaits or cancels
	extra *modelRequest   // that its script sends or adds
}

// maxModelKills keeps delays before restarts short.
const maxModelKills = 2

// modelSoon is the limit of calls that would not end by themselves.
const modelSoon = 5 * time.Millisecond

// held lists the requests that are open or unclaimed.
func (m *modelState) held() (held []*modelRequest) {
	for _, r := range m.requests {
		if r.sent && r.held {
			held = append(held, r)
		}
	}
	return held
}

// steps gives the operations of a batch their meaning. What has none now is left out.
func (m *modelState) steps(batch [][]modelOp, fresh func(*modelRequest) *modelRequest) [][]*modelStep {
	present := slices.DeleteFunc(slices.Clone(m.children), func(c *modelChild) bool { return c.gone })
	shutdown := modelHas(batch, opShutdown, opClose) > 0
	all := make([][]*modelStep, len(batch))
	for i, ops := range batch {
		for _, op := range ops {
			s := &modelStep{modelOp: op}
			if op.Child < 0 { // also those that are gone
				s.child = m.children[-op.Child%len(m.children)]
			} else if len(present) > 0 {
				s.child = present[op.Child%len(present)]
			}
			switch op.Do {
			case opSend, opTrySend, opDo, opGo:
				if s.child == nil {
					continue
				}
				s.req = fresh(&modelRequest{child: s.child, tried: op.Do == opTrySend, sent: op.Do == opSend || op.Do == opTrySend})
			case opCancel, opRecvAll, opOnReply:
				for _, age := range op.Pick {
					if sends := m.sends(); age < len(sends) {
						s.ids = append(s.ids, sends[len(sends)-1-age])
					}
				}
				if len(s.ids) == 0 {
					continue
				}
				if s.child != nil && op.Do == opOnReply && (op.Script == scriptSend || op.Script == scriptGhost) {
					s.extra = fresh(&modelRequest{child: s.child, sent: true})
				} else if op.Do == opOnReply && op.Script == scriptAdd {
					s.extra = m.sends()[0]
				}
				if op.Limit == 0 && s.extra != nil && op.Script != scriptSend {
					s.Limit = modelSoon // what it adds may never come
				}
			case opTwice:
				if held := m.held(); len(held) == 0 || modelHas(batch, opRecv, opRecvAll, opOnReply) > 0 {
					continue
				} else {
					s.ids = held[len(held)-1:]
				}
			case opKill, opFreeze:
				if s.child == nil || !s.child.process || s.child.gone || op.Do == opKill && s.child.kills == maxModelKills {
					continue
				}
				if op.Do == opKill {
					s.child.kills++
				}
			case opStartLink:
				if shutdown {
					continue
				}
			case opRestart, opUnregister:
				if s.child == nil {
					continue
				}
			}
			all[i] = append(all[i], s)
		}
	}
	return all
}

// modelHas counts operations.
func modelHas(batch [][]modelOp, names ...string) (n int) {
	for _, op := range slices.Concat(batch...) {
		if slices.Contains(names, op.Do) {
			n++
		}
	}
	return n
}

// sends are the requests of Send.
func (m *modelState) sends() (sends []*modelRequest) {
	for _, r := range m.requests {
		if r.sent {
			sends = append(sends, r)
		}
	}
	return sends
}

// foresee says of all requests what a batch may do to them.
func (m *modelState) foresee(batch [][]*modelStep) {
	fresh, takers := 0, 0
	m.returns = make(map[*modelChild]bool)
	for _, s := range slices.Concat(batch...) {
		if s.Do == opRestart {
			m.returns[s.child] = true
		}
		for _, r := range []*modelRequest{s.req, s.extra} {
			if r != nil && r.sent && !r.held {
				fresh++
			}
		}
		if s.Do == opRecv || s.Do == opRecvAll || s.Do == opOnReply {
			takers++
		}
	}
	crowded := len(m.held())+fresh > m.rules.Inbox
	for _, s := range slices.Concat(batch...) {
		m.foreseeOwn(s, crowded)
	}
	for _, s := range slices.Concat(batch...) {
		m.foreseeOthers(s, takers)
	}
}

// foreseeOwn says what an operation itself may do to what it sends and awaits.
func (m *modelState) foreseeOwn(s *modelStep, crowded bool) {
	for _, r := range []*modelRequest{s.req, s.extra} {
		if r == nil || r.may != 0 {
			continue
		}
		r.may = fateOfToil(s.How)
		if r == s.extra {
			r.may, r.refuse = fateValue, fateTimeout|fateCanceled|fateClosed // the gather may be over
		}
		if crowded && r.sent {
			r.refuse |= fateBusy
		}
		if s.Do == opTrySend && m.rules.Queue > 0 {
			r.refuse |= fateBusy
		}
		switch {
		case r.child.gone:
			r.refuse, r.barred = r.refuse|fateNoChild, true
		case r.child.ended:
			r.refuse, r.barred = r.refuse|fateExit|fateClosed, !m.returns[r.child]
		}
	}
	if s.req != nil && s.Timeout > 0 && s.Timeout < time.Minute {
		s.req.may |= fateTimeout
		s.req.refuse |= fateTimeout
	}
	over := fate(0)
	switch {
	case s.Limit < 0:
		over = fateCanceled
	case s.Limit > 0:
		over = fateTimeout
	}
	if s.req != nil && s.Do != opTrySend {
		s.req.refuse |= over
		if !s.req.sent {
			s.req.may |= over
		}
		s.req.barred = s.req.barred || s.Limit < 0
	}
	if s.Do == opRecvAll || s.Do == opOnReply {
		for _, r := range append(s.ids, s.extra) {
			if r != nil {
				r.may |= over
				r.listed = r.listed || !r.held
			}
		}
	}
	if s.Do == opCancel {
		for _, r := range s.ids {
			r.may |= fateCanceled
		}
	}
}

// foreseeOthers says what an operation may do to the requests of others: all that are not answered for sure, which those of
// the same batch are not either.
func (m *modelState) foreseeOthers(s *modelStep, takers int) {
	concerns := func(r *modelRequest) bool { return s.child != nil && r.child == s.child }
	var may, refuse, busy fate
	switch s.Do {
	case opRestart:
		may, busy = fateRestarted, fateBusy
	case opUnregister:
		may, refuse = fateClosed, fateClosed|fateNoChild
	case opKill:
		may, busy = fateExit, fateBusy
		if s.child.temporary {
			refuse = fateExit | fateClosed // closed, because of the exit, once it is known that no life follows
		}
	case opShutdown, opClose:
		may, refuse = fateClosed, fateClosed
		if s.Do == opClose || s.Limit != 0 {
			may |= fateExit | fateStopped
		}
		concerns = func(*modelRequest) bool { return true }
	}
	for _, r := range m.requests {
		if !concerns(r) {
			continue
		}
		r.may |= may
		r.refuse |= refuse
		if r.tried {
			r.refuse |= busy
		}
	}
	if s.Do == opOnReply && s.extra != nil && s.Script == scriptAdd && takers > 0 {
		s.extra.ghosts++
	}
}
