// Package pipe sends frames over one pipe for many goroutines, none of which
// waits for the reader at the other end.
//
// A sender appends its frame to what is waiting and, if nobody is writing yet,
// becomes the writer: it yields once, so that others can append too, and then
// writes everything with one system call. It never blocks in that call: when
// the pipe is full, a goroutine that lives only as long as the congestion takes
// over. Payloads over the protocol's chunk size are written in pieces, and
// control frames overtake between two of them.
package pipe

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync"
	"syscall"

	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/wire"
)

// ErrClosed is the error of a Send after Close.
var ErrClosed = errors.New("supervisor: pipe is closed")

// A Writer is the sending end of one direction of a connection. Its methods
// may be called concurrently. What waits to be written is bounded by the
// callers, who account for the sizes of what they send.
type Writer struct {
	file *os.File
	raw  syscall.RawConn

	mu      sync.Mutex
	enc     *wire.Encoder // the direction's value stream; used under mu
	control []byte        // control frames that wait; they go first
	queue   []item        // data frames that wait, in order
	busy    bool          // somebody writes
	spare   []byte        // an emptied buffer to use again
	err     error         // why nothing can be sent any more
	idle    chan struct{} // closed when nobody writes; nil if nobody asks
	drain   *task.Task    // the goroutine that writes to a full pipe, if there is one
}

// item is a stretch of the queue: frames back to back, or one large payload.
type item struct {
	small   []byte // frames back to back
	marks   []mark // where each request's frame ends in small
	written int    // bytes of small that went out

	header wire.Header // of a large payload
	body   []byte      // of a large payload; nil for small frames
}

type mark struct {
	request uint64
	end     int
}

// NewWriter returns a Writer over a non-blocking pipe, which it owns from now on.
// Payloads of values over limit bytes are refused; 0 is the protocol's default.
func NewWriter(file *os.File, limit int) (*Writer, error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &Writer{file: file, raw: raw, enc: wire.NewEncoder(limit)}, nil
}

// Send queues one data frame and starts writing unless somebody else does. The
// values in body that need the direction's shared stream are encoded here, so
// that they are in the order of the frames. An error of encoding concerns this
// body alone, and nothing of it is sent. With inline false another goroutine
// does the writing: for a caller that has more to do at once.
func (w *Writer) Send(h wire.Header, body *wire.Body, inline bool) error {
	w.mu.Lock()
	if w.err != nil {
		defer w.mu.Unlock()
		return w.err
	}
	if !body.Complete() {
		if err := w.enc.Finish(body); err != nil {
			w.mu.Unlock()
			return err
		}
		h.Stream = w.enc.Stream()
	}
	w.appendLocked(h, body.Bytes(), true)
	w.startLocked(inline)
	return nil
}

// SendBytes queues one data frame whose payload holds no values of the stream.
func (w *Writer) SendBytes(h wire.Header, payload []byte) error {
	w.mu.Lock()
	if w.err != nil {
		defer w.mu.Unlock()
		return w.err
	}
	w.appendLocked(h, payload, h.Request != 0)
	w.startLocked(true)
	return nil
}

// Flush waits until nothing waits to be written, or nothing can be any more.
func (w *Writer) Flush() {
	w.mu.Lock()
	if !w.busy || w.err != nil {
		w.mu.Unlock()
		return
	}
	if w.idle == nil {
		w.idle = make(chan struct{})
	}
	idle := w.idle
	w.mu.Unlock()
	<-idle
}

// restLocked is called when nobody writes any more.
func (w *Writer) restLocked() {
	w.busy = false
	if w.idle != nil {
		close(w.idle)
		w.idle = nil
	}
}

// Control queues one small frame that overtakes the data frames.
func (w *Writer) Control(h wire.Header, payload []byte) error {
	w.mu.Lock()
	if w.err != nil {
		defer w.mu.Unlock()
		return w.err
	}
	h.Length = uint32(len(payload))
	w.control = append(h.Append(w.control), payload...)
	w.startLocked(true)
	return nil
}

// InOrder queues a control frame that must not overtake the data frames which
// wait, because it may be about one of them. When none waits it is sent at
// once, even between the pieces of a large payload.
func (w *Writer) InOrder(h wire.Header) error {
	w.mu.Lock()
	if len(w.queue) == 0 {
		w.mu.Unlock()
		return w.Control(h, nil)
	}
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	w.appendLocked(h, nil, false)
	return nil // whoever writes the frames before it writes this too
}

