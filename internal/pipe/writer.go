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
	"errors"
	"os"
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
	file   *os.File
	raw    syscall.RawConn
	broken chan struct{} // closed when a write has failed

	mu      sync.Mutex
	enc     *wire.Encoder // the direction's value stream; used under mu
	control []byte        // control frames that wait; they go first
	queue   []item        // data frames that wait, in order
	busy    bool          // somebody writes
	spare   item          // emptied buffers to use again
	err     error         // why nothing can be sent any more
	idle    chan struct{} // closed when nobody writes; nil if nobody asks
	drain   *task.Task    // the last goroutine that wrote for others; nil before the first
}

// item is a stretch of the queue: frames back to back, or one large payload.
type item struct {
	small   []byte // frames back to back
	marks   []mark // where each request's frame begins in small
	written int    // bytes of small that went out

	header wire.Header // of a large payload
	body   []byte      // of a large payload; nil for small frames
}

type mark struct {
	request uint64
	begin   int
}

// NewWriter returns a Writer over a non-blocking pipe, which it owns from now on.
// Payloads of values over limit bytes are refused; 0 is the protocol's default.
func NewWriter(file *os.File, limit int) (*Writer, error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &Writer{file: file, raw: raw, broken: make(chan struct{}), enc: wire.NewEncoder(limit)}, nil
}

// SetLimit changes the limit for the payloads to come.
func (w *Writer) SetLimit(limit int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.enc.SetLimit(limit)
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
	}
	h.Stream = w.enc.Stream() // in every frame: the receiver follows it even where a body needs none
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
		w.queue = append(w.queue, w.spare)
		w.spare = item{}
	}
	last := &w.queue[len(w.queue)-1]
	if request {
		last.marks = append(last.marks, mark{request: h.Request, begin: len(last.small)})
	}
	h.Length = uint32(len(body))
	last.small = append(h.Append(last.small), body...)
}
