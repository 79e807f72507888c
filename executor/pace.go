package executor

import "time"

const (
	// chunkTime is how long a chunk of short tasks should take: long against the way to a worker and back, short
	// against what anybody notices.
	chunkTime = time.Millisecond
	// cutAfter is when a chunk counts as one of tasks that are not short after all.
	cutAfter = 10 * time.Millisecond
)

// pace is how many tasks of a function travel together.
type pace struct{ size int }

func (x *Executor) paceLocked(f *function) *pace {
	p := x.state.paces[f]
	if p == nil {
		p = &pace{size: 1}
		x.state.paces[f] = p
	}
	return p
}

// tell says how long a chunk of n tasks took from the host and back.
func (p *pace) tell(n int, took time.Duration) {
	fit := maxChunk
	if took > 0 {
		fit = int(min(int64(maxChunk), int64(n)*int64(chunkTime)/int64(took)))
	}
	switch {
	case fit < p.size && n < p.size:
		// Shorter than it might have been, most of its time was the way. It says little unless it was slow all the same.
		if took > chunkTime {
			p.size = max(1, fit)
		}
	case fit < p.size:
		p.size = max(1, fit, p.size/4)
	case n == p.size:
		p.size = min(fit, 2*p.size)
	}
}

// stumble is called when a task of a chunk failed, so that the rest of it has to travel again.
func (p *pace) stumble() { p.size = max(1, p.size/8) }
