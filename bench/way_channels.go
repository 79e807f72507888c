package bench

import "sync"

// channels is the plain way within one process: a goroutine that takes
// requests from a channel and answers each on the caller's own.
type channels struct {
	requests []chan addition
	workers  sync.WaitGroup
}

type addition struct {
	d     int
	reply chan<- int
}

func openChannels(workers int) (Pool, error) {
	p := &channels{requests: make([]chan addition, workers)}
	for i := range p.requests {
		requests := make(chan addition)
		p.requests[i] = requests
		p.workers.Go(func() {
			var counter Counter
			for r := range requests {
				r.reply <- counter.Add(r.d)
			}
		})
	}
	return p, nil
}

func (p *channels) Caller(worker int) func(d int) (int, error) {
	reply := make(chan int)
	return func(d int) (int, error) {
		p.requests[worker] <- addition{d, reply}
		return <-reply, nil
	}
}

func (p *channels) Close() error {
	for _, requests := range p.requests {
		close(requests)
	}
	p.workers.Wait()
	return nil
}
