package supervisor

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/wire"
)

// lastWords are what a worker says before its life ends, guarded by the link's
// mutex.
type lastWords struct {
	said    bool          // it has announced the end itself
	refused []*Request    // that it will not execute for that reason
	asked   chan struct{} // closed when stacks has come; nil if it was not asked
	stacks  string
	told    bool // EventHung is emitted, or will not be
}

// handleOther takes a frame that is no reply.
func (l *processLink) handleOther(h wire.Header, body []byte) error {
	switch h.Kind {
	case wire.KindBegun:
		l.mu.Lock()
		r := l.pending[h.Request]
		l.mu.Unlock()
		if r != nil && r.watched { // otherwise its reply has overtaken
			l.life.begun(r)
		}
		return nil
	case wire.KindPong:
		l.life.answered(h.Request, nil)
		return nil
	case wire.KindUnwell:
		node, err := wire.ParseError(body)
		if err != nil {
			return err
		}
		return l.withNode(node, func(why error) { l.life.answered(h.Request, why) })
	case wire.KindEnded:
		if h.Flags&wire.FlagError == 0 {
			l.ended(nil)
			return nil
		}
		node, err := wire.ParseError(body)
		if err != nil {
			return err
		}
		return l.withNode(node, l.ended)
	case wire.KindStacks:
		return l.takeStacks(string(body))
	default:
		return fmt.Errorf("%w: unexpected %v frame", ErrProtocol, h.Kind)
	}
}

// withNode hands an error over, on another goroutine if decoding it is user code.
func (l *processLink) withNode(n wire.ErrorNode, take func(error)) error {
	if !hasData(n) {
		take(fromNode(n))
		return nil
	}
	l.decodes.later.Add(1)
	task.Go(func(context.Context) {
		defer l.decodes.later.Done()
		var why error
		if err := contained(func() error { why = fromNode(n); return nil }); err != nil {
			why = fmt.Errorf("%w: %w", ErrDecode, err)
		}
		take(why)
	})
	return nil
}

// ended is the worker's word that the life ends by itself, and why.
func (l *processLink) ended(why error) {
	l.mu.Lock()
	first := !l.ending
	l.last.said = true
	if first && l.fault == nil {
		l.fault = why
	}
	l.mu.Unlock()
	if first {
		task.Go(func(context.Context) {
			stop := l.child.slot.cfg.stop
			within := stop.total()
			if why != nil { // it has ended the contexts itself
				within = stop.termGrace()
			}
			limit, cancel := context.WithTimeout(context.Background(), within)
			defer cancel()
			_ = l.Stop(limit) // the slot gets the same from Wait
		})
	}
}

// refusedByEnd keeps a request that the worker refuses because its life ends by
// itself, or for hanging: the verdict is how it ended.
func (l *processLink) refusedByEnd(r *Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.last.said && l.last.asked == nil {
		return false
	}
	l.last.refused = append(l.last.refused, r)
	return true
}

func (l *processLink) occupied() bool { return l.decodes.now.Load() }

func (l *processLink) ping(num uint64) {
	_ = l.writer.Control(wire.Header{Kind: wire.KindPing, Request: num}, nil) // if the pipe is broken the life is over
}

// takeStacks takes the answer to the question of askStacks.
func (l *processLink) takeStacks(text string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last.asked == nil || isClosed(l.last.asked) {
		return fmt.Errorf("%w: stacks that nobody asked for", ErrProtocol)
	}
	l.last.stacks = cleanLines(text[:min(len(text), maxStacks)])
	close(l.last.asked)
	return nil
}

// Why and how long a worker that hangs is asked what it is doing, by either way.
const (
	itHung     = "it hung"
	stacksWait = time.Second
)

// condemn ends a worker that hangs, and returns when it is gone.
func (l *processLink) condemn(why error) {
	l.mu.Lock()
	if l.fault == nil {
		l.fault = why
	}
	l.ending = true // no further requests
	l.last.asked = make(chan struct{})
	l.mu.Unlock()
	grace := l.child.slot.cfg.stop.termGrace()
	if l.askStacks() {
		l.tellHung()
		_ = l.writer.InOrder(wire.Header{Kind: wire.KindStop}) // so that the worker takes SIGTERM for the end
		l.terminateAgain(grace)
	} else {
		l.quit(grace)
	}
	l.kill(itHung)
	l.awaitDone(killWait)
}

// askStacks gets the stacks of a worker that hangs from itself, if it has ears.
func (l *processLink) askStacks() bool {
	_ = l.writer.Control(wire.Header{Kind: wire.KindAskStacks}, nil) // if the pipe is broken the life is over
	limit := time.NewTimer(stacksWait)
	defer limit.Stop()
	select {
	case <-l.last.asked:
		return true
	case <-l.exit:
	case <-limit.C:
	}
	return false
}

// quit ends a worker that does not answer by SIGQUIT, which its runtime does
// with the stacks on its way.
func (l *processLink) quit(grace time.Duration) {
	l.mu.Lock()
	if l.killedBy == "" && !l.exited {
		l.killedBy = itHung
	}
	l.mu.Unlock()
	_ = l.process.Signal(false, syscall.SIGQUIT) // fails only if it has ended
	wait := min(grace, stacksWait)
	if awaitFor(l.exit, wait) {
		return // conclude tells, with the trace
	}
	l.tellHung()
	awaitFor(l.exit, grace-wait)
}

// tellHung emits the event of a worker that is ended because it hangs, once, if
// that is so.
func (l *processLink) tellHung() {
	l.mu.Lock()
	hung := l.last.asked != nil && !l.last.told
	l.last.told = true
	why := l.fault
	l.mu.Unlock()
	if !hung {
		return
	}
	exit := l.exitError()
	in := l.life.self
	l.child.slot.emit(Event{Kind: EventHung, Incarnation: in.Incarnation, Pid: exit.Pid, Err: why, Text: exit.Trace})
}
