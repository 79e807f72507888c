package vecenv

import (
	"context"
	"sync"
)

// generation is what runs from a Launch to the end that it leads to.
type generation[P, O, A any] struct {
	v     *Vector[P, O, A]
	lanes []*lane[P, O, A]

	ctx  context.Context // of all that runs; its cause is why it ended
	end  context.CancelCauseFunc
	kill context.CancelFunc // makes the end short
	gone chan struct{}      // closed by keep, when nothing runs any more
	news chan struct{}      // holds a token while results may be there
	up   chan struct{}      // closed by Launch, when the start is over

	// Guarded by the vector's mutex.
	open    bool // takes requests
	results []Result[O]
	spaces  Spaces
	failure error // of the end; valid once gone is closed
}

// begin starts the lanes, which wait for work, and whoever waits for the end.
func (v *Vector[P, O, A]) begin(params []P) *generation[P, O, A] {
	g := &generation[P, O, A]{
		v: v, gone: make(chan struct{}), news: make(chan struct{}, 1), up: make(chan struct{}),
	}
	g.ctx, g.end = context.WithCancelCause(context.Background())
	limit, kill := context.WithCancel(context.Background())
	g.kill = kill
	for id := range v.n {
		l := &lane[P, O, A]{g: g, id: id, work: make(chan *request[O, A], 1)}
		if len(params) > 0 {
			l.param = params[id]
		}
		if seed, ok := v.seeds[id]; ok {
			l.seed = &seed
		}
		g.lanes = append(g.lanes, l)
	}
	var lanes sync.WaitGroup
	for _, l := range g.lanes {
		lanes.Go(l.run)
	}
	go g.keep(limit, &lanes)
	return g
}

// keep waits for the end and sees to it that nothing is left.
func (g *generation[P, O, A]) keep(limit context.Context, lanes *sync.WaitGroup) {
	<-g.ctx.Done()
	g.v.mu.Lock()
	g.open = false // from now on nobody hands work to a lane
	g.v.mu.Unlock()
	lanes.Wait()
	<-g.up
	err := g.v.sup.Shutdown(limit)
	g.kill()
	g.v.mu.Lock()
	g.failure = err
	g.v.mu.Unlock()
	close(g.gone)
}

// why is why the generation has ended.
func (g *generation[P, O, A]) why() error { return context.Cause(g.ctx) }

// deliverLocked puts a result where Recv finds it.
func (g *generation[P, O, A]) deliverLocked(r Result[O]) {
	g.results = append(g.results, r)
	g.tell()
}

func (g *generation[P, O, A]) tell() {
	select {
	case g.news <- struct{}{}:
	default: // there is a token
	}
}
