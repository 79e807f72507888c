package executor

import (
	"context"
	"iter"
	"runtime"
	"slices"
	"sync"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/task"
)

// mapping is one run of a Map. It owns its tasks. The input is read by one goroutine, the results are yielded on that of
// the loop.
type mapping[In, Out any] struct {
	cfg      mapConfig
	ctx      context.Context // ends with the loop, or before it
	executor *Executor
	function *function
	news     chan struct{} // has one place: there may be something to yield
	room     chan struct{} // has one place: there may be room to read on

	mu sync.Mutex
	intake
	outlet[In, Out]
}

// intake is how far the input was read; guarded by the mapping's mutex.
type intake struct {
	read   int  // values
	over   bool // there are no more
	exited bool // the input called runtime.Goexit
	panic  any  // of the input
}

// outlet are the results that were not yielded; guarded by the mapping's mutex.
type outlet[In, Out any] struct {
	taken int // items that are yielded, or about to be

	// ring holds the items taken, taken+1, … that are there already, if the order matters; its size is a power of two.
	ring  []slot[In, Out]
	ready []Item[In, Out] // otherwise
}

// slot is the place of an item in the ring.
type slot[In, Out any] struct {
	item Item[In, Out]
	full bool
}

func newMapping[In, Out any](ctx context.Context, x *Executor, f *Func[In, Out], cfg mapConfig) *mapping[In, Out] {
	return &mapping[In, Out]{
		cfg: cfg, ctx: ctx, executor: x, function: f.function,
		news: make(chan struct{}, 1), room: make(chan struct{}, 1),
	}
}

// run is the loop.
func (m *mapping[In, Out]) run(input iter.Seq2[In, error], yield func(Item[In, Out]) bool) {
	var cancel context.CancelCauseFunc
	m.ctx, cancel = context.WithCancelCause(m.ctx)
	unwatch := context.AfterFunc(m.ctx, func() { m.executor.cancelAll(m, cause(m.ctx)) })
	left := true
	defer func() {
		unwatch()
		if left { // also by a panic of the loop's body
			cancel(supervisor.ErrCanceled)
			m.executor.cancelAll(m, supervisor.ErrCanceled)
		}
		cancel(nil)
	}()
	task.Go(func(context.Context) { m.feed(input) })
	var batch []Item[In, Out]
	for {
		var end *intake
		if batch, end = m.take(batch); end != nil {
			left = false
			end.leave()
			return
		}
		for i := range batch {
			if !yield(batch[i]) {
				return
			}
		}
		clear(batch)
	}
}

// leave ends a loop as its input ended.
func (e *intake) leave() {
	switch {
	case e.panic != nil:
		panic(e.panic)
	case e.exited:
		runtime.Goexit()
	}
}

// take waits for items, and returns them in batch, or how the input ended if there will be no more.
func (m *mapping[In, Out]) take(batch []Item[In, Out]) ([]Item[In, Out], *intake) {
	for {
		m.mu.Lock()
		if m.cfg.ordered {
			batch = m.inOrder(batch[:0])
		} else {
			batch, m.ready = m.ready, batch[:0]
		}
		m.taken += len(batch)
		if len(batch) == 0 && m.over && m.taken == m.read {
			end := m.intake
			m.mu.Unlock()
			return nil, &end
		}
		m.mu.Unlock()
		if len(batch) > 0 {
			signal(m.room)
			return batch, nil
		}
		<-m.news
	}
}

// inOrder takes from the ring what is next.
func (o *outlet[In, Out]) inOrder(batch []Item[In, Out]) []Item[In, Out] {
	for i := o.taken; len(o.ring) > 0; i++ {
		s := &o.ring[i&(len(o.ring)-1)]
		if !s.full {
			break
		}
		batch = append(batch, s.item)
		*s = slot[In, Out]{}
	}
	return batch
}

// putLocked keeps an item until it is yielded.
func (m *mapping[In, Out]) putLocked(item Item[In, Out]) {
	if !m.cfg.ordered {
		m.ready = append(m.ready, item)
		return
	}
	for len(m.ring) < m.read-m.taken || len(m.ring) == 0 {
		m.grow()
	}
	m.ring[item.Index&(len(m.ring)-1)] = slot[In, Out]{item, true}
}

// grow doubles the ring.
func (o *outlet[In, Out]) grow() {
	old := o.ring
	o.ring = make([]slot[In, Out], max(16, 2*len(old)))
	for _, s := range old {
		if s.full {
			o.ring[s.item.Index&(len(o.ring)-1)] = s
		}
	}
}

