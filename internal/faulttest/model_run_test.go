package faulttest_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/future"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

// modelPatience is how long a call may take that nothing bounds. Only a hang takes that long.
const modelPatience = 20 * time.Second * testkit.Slowdown

// modelRun is a supervisor, its model, and what has come of the operations.
type modelRun struct {
	*modelState
	t    *testing.T
	rt   *rapid.T
	kind childtest.Kind
	sup  *supervisor.Supervisor
	book *toilBook

	batch modelBatch
	going []modelGoing // of Go, in the background

	mu sync.Mutex // guards what follows, of the batch
	modelOutcome
}

// modelBatch is what is known of a batch before it runs.
type modelBatch struct {
	steps  [][]*modelStep
	first  int                    // of its own requests, in the list of all
	held   map[*modelRequest]bool // when it began
	takers int
	down   bool // it ends the supervisor
	forced bool // and kills
}

// modelOutcome is what a batch brings.
type modelOutcome struct {
	taken  []supervisor.RecvPayload // verdicts that came through the inbox
	gone   []modelGoing
	killed map[*modelChild]int // process ids
	joined []*modelChild
}

// modelGoing is a request in the background.
type modelGoing struct {
	req *modelRequest
	f   *future.Future[string]
}

// open makes a supervisor with the children of the rules.
func openModel(t *testing.T, rt *rapid.T, k childtest.Kind, rules modelRules) *modelRun {
	r := &modelRun{
		modelState: &modelState{rules: rules, process: k.Can.Process}, t: t, rt: rt, kind: k, book: newToilBook(t),
	}
	var err error
	r.sup, err = supervisor.New(k.Type, supervisor.WithInboxLimit(rules.Inbox))
	if err != nil {
		rt.Fatalf("New: %v", err)
	}
	for i, temporary := range rules.Temporary {
		c := &modelChild{temporary: temporary, wide: rules.Wide[i], process: r.process}
		if c.id, err = r.register(c); err != nil {
			rt.Fatalf("Register: %v", err)
		}
		r.children = append(r.children, c)
	}
	r.startLink()
	return r
}

func (r *modelRun) register(c *modelChild) (int, error) {
	var opts []supervisor.ChildOption
	if c.temporary {
		opts = append(opts, supervisor.Restart{Type: supervisor.Temporary})
	}
	if c.wide {
		opts = append(opts, supervisor.WithConcurrency(3))
	}
	opts = append(opts, supervisor.Limits{Queue: r.rules.Queue})
	return r.sup.Register(context.Background(), newToiler.With(r.book.ledger.Path), opts...)
}

func (r *modelRun) startLink() {
	if err := r.sup.StartLink(context.Background()); err != nil {
		r.rt.Fatalf("StartLink: %v", err)
	}
	for _, c := range r.children {
		c.ended = false
	}
}

// fresh gives a request its id.
func (r *modelRun) fresh(q *modelRequest) *modelRequest {
	q.id = "r" + strconv.Itoa(len(r.requests))
	r.requests = append(r.requests, q)
	return q
}

// run runs a batch: each caller's operations one after the other, those of different callers at once.
func (r *modelRun) run(batch [][]modelOp) {
	r.batch = modelBatch{first: len(r.requests), held: make(map[*modelRequest]bool)}
	for _, q := range r.held() {
		r.batch.held[q] = true
	}
	r.batch.takers = modelHas(batch, opRecv, opRecvAll, opOnReply)
	r.batch.down = modelHas(batch, opShutdown, opClose) > 0
	r.batch.forced = slices.ContainsFunc(slices.Concat(batch...), func(op modelOp) bool {
		return op.Do == opClose || op.Do == opShutdown && op.Limit != 0
	})
	r.batch.steps = r.steps(batch, r.fresh)
	r.foresee(r.batch.steps)
	r.modelOutcome = modelOutcome{killed: make(map[*modelChild]int)}
	for i, q := range r.requests {
		if i < r.batch.first {
			r.book.allow(q.id, q.may)
		}
	}
	over := task.Go(func(context.Context) {
		var callers sync.WaitGroup
		for _, steps := range r.batch.steps {
			callers.Go(func() {
				for _, s := range steps {
					r.do(s)
				}
			})
		}
		callers.Wait()
	})
	r.await(over.Done(), "the batch")
	r.collect()
}

// await waits for what must come soon.
func (r *modelRun) await(done <-chan struct{}, what string) {
	limit := time.NewTimer(modelPatience)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
		r.rt.Fatalf("%s is not over after %v\n%s", what, modelPatience, testkit.Stacks())
	}
}

// collect takes stock after a batch, and brings everything into a state that the model knows.
func (r *modelRun) collect() {
	for _, p := range r.taken {
		r.take(p)
	}
	for _, g := range r.going { // of earlier batches
		r.finishGo(g)
	}
	r.going = r.gone
	r.children = append(r.children, r.joined...)
	if r.batch.down {
		r.drain()
		r.startLink()
	}
	r.settleChildren()
	r.compare()
}

