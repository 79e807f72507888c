package supervisor

import "github.com/workerlink/supervisor/internal/wire"

// ping answers a ping: at once, or when the object has said that it is well.
// How long the host waits for that is the host's affair.
func (w *worker) ping(num uint64) {
	answer := func(err error) {
		if err != nil {
			_ = w.writer.SendBytes(wire.Header{Kind: wire.KindUnwell, Request: num}, wire.AppendError(nil, toNode(err))) // if the pipe is broken receive sees it
			return
		}
		_ = w.writer.Control(wire.Header{Kind: wire.KindPong, Request: num}, nil) // as above
	}
	if a := w.acting(); a != nil {
		a.ask(answer)
	} else { // it may be asked before there is an object
		answer(nil)
	}
}

// acting is the object at work; nil before it is made.
func (w *worker) acting() *actor {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.actor
}

// begun tells the host that the handler of a watched request begins.
func (w *worker) begun(r *Request) {
	_ = w.writer.Control(wire.Header{Kind: wire.KindBegun, Request: r.Num}, nil) // as above
}

// maxStacks bounds the stacks that are sent, and kept, of a life that hangs.
const maxStacks = 256 << 10

// sendStacks says what the goroutines of this process are doing, those of the
// handlers first.
func (w *worker) sendStacks() {
	var handlers []string
	if a := w.acting(); a != nil {
		handlers = a.goroutines()
	}
	stacks := stacksBehind(handlers...)
	_ = w.writer.SendBytes(wire.Header{Kind: wire.KindStacks}, []byte(stacks[:min(len(stacks), maxStacks)])) // as above
}
