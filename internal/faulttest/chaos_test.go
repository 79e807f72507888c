package faulttest_test

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/proc"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

// chaosPatience is how long one operation, or the end of a supervisor, may take. Only a hang takes that long.
const chaosPatience = 30 * time.Second * testkit.Slowdown

// The actors. Each has a plan of its own.
const (
	chaosCallers  = 5
	chaosVillains = 2
)

// chaosPlaces are the children, of both kinds in one supervisor. Which ids they have changes.
var chaosPlaces = []struct {
	name string
	kind supervisor.ChildType
	wide bool
	opts []supervisor.ChildOption
}{
	{name: "process", kind: supervisor.Process},
	{name: "process with concurrency", kind: supervisor.Process, wide: true, opts: []supervisor.ChildOption{supervisor.WithConcurrency(4)}},
	{name: "process with a short queue", kind: supervisor.Process, opts: []supervisor.ChildOption{
		supervisor.Limits{Queue: 3, QueueBytes: 1 << 20}, supervisor.Proc{Stdout: io.Discard},
	}},
	{name: "temporary process", kind: supervisor.Process, opts: []supervisor.ChildOption{supervisor.Restart{Type: supervisor.Temporary}}},
	{name: chaosMute, kind: supervisor.Goroutine},
	{name: chaosMute, kind: supervisor.Goroutine, wide: true, opts: []supervisor.ChildOption{supervisor.WithConcurrency(4), supervisor.WithCopy()}},
}

// chaos is the world of one run.
type chaos struct {
	t    *testing.T
	sup  *supervisor.Supervisor
	book *toilBook
	seen *chaosLives
	over chan struct{} // closed by stop: no further operation begins
	stop func()

	// Each operation holds it for reading. Between two rounds, when all verdicts are being claimed, nobody does anything.
	round sync.RWMutex

	mu     sync.Mutex // guards ids
	ids    []int      // of the places; -1: none
	wide   map[int]bool
	placed []sync.Mutex // held by who replaces the child of a place

	atWork sync.Map // what each actor does: its number -> chaosWork
	ops    atomic.Int64
}

// chaosWork is an operation under way.
type chaosWork struct {
	op    chaosOp
	since time.Time
}

// TestChaos lets callers use a supervisor in every way there is while others kill, freeze, restart and replace its children
// and end it again and again. Whatever happens, each request has one verdict, which is one that it may get and the right
// one, none is executed twice or out of order, no call takes longer than a generous bound, each life starts once and ends
// once, and nothing is left.
//
// The seed is printed. It replays the plan: what each actor does, in which order, with which waits, sizes, limits and ids of
// requests, is drawn by the actor's own generator from the seed and its number alone. What it cannot replay is time: how
// the system interleaves the actors, how far each gets, where in the work of a child a signal strikes, which id and process a place has just
// then, and so the verdicts.
func TestChaos(t *testing.T) {
	if !proc.Supported {
		t.Skip("there are no process children")
	}
	seed, d := chaosSettings(t)
	t.Logf("chaos: seed %d for %v; again: go test -run '^TestChaos$' ./internal/faulttest -chaos.seed=%d -chaos.for=%v", seed, d, seed, d)
	testkit.NoLeaks(t)
	c := &chaos{
		t: t, book: newToilBook(t), seen: newChaosLives(), over: make(chan struct{}),
		wide: make(map[int]bool), placed: make([]sync.Mutex, len(chaosPlaces)),
	}
	c.stop = sync.OnceFunc(func() { close(c.over) })
	t.Cleanup(c.stop) // also when the test has failed
	c.sup = newSupervisor(t, supervisor.Goroutine, supervisor.WithEvents(c.seen.record),
		supervisor.WithDefaults(supervisor.Stop{Grace: 2 * time.Second, TermGrace: time.Second}))
	for i := range chaosPlaces {
		c.ids = append(c.ids, -1)
		c.fill(i)
	}
	var actors sync.WaitGroup
	begin := func(number int, draw func(*chaosPlan) chaosOp, do func(number, n int, op chaosOp)) {
		plan := newChaosPlan(seed, number, draw)
		actors.Go(func() { c.act(number, plan, do) })
	}
	life := c.startLink()
	for i := range chaosCallers {
		begin(1+i, (*chaosPlan).caller, c.call)
	}
	for i := range chaosVillains {
		begin(101+i, (*chaosPlan).fault, c.harm)
	}
	c.rounds(newChaosPlan(seed, 0, (*chaosPlan).end), time.Now().Add(d), life)
	c.await("the actors", task.Go(func(context.Context) { actors.Wait() }).Done())
	c.seen.check(t)
	t.Logf("chaos: %d operations, %s", c.ops.Load(), c.seen)
}

