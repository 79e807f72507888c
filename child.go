package supervisor

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Child is a kind of child that was made elsewhere, for
// [Supervisor.RegisterChild]. The built-in kinds are Children themselves.
type Child interface {
	// Start begins one life and returns when it is ready. ctx bounds the start
	// only, and its end must end a start that is under way.
	Start(ctx context.Context, life *Life) (Link, error)
}

// A Link is one life of a [Child]. Its methods may be called concurrently.
type Link interface {
	// Submit hands over one request and does not wait for it. After an error
	// the request was not executed and never will be; one that is [ErrClosed]
	// says that this life takes no more, and the request goes to the next. After
	// nil one [Life.Reply] is owed, unless the life ends.
	Submit(r *Request) error
	// Stop asks the life to end: no further requests, those that were
	// submitted may still be executed. When ctx ends it forces the end. It
	// returns once the life has ended, with a [*StuckError] if it cannot be
	// ended. It may be called again, also while another call waits.
	Stop(ctx context.Context) error
	// Wait returns once the life has ended and its last reply was delivered:
	// nil after an orderly end, else how it ended.
	Wait() error
}

// Life is the supervisor's side of one life of a child.
type Life struct {
	self *self
	slot *slot

	link Link      // set before the first request
	up   time.Time // when it got ready

	maker atomic.Pointer[string] // the goroutine of its factory in this process; nil before that runs

	worn chan string // why the life is to be recycled; nil if it never is

	mu sync.Mutex
	lifeState
}

// lifeState is guarded by the life's mutex.
type lifeState struct {
	nums      uint64                 // request numbers handed out
	had       uint64                 // requests accepted for it
	most      uint64                 // of them, before the life is recycled; 0: any number
	full      bool                   // no further calls: the life is to be recycled
	ended     bool                   // no further calls: it has ended
	open      call                   // head of the ring of open calls
	quiet     chan struct{}          // closed when a full life has no open calls; nil before
	guard     *vigil                 // nil if there is nothing to watch
	asked     uint64                 // questions so far
	questions map[uint64]func(error) // open ones, by number
	unwatched bool                   // nor will there be
}

// incarnations numbers lives across all supervisors of this process.
var incarnations atomic.Uint64

func newLife(s *slot) *Life {
	l := &Life{slot: s}
	l.self = &self{slot: s, Info: Info{ProcID: s.id, Name: s.cfg.name, Incarnation: incarnations.Add(1)}}
	l.open.next, l.open.prev = &l.open, &l.open
	return l
}

// Incarnation returns the life's number, which no other life in this process has.
func (l *Life) Incarnation() uint64 { return l.self.Incarnation }

// ProcID returns the child's id.
func (l *Life) ProcID() int { return l.self.ProcID }

// Name returns the child's name, or "".
func (l *Life) Name() string { return l.self.Name }

// Reply gives a request its verdict: the value or, if err is not nil, the
// error. It never blocks on user code. It reports false if the request had its
// verdict before; then the reply is counted as late and dropped. Only the first
// reply to a request counts.
func (l *Life) Reply(r *Request, value any, err error) bool {
	return l.reply(r, verdict{value: value, err: err})
}

func (l *Life) reply(r *Request, v verdict) bool {
	if r.call == nil { // not ours
		return false
	}
	if r.call.outrun.Load() {
		return false // the life is being ended for it, and how that went will be the verdict
	}
	missed := !v.unexecuted && r.method != methodSnapshot // if it is late; else it answers the withdrawal, or a question of our own
	if !l.remove(r.call) {                                // answered before, or the end of the life did that
		if l.outlived(r.call) && missed {
			l.slot.countLate(l, r.Method)
		}
		return false
	}
	if r.timed && !v.unexecuted {
		l.slot.past.addSample(sample{v.queued, v.ran})
	}
	r.call.leave()                        // the child has let go of it, whether anybody waits or not
	if p, ok := v.err.(*PanicError); ok { //nolint:errorlint // not one that a handler passes on
		l.slot.emit(Event{Kind: EventPanic, Incarnation: l.Incarnation(), Err: p, Text: r.Method})
	}
	overdue := !v.unexecuted && r.overdue() // its timer may not have run yet: this process may have stood still
	switch {
	case overdue:
		r.call.settle(verdict{err: ErrTimeout})
	case r.call.settle(v):
		return true
	}
	if missed {
		l.slot.countLate(l, r.Method)
	}
	return false
}

