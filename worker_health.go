package supervisor

import (
	"context"
	"runtime"

	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/wire"
)

// ping answers a ping: at once, or when the object has said that it is well.
// Its ctx ends with the life only: how long the host waits is the host's affair.
func (w *worker) ping(num uint64) {
	w.mu.Lock()
	a := w.actor
	w.mu.Unlock()
	var h healthy
	if a != nil { // it may be asked before there is an object
		h, _ = a.object.(healthy)
	}
	if h == nil {
		_ = w.writer.Control(wire.Header{Kind: wire.KindPong, Request: num}, nil) // if the pipe is broken receive sees it
		return
	}
	task.Go(func(context.Context) {
		ctx := context.WithValue(context.Background(), selfKey{}, w.self)
		if err := contained(func() error { return h.Health(ctx) }); err != nil {
			_ = w.writer.SendBytes(wire.Header{Kind: wire.KindUnwell, Request: num}, wire.AppendError(nil, toNode(err))) // as above
			return
		}
		_ = w.writer.Control(wire.Header{Kind: wire.KindPong, Request: num}, nil) // as above
	})
}

// begun tells the host that the handler of a watched request begins.
func (w *worker) begun(r *Request) {
	_ = w.writer.Control(wire.Header{Kind: wire.KindBegun, Request: r.Num}, nil) // as above
}

// maxStacks bounds the stacks that are sent, and kept, of a life that hangs.
const maxStacks = 256 << 10

// sendStacks says what the goroutines of this process are doing.
func (w *worker) sendStacks() {
	buf := make([]byte, maxStacks)
	buf = buf[:runtime.Stack(buf, true)]
	_ = w.writer.SendBytes(wire.Header{Kind: wire.KindStacks}, buf) // as above
}