func (w *Writer) appendLocked(h wire.Header, body []byte, request bool) {
	if len(body) > wire.ChunkSize {
		w.queue = append(w.queue, item{header: h, body: body})
		return
	}
	if n := len(w.queue); n == 0 || w.queue[n-1].body != nil {
		w.queue = append(w.queue, item{small: w.spare[:0]})
		w.spare = nil
	}
	last := &w.queue[len(w.queue)-1]
	h.Length = uint32(len(body))
	last.small = append(h.Append(last.small), body...)
	if request {
		last.marks = append(last.marks, mark{request: h.Request, end: len(last.small)})
	}
}

// startLocked makes the caller the writer if there is none. It unlocks.
func (w *Writer) startLocked(inline bool) {
	start := !w.busy
	w.busy = true
	if start && !inline {
		w.drain = task.Go(func(context.Context) { w.yieldAndRun() })
	}
	w.mu.Unlock()
	if start && inline {
		w.yieldAndRun()
	}
}

func (w *Writer) yieldAndRun() {
	runtime.Gosched() // let others append first
	w.run(false)
}

// run writes until nothing waits. One goroutine at a time is in it, the
// writer; with wait false it hands over to another one rather than wait for
// room in the pipe.
func (w *Writer) run(wait bool) {
	for {
		next, ok := w.next()
		if !ok {
			return
		}
		if !wait && next.body == nil {
			n, full, err := w.tryWrite(next.small)
			next.written = n
			if err != nil {
				w.failed(err, next, n > 0)
				return
			}
			if !full {
				w.recycle(next.small)
				continue
			}
		}
		if !wait {
			w.mu.Lock()
			w.drain = task.Go(func(context.Context) {
				if w.writeItem(next) {
					w.run(true)
				}
			})
			w.mu.Unlock()
			return
		}
		if !w.writeItem(next) {
			return
		}
	}
}

// next takes what is to be written next: control frames first. If there is
// nothing the caller is no longer the writer.
func (w *Writer) next() (item, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.err != nil || (len(w.control) == 0 && len(w.queue) == 0):
		w.restLocked()
		return item{}, false
	case len(w.control) > 0:
		it := item{small: w.control}
		w.control = nil
		return it, true
	default:
		it := w.queue[0]
		w.queue[0] = item{}
		w.queue = w.queue[1:]
		return it, true
	}
}

// writeItem writes the rest of it, waiting for room, and reports success.
func (w *Writer) writeItem(it item) bool {
	if it.body == nil {
		n, err := w.file.Write(it.small[it.written:])
		it.written += n
		if err != nil {
			w.failed(err, it, it.written > 0)
			return false
		}
		return true
	}
	begun := false
	for head, piece := range wire.Pieces(it.header, it.body) {
		w.mu.Lock()
		control := w.control
		w.control = nil
		w.mu.Unlock()
		if _, err := w.file.Write(control); err != nil {
			w.failed(err, it, begun)
			return false
		}
		for _, b := range [...][]byte{head[:], piece} {
			n, err := w.file.Write(b)
			begun = begun || n > 0
			if err != nil {
				w.failed(err, it, begun)
				return false
			}
		}
	}
	return true
}

func (w *Writer) recycle(b []byte) {
	const keep = 64 << 10
	if cap(b) > keep {
		return
	}
	w.mu.Lock()
	w.spare = b[:0]
	w.mu.Unlock()
}

// failed ends the Writer in the middle of it and puts back what of it never
// left, so that [Writer.Unsent] is true to the byte.
func (w *Writer) failed(err error, it item, begun bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.restLocked()
	if w.err == nil {
		w.err = err
	}
	if it.body != nil {
		if !begun {
			w.queue = append([]item{it}, w.queue...)
		}
		return
	}
	begin := 0
	for i, m := range it.marks {
		if begin >= it.written {
			w.queue = append([]item{{marks: it.marks[i:]}}, w.queue...)
			return
		}
		begin = m.end
	}
}

// Close ends the Writer and the file under it. What waits is not written any
// more; a write that waits for room returns. Every later Send fails with
// [ErrClosed] or with the error that came first.
func (w *Writer) Close() {
	w.mu.Lock()
	if w.err == nil {
		w.err = ErrClosed
	}
	w.mu.Unlock()
	_ = w.file.Close() // wakes a blocked write; nobody is left to tell of its error
	for {
		w.mu.Lock()
		drain := w.drain
		w.drain = nil
		w.mu.Unlock()
		if drain == nil {
			return
		}
		drain.Wait()
	}
}

// Unsent calls yield for each request of which no byte left this side. It is
// meant for after Close.
func (w *Writer) Unsent(yield func(request uint64)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, it := range w.queue {
		if it.body != nil {
			yield(it.header.Request)
		}
		for _, m := range it.marks {
			yield(m.request)
		}
	}
}