// add makes c one of the life's open calls and gives it its number; false if
// the life has ended.
func (l *Life) add(c *call) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || l.full {
		return false
	}
	c.life.Store(l)
	l.nums++
	if c.method != methodSnapshot { // that is a question of our own
		l.had++
	}
	if l.most > 0 && l.had == l.most {
		l.full = !l.slot.cfg.watch.recycle.Rolling // then it takes more until the next one is ready
		l.wear(fmt.Sprintf("its limit of %d requests is reached", l.most))
	}
	c.Num = l.nums
	c.next, c.prev = &l.open, l.open.prev
	c.prev.next, l.open.prev = c, c
	return true
}

// remove takes c out; false if it is not one of this life's.
func (l *Life) remove(c *call) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.life.Load() != l || !c.unlink() {
		return false
	}
	l.checkQuietLocked()
	return true
}

// detach takes c out after the link refused it, so that another life can have
// it; false if it is out already.
func (l *Life) detach(c *call) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !c.unlink() {
		return false
	}
	c.life.Store(nil)
	if c.method != methodSnapshot {
		l.had--
	}
	l.checkQuietLocked()
	return true
}

// outlived reports, once, whether c was open when the life ended.
func (l *Life) outlived(c *call) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.life.Load() != l || !c.cut { // of another life it is not ours to look at
		return false
	}
	c.cut = false
	return true
}

// number returns the number of c if it is one of the open calls.
func (l *Life) number(c *call) (num uint64, open bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.life.Load() != l || c.next == nil {
		return 0, false
	}
	return c.Num, true
}

// unlink takes c out of its ring; the life's mutex is held.
func (c *call) unlink() bool {
	if c.next == nil {
		return false
	}
	c.prev.next, c.next.prev = c.next, c.prev
	c.next, c.prev = nil, nil
	return true
}

// pop takes the oldest open call out, for somebody who gives it its verdict.
func (l *Life) pop() *call {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open.next == &l.open {
		return nil
	}
	c := l.open.next
	c.unlink()
	c.cut = true
	return c
}

// end gives every open call the verdict err and takes no further one.
func (l *Life) end(err error) {
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	for c := l.pop(); c != nil; c = l.pop() {
		c.leave()
		if c.outrun.Load() {
			c.settle(verdict{err: because(ErrTimeout, err)})
		} else {
			c.settle(verdict{err: err})
		}
	}
}

// withdrawAll gives the calls that are open now the verdict err.
func (l *Life) withdrawAll(err error) {
	l.mu.Lock()
	var calls []*call
	for c := l.open.next; c != &l.open; c = c.next {
		calls = append(calls, c)
	}
	l.mu.Unlock()
	withdrawAll(calls, err)
}

// OldestRequest is the request of a child that is open longest.
type OldestRequest struct {
	Method string        `json:"method"`
	Age    time.Duration `json:"age_ns"` // at least: since a Snapshot first saw that it is the oldest
}

// look returns the oldest open call, and how many are open.
func (l *Life) look() (oldest *OldestRequest, open int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if first := l.open.next; first != &l.open {
		if first.seen.IsZero() {
			first.seen = time.Now()
		}
		oldest = &OldestRequest{first.Method, time.Since(first.seen)}
	}
	for c := l.open.next; c != &l.open; c = c.next {
		open++
	}
	return oldest, open
}

// oldest returns the method of the call that is open longest, and how many are.
func (l *Life) oldest() (method string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if first := l.open.next; first != &l.open {
		method = first.Method
	}
	for c := l.open.next; c != &l.open; c = c.next {
		n++
	}
	return method, n
}

