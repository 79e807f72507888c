package supervisor_test

import (
	"slices"
	"time"
)

// model is a supervisor in its simplest form: lists that are searched from the front for everything, and a clock that
// goes from one event to the next.
type model struct {
	limit   int // of the inbox
	now     time.Duration
	queues  [2][]*modelRequest // open requests of each child; the first one is being executed
	arrived []modelReply       // not taken yet, in the order of arrival
}

type modelRequest struct {
	id      string
	child   int
	takes   time.Duration // the time of its handler
	fails   bool
	expires time.Duration // when its own Timeout is over; 0: never
	ends    time.Duration // when its handler returns; 0: it has not begun
}

type modelReply struct{ id, outcome string }

// The outcomes of requests, of entries, and of calls.
const (
	gotValue     = "value"
	gotError     = "error of the handler"
	gotTimeout   = "timeout"
	gotCanceled  = "cancelled"
	gotRestarted = "restarted"
	isPending    = "pending"
	isUnknown    = "no such request"
	isBusy       = "busy"
	isDuplicate  = "duplicate"
	isCallback   = "error of OnReply"
)

func (m *model) find(id string) *modelRequest {
	for _, q := range m.queues {
		for _, r := range q {
			if r.id == id {
				return r
			}
		}
	}
	return nil
}

func (m *model) open() int { return len(m.queues[0]) + len(m.queues[1]) }

func (m *model) hasArrived(id string) bool {
	return slices.ContainsFunc(m.arrived, func(r modelReply) bool { return r.id == id })
}

func (m *model) send(r modelRequest) string {
	switch {
	case m.find(r.id) != nil || m.hasArrived(r.id):
		return isDuplicate
	case m.open()+len(m.arrived) >= m.limit:
		return isBusy
	}
	m.queues[r.child] = append(m.queues[r.child], &r)
	m.begin()
	return ""
}

// begin starts the handlers of what is first in its queue.
func (m *model) begin() {
	for _, q := range m.queues {
		if len(q) > 0 && q[0].ends == 0 {
			q[0].ends = m.now + q[0].takes
		}
	}
}

// settle gives an open request its verdict.
func (m *model) settle(r *modelRequest, outcome string) {
	q := &m.queues[r.child]
	*q = slices.DeleteFunc(*q, func(other *modelRequest) bool { return other == r })
	m.arrived = append(m.arrived, modelReply{r.id, outcome})
	m.begin()
}

// step lets the next event happen if it comes before limit, where 0 means never. Otherwise the clock goes to limit.
func (m *model) step(limit time.Duration) bool {
	var next *modelRequest
	var at time.Duration
	var outcome string
	for _, q := range m.queues {
		for _, r := range q {
			if r.ends > 0 && (next == nil || r.ends < at) {
				next, at, outcome = r, r.ends, gotValue
				if r.fails {
					outcome = gotError
				}
			}
			if r.expires > 0 && (next == nil || r.expires < at) {
				next, at, outcome = r, r.expires, gotTimeout
			}
		}
	}
	if next == nil || limit > 0 && at >= limit {
		m.now = max(m.now, limit)
		return false
	}
	m.now = at
	m.settle(next, outcome)
	return true
}

func (m *model) advance(to time.Duration) {
	for m.step(to) {
	}
}

// take removes the first reply that somebody wants.
func (m *model) take(wants func(id string) bool) (modelReply, bool) {
	i := slices.IndexFunc(m.arrived, func(r modelReply) bool { return wants(r.id) })
	if i < 0 {
		return modelReply{}, false
	}
	r := m.arrived[i]
	m.arrived = slices.Delete(m.arrived, i, i+1)
	return r, true
}

// recv is Recv with a deadline; the end of it is a timeout.
func (m *model) recv(limit time.Duration) modelReply {
	for {
		if r, ok := m.take(func(string) bool { return true }); ok {
			return r
		}
		if !m.step(limit) {
			return modelReply{outcome: gotTimeout}
		}
	}
}

func (m *model) cancel(ids []string) (unknown bool) {
	for _, id := range ids {
		if r := m.find(id); r != nil {
			m.settle(r, gotCanceled)
		} else if !m.hasArrived(id) {
			unknown = true
		}
	}
	return unknown
}