// rounds ends the supervisor as planned and starts it again, until the time is over.
func (c *chaos) rounds(plan *chaosPlan, until time.Time, life context.CancelFunc) {
	for last := false; !last; {
		op := plan.next()
		wait := op.Wait
		if left := time.Until(until); left < wait {
			wait, last = max(0, left), true
		}
		c.watch(wait)
		c.await("the end of a round by "+op.Do, task.Go(func(context.Context) { c.end(op, life) }).Done())
		if last {
			c.stop()
		}
		c.await("the operations under way when a round ended by "+op.Do, task.Go(func(context.Context) { c.round.Lock() }).Done())
		c.settle(op, last)
		if !last {
			life = c.startLink()
		}
		c.round.Unlock()
		if c.t.Failed() {
			c.stop()
			return
		}
	}
}

// end ends the supervisor.
func (c *chaos) end(op chaosOp, life context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), chaosPatience)
	defer cancel()
	var err error
	may := fateValue
	switch op.Do {
	case chaosHurry:
		hurry, cancel := context.WithTimeout(ctx, op.Limit)
		defer cancel()
		may |= fateTimeout | fateStuck
		err = c.sup.Shutdown(hurry)
	case chaosEnd:
		may |= fateStuck // a goroutine on a busy machine
		err = c.sup.Close()
	case chaosLife:
		life()
		<-c.sup.Done()
		err = c.sup.Shutdown(ctx)
	default:
		err = c.sup.Shutdown(ctx)
	}
	if got := fateOf(err); got&may == 0 {
		c.book.complain("the end by %s: %v", op.Do, err)
	}
	life()
}

// settle claims what is left and closes the books of a round. Nobody else does anything.
func (c *chaos) settle(op chaosOp, last bool) {
	for {
		p, err := c.sup.Recv(context.Background(), supervisor.IgnoreErr())
		if err != nil {
			if fateOf(err) != fateClosed {
				c.book.complain("Recv after a round: %v", err)
			}
			break
		}
		c.book.verdict(p.ReqID, p)
	}
	if s := c.sup.Snapshot(); s.Running || s.Open+s.Unclaimed > 0 {
		c.book.complain("snapshot after a round: %+v", s)
	} else {
		for _, child := range s.Children {
			if child.Load.Queued+child.Load.InFlight > 0 {
				c.book.complain("snapshot of a child after a round: %+v", child)
			}
		}
	}
	if wrong := c.book.settle(c.t, func(child int) bool { return !c.isWide(child) }); wrong != "" {
		c.t.Errorf("after a round that ended by %s:\n%s", op.Do, wrong)
	}
	if last {
		return
	}
	for i := range chaosPlaces {
		if c.at(i) < 0 {
			c.fill(i)
		}
	}
}

func (c *chaos) startLink() context.CancelFunc {
	ctx, cancel := context.WithCancel(context.Background())
	require.NoError(c.t, c.sup.StartLink(ctx), "StartLink")
	return cancel
}

// act does what the plan says until it is over.
func (c *chaos) act(number int, plan *chaosPlan, do func(number, n int, op chaosOp)) {
	for n := 0; ; n++ {
		op := plan.next()
		c.round.RLock()
		select {
		case <-c.over:
			c.round.RUnlock()
			return
		default:
		}
		c.atWork.Store(number, chaosWork{op, time.Now()})
		do(number, n, op)
		c.atWork.Delete(number)
		c.ops.Add(1)
		c.round.RUnlock()
	}
}

// watch lets the actors act for a while, and fails the test if one hangs.
func (c *chaos) watch(d time.Duration) {
	over := time.NewTimer(d)
	defer over.Stop()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case <-over.C:
			return
		case <-look.C:
			c.atWork.Range(func(number, w any) bool {
				if took := time.Since(w.(chaosWork).since); took > chaosPatience {
					c.hangs(number, w.(chaosWork))
				}
				return true
			})
		}
	}
}

func (c *chaos) hangs(number any, w chaosWork) {
	c.t.Fatalf("actor %v waits since %v in %+v\nthe books: %s\n%s", number, time.Since(w.since), w.op, c.book.unanswered(), testkit.Stacks())
}

// await waits for what must end soon.
func (c *chaos) await(what string, done <-chan struct{}) {
	limit := time.NewTimer(chaosPatience)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
		c.t.Fatalf("not over after %v: %s\nthe books: %s\n%s", chaosPatience, what, c.book.unanswered(), testkit.Stacks())
	}
}