// call is the host's side of one request, from its checks to its one verdict.
//
// Its room in the queue and its place in its life's ring are another matter:
// they last until the child has let go of the request, which may be long after
// the verdict, so that a child that does not answer cannot pile requests up.
type call struct {
	Request
	slot *slot
	gen  *generation
	id   string
	room room

	life atomic.Pointer[Life] // which holds it; nil before it is submitted
	ringPlace

	done   atomic.Bool
	expiry expiry
	leash
	sink  sink
	reply RecvPayload // valid once delivered
}

// ringPlace is what a call is to its life; guarded by the life's mutex.
type ringPlace struct {
	next, prev *call     // in the ring of open calls
	cut        bool      // the life ended before its reply came
	seen       time.Time // when Snapshot first saw that it is the oldest
}

// expiry is when the verdict of a call is ErrTimeout, if its sender does not
// see to that by a context.
type expiry struct {
	at    time.Time // zero: never
	timer atomic.Pointer[time.Timer]
}

// leash is how long the handler of a call may run.
type leash struct {
	killAfter time.Duration // from its start; 0: for ever
	outrun    atomic.Bool   // it has, and the life ends for it
}

// room is what a call takes of its child's queue.
type room struct {
	size        int64
	taken       atomic.Bool
	stopWaiting atomic.Pointer[context.CancelFunc] // of who waits for it; nil if nobody does
}

// leave gives the call's room back, if it has any.
func (c *call) leave() {
	if c.room.taken.CompareAndSwap(true, false) {
		c.slot.gate.leave(c.room.size)
	}
}

// sink takes the one verdict of a call. It never blocks.
type sink interface{ deliver(c *call) }

// settle gives the call its verdict; false if it has one already.
func (c *call) settle(v verdict) bool {
	if !c.done.CompareAndSwap(false, true) {
		return false
	}
	c.finish(v)
	return true
}

// finish brings the verdict, which the caller has won the right to give, to
// its sink.
func (c *call) finish(v verdict) {
	p := RecvPayload{ProcID: c.slot.id, ReqID: c.id, Method: c.Method, Data: v.value}
	if c.slot.cfg.handlers.timings {
		p.Queued, p.Ran = v.queued, v.ran
	}
	if l := c.life.Load(); l != nil {
		p.Incarnation = l.self.Incarnation
	}
	if b, ok := v.value.([]byte); ok && c.into != nil && len(b) <= cap(c.into) {
		p.Data = append(c.into[:0], b...)
	}
	if v.err != nil {
		p.Data, p.Err = nil, c.failure(p.Incarnation, v.err, v.unexecuted)
	}
	if t := c.expiry.timer.Load(); t != nil {
		t.Stop()
	}
	c.scope.end(v.err)
	if stop := c.room.stopWaiting.Load(); stop != nil {
		(*stop)() // it was withdrawn before a life had it
	}
	c.reply = p
	c.sink.deliver(c)
}

// canceler is a link that has to be told of verdicts which it did not give.
type canceler interface{ cancelRequest(num uint64) }

// withdraw is settle by the host's side: the child is told that nobody waits.
func (c *call) withdraw(err error) bool {
	if !c.settle(verdict{err: err}) {
		return false
	}
	c.tellWithdrawn()
	return true
}

// withdrawAll withdraws calls, which stand in the order of their submission,
// and delivers their verdicts in that order. The children are told the other
// way round, so that no request begins because one before it has ended.
func withdrawAll(calls []*call, err error) {
	calls = slices.DeleteFunc(calls, func(c *call) bool { return !c.done.CompareAndSwap(false, true) })
	for _, c := range slices.Backward(calls) {
		c.scope.end(err)
		c.tellWithdrawn()
	}
	for _, c := range calls {
		c.finish(verdict{err: err})
	}
}

func (c *call) tellWithdrawn() {
	l := c.life.Load()
	if l == nil {
		return
	}
	if link, ok := l.link.(canceler); ok {
		if num, open := l.number(c); open {
			link.cancelRequest(num)
		}
	}
}

// failure is the verdict err in full.
func (c *call) failure(incarnation uint64, err error, unexecuted bool) *CallError {
	return &CallError{
		ProcID: c.slot.id, Incarnation: incarnation, ReqID: c.id, Method: c.Method,
		Unexecuted: unexecuted, Err: err,
	}
}