// restart withdraws all open requests; their verdicts come in the order of the sends.
func (m *model) restart(child int) {
	open := m.queues[child]
	m.queues[child] = nil
	for _, r := range open {
		m.arrived = append(m.arrived, modelReply{r.id, gotRestarted})
	}
}

// modelCall is a RecvAll.
type modelCall struct {
	list      []string
	ignoreErr bool
	deadline  time.Duration
	idle      time.Duration  // 0: none
	script    []scriptAction // what OnReply does at its calls
}

// scriptAction is what one call of OnReply does.
type scriptAction struct {
	send  *modelRequest // Waiting.Send
	add   string        // Waiting.Add
	other *modelRequest // TrySend, as somebody else would
	fail  bool          // return an error
}

// modelResult is what it returns, and what OnReply sees.
type modelResult struct {
	entries []string
	seen    []modelReply
	outcome string
}

// gathering is a RecvAll under way.
type gathering struct {
	*model
	modelCall
	pending []string // without a verdict, in the order in which they were awaited
	taken   map[string]bool
	local   []modelReply
	over    bool
	late    map[string]bool // added after the end
}

func (m *model) recvAll(c modelCall) modelResult {
	var res modelResult
	for _, id := range c.list {
		if m.find(id) == nil && !m.hasArrived(id) {
			return modelResult{outcome: isUnknown}
		}
		res.entries = append(res.entries, isPending)
	}
	g := &gathering{model: m, modelCall: c, taken: make(map[string]bool), late: make(map[string]bool)}
	for _, id := range c.list {
		g.await(id)
	}
	for {
		r, ok := g.next()
		if !ok {
			return res
		}
		for i, id := range c.list {
			if id == r.id {
				res.entries[i] = r.outcome
				if r.outcome != gotValue && res.outcome == "" && !c.ignoreErr {
					res.outcome = r.outcome
				}
			}
		}
		var action scriptAction
		if n := len(res.seen); n < len(c.script) {
			action = c.script[n]
		}
		res.seen = append(res.seen, r)
		if action.fail {
			res.outcome = isCallback
			return res
		}
		g.act(action, r.id)
		if res.outcome != "" && !g.over {
			return res
		}
	}
}

func (g *gathering) await(id string) {
	if !slices.Contains(g.pending, id) {
		g.pending = append(g.pending, id)
	}
}

func (g *gathering) act(a scriptAction, seen string) {
	switch {
	case a.send != nil:
		if !g.over && g.send(*a.send) == "" {
			g.await(a.send.id)
		}
	case a.other != nil:
		g.send(*a.other)
	case a.add != "" && !(g.over && g.late[seen]):
		g.await(a.add)
		if g.over {
			g.late[a.add] = true
		}
	}
}

// next is the next verdict of what is awaited.
func (g *gathering) next() (modelReply, bool) {
	for {
		if g.over {
			g.expire()
		}
		if len(g.local) > 0 {
			r := g.local[0]
			g.local = g.local[1:]
			return r, true
		}
		if r, ok := g.take(func(id string) bool { return slices.Contains(g.pending, id) }); ok {
			g.pending = slices.DeleteFunc(g.pending, func(id string) bool { return id == r.id })
			return r, true
		}
		if len(g.pending) == 0 {
			return modelReply{}, false
		}
		g.wait()
	}
}

// wait lets events happen until one is awaited, or the time is over.
func (g *gathering) wait() {
	limit := g.deadline
	if g.idle > 0 {
		limit = min(limit, g.now+g.idle)
	}
	for !slices.ContainsFunc(g.pending, g.hasArrived) {
		if !g.step(limit) {
			g.over = true
			return
		}
	}
}

func (g *gathering) expire() {
	for _, id := range slices.Clone(g.pending) {
		if r := g.find(id); r != nil {
			g.settle(r, gotTimeout)
		} else if !g.hasArrived(id) {
			g.pending = slices.DeleteFunc(g.pending, func(other string) bool { return other == id })
			g.local = append(g.local, modelReply{id, gotTimeout})
		}
	}
}