// settle takes the verdicts of tasks.
func (m *mapping[In, Out]) settle(verdicts []verdict) {
	m.mu.Lock()
	for _, v := range verdicts {
		item := Item[In, Out]{Index: v.job.index, Err: v.err, Attempts: v.job.attempts}
		item.In, _ = v.job.in.(In) // nil is the zero value of an interface type
		item.Out, _ = v.value.(Out)
		m.putLocked(item)
	}
	m.mu.Unlock()
	signal(m.news)
}

// feed reads the input and submits its values.
func (m *mapping[In, Out]) feed(input iter.Seq2[In, error]) {
	finished := false
	defer func() {
		m.mu.Lock()
		m.over = true
		if !finished {
			m.panic = recover()
			m.exited = m.panic == nil
		}
		m.mu.Unlock()
		signal(m.news)
	}()
	var batch []*job
	flush := func() bool {
		full := batch
		batch = nil
		return len(full) == 0 || m.submit(full)
	}
	for in, err := range input {
		at, ok := m.next(flush)
		if !ok {
			break
		}
		if err != nil {
			m.mu.Lock()
			m.putLocked(Item[In, Out]{Index: at, In: in, Err: err})
			m.mu.Unlock()
			signal(m.news)
			continue
		}
		t := &job{function: m.function, in: in, owner: m, index: at, want: m.cfg.chunk}
		t.deadline, _ = m.ctx.Deadline()
		if batch = append(batch, t); len(batch) < m.cfg.chunk {
			continue
		}
		if !flush() {
			break
		}
	}
	flush()
	finished = true
}

// next returns the number of the value that was just read, once there is room for it; false if it is not wanted. Before
// it waits it sends, by flush, what was read: that may be what the loop waits for.
func (m *mapping[In, Out]) next(flush func() bool) (at int, ok bool) {
	for {
		if m.ctx.Err() != nil {
			return 0, false
		}
		m.mu.Lock()
		if ahead := m.read - m.taken; ahead < m.cfg.chunk || ahead < m.window() {
			at = m.read
			m.read++
			m.mu.Unlock()
			return at, true
		}
		m.mu.Unlock()
		if !flush() {
			return 0, false
		}
		select {
		case <-m.room:
		case <-m.ctx.Done():
		}
	}
}

// window is how many values may be ahead of the loop.
func (m *mapping[In, Out]) window() int {
	if m.cfg.prefetch > 0 {
		return m.cfg.prefetch
	}
	return m.executor.window(m.function, m.cfg.chunk)
}

// submit sends what was read; false if no more should be.
func (m *mapping[In, Out]) submit(batch []*job) bool {
	err := m.executor.enter(m.ctx, true, batch...)
	if err == nil {
		if m.ctx.Err() != nil { // it may have ended between the two
			m.executor.cancelAll(m, cause(m.ctx))
		}
		return true
	}
	verdicts := make([]verdict, len(batch))
	for i, t := range batch {
		verdicts[i] = t.failure(-1, true, err)
	}
	m.settle(verdicts)
	return false
}

// signal wakes whoever waits on c, or will next.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Of the values of a Map that are ahead of its loop: for each worker, at least so many, or so many chunks.
const (
	aheadOfWorker = 4
	aheadChunks   = 2
)

// window is how many tasks of a function should be on their way, so that no worker waits for the next.
func (x *Executor) window(f *function, chunk int) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	if chunk == 0 {
		chunk = x.paceLocked(f).size
	}
	return x.state.crew.max * max(aheadOfWorker, aheadChunks*chunk)
}

// cancelAll is cancel for all tasks of an owner.
func (x *Executor) cancelAll(o owner, why error) {
	x.mu.Lock()
	s := &x.state
	var verdicts []verdict
	for t := s.queue.head; t != nil; {
		here := t
		if t = t.next; here.owner == o {
			s.queue.remove(here)
			verdicts = append(verdicts, x.settleLocked(here, here.failure(-1, here.attempts == 0, why)))
		}
	}
	for t, timer := range s.delayed {
		if t.owner == o {
			timer.Stop()
			delete(s.delayed, t)
			verdicts = append(verdicts, x.settleLocked(t, t.failure(-1, false, why)))
		}
	}
	for l := range s.crew.lanes {
		if c := l.chunk; c != nil {
			for _, t := range slices.Backward(c.tasks) { // so that what has not begun is not put back for the one that runs
				if t.owner == o && t.wire.chunk == c {
					verdicts = append(verdicts, x.cancelSentLocked(t, why)...)
				}
			}
		}
	}
	admitted := x.admitLocked()
	x.mu.Unlock()
	admitted.decide(nil)
	x.deliver(verdicts)
}