// take records a verdict that came through the inbox.
func (r *modelRun) take(p supervisor.RecvPayload) {
	i := slices.IndexFunc(r.requests, func(q *modelRequest) bool { return q.id == p.ReqID })
	if i < 0 {
		r.book.complain("%s: a verdict of a request that there never was: %+v", p.ReqID, p)
		return
	}
	q := r.requests[i]
	late := fateOf(p.Err)&(fateTimeout|fateCanceled|fateClosed|fateNoRequest) != 0 && p.Incarnation == 0
	switch {
	case q.held:
		q.held = false
		r.book.verdict(q.id, p)
	case q.ghosts > 0 && late: // somebody awaited it in vain
		q.ghosts--
	default:
		r.book.complain("%s: one more verdict, or one of a request that was not accepted: %+v", q.id, p)
	}
}

func (r *modelRun) finishGo(g modelGoing) {
	r.await(g.f.Done(), "request "+g.req.id+" in the background")
	v, err := g.f.Result(context.Background())
	p := supervisor.RecvPayload{ProcID: g.req.child.id, Data: v, Err: err}
	if _, life, ok := strings.Cut(v, "@"); ok {
		p.Incarnation, _ = strconv.ParseUint(life, 10, 64) // an odd one shows as a wrong value
	}
	r.book.verdict(g.req.id, p)
}

// drain takes what is left in the inbox of a supervisor that has ended.
func (r *modelRun) drain() {
	for _, g := range r.going {
		r.finishGo(g)
	}
	r.going = nil
	for {
		p, err := r.sup.Recv(context.Background(), supervisor.IgnoreErr())
		if err != nil {
			if fateOf(err) != fateClosed {
				r.rt.Fatalf("Recv of a supervisor that has ended: %v", err)
			}
			break
		}
		r.take(p)
	}
	for _, q := range r.held() {
		r.book.complain("%s: no verdict, and the supervisor has ended", q.id)
		q.held = false
	}
	if s := r.sup.Snapshot(); s.Running || s.Open+s.Unclaimed > 0 {
		r.book.complain("snapshot of a supervisor that has ended: %+v", s)
	} else {
		for _, c := range s.Children {
			if c.Load.Queued+c.Load.InFlight > 0 || c.State != supervisor.StateIdle {
				r.book.complain("snapshot of a child that has ended: %+v", c)
			}
		}
	}
}

// settleChildren waits until each child is up or has ended for good, as its policy says.
func (r *modelRun) settleChildren() {
	deadline := time.Now().Add(modelPatience)
	for _, c := range r.children {
		c.gone = c.gone || r.batch.has(c, opUnregister)
		for !c.gone {
			at, there := r.look(c)
			pid, killed := r.killed[c]
			switch {
			case !there:
				r.book.complain("child %d is not in the snapshot", c.id)
				c.gone = true
			case at.State == supervisor.StateUp && (!killed || at.Pid != pid):
				c.ended = false
			case at.State == supervisor.StateEnded:
				if !c.temporary || !c.ended && !killed {
					r.book.complain("child %d has ended for good: %+v", c.id, at)
				}
				c.ended = true
			case time.Now().After(deadline):
				r.rt.Fatalf("child %d does not settle: %+v", c.id, at)
			default:
				<-time.After(time.Millisecond)
				continue
			}
			if killed && c.temporary && !r.returns[c] && !r.batch.down && !c.ended {
				r.book.complain("child %d is temporary, was killed, and is there again", c.id)
			}
			break
		}
	}
}

func (r *modelRun) look(c *modelChild) (supervisor.ChildSnapshot, bool) {
	for _, at := range r.sup.Snapshot().Children {
		if at.ProcID == c.id {
			return at, true
		}
	}
	return supervisor.ChildSnapshot{}, false
}

// compare holds what can be seen from outside against the model, and ends the run if anything was wrong.
func (r *modelRun) compare() {
	if s := r.sup.Snapshot(); s.Open+s.Unclaimed != len(r.held()) {
		var ids []string
		for _, q := range r.held() {
			ids = append(ids, q.id)
		}
		r.book.complain("%d open and %d unclaimed in the snapshot, but those without a verdict are %q", s.Open, s.Unclaimed, ids)
	}
	r.book.mu.Lock()
	defer r.book.mu.Unlock()
	if len(r.book.wrong) > 0 {
		r.rt.Fatalf("%s", r.book.explainLocked(r.book.wrong))
	}
}

// finish ends the supervisor and closes the books.
func (r *modelRun) finish() {
	r.batch, r.modelOutcome = modelBatch{down: true}, modelOutcome{}
	for _, q := range r.requests {
		r.book.allow(q.id, fateClosed)
	}
	ctx, cancel := context.WithTimeout(context.Background(), modelPatience)
	defer cancel()
	if err := r.sup.Shutdown(ctx); err != nil {
		r.rt.Fatalf("Shutdown: %v", err)
	}
	r.drain()
	ordered := func(child int) bool {
		return slices.ContainsFunc(r.children, func(c *modelChild) bool { return c.id == child && !c.wide })
	}
	if wrong := r.book.settle(r.t, ordered); wrong != "" {
		r.rt.Fatalf("%s", wrong)
	}
}

// describe is an operation for the reader.
func (s *modelStep) describe() string {
	var ids []string
	for _, q := range s.ids {
		ids = append(ids, q.id)
	}
	return fmt.Sprintf("%s %q (%+v)", s.Do, ids, s.modelOp)
}
