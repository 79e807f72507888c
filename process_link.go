package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/workerlink/supervisor/internal/pipe"
	"github.com/workerlink/supervisor/internal/proc"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/wire"
)

// processLink is one life of a process child: the host's end of its pipes.
//
// Submit writes to the requests pipe. One task reads the replies pipe and
// completes the calls; one waits for the process to exit and then, when what
// was in the pipes has been read, ends the life.
type processLink struct {
	child   *processChild
	life    *Life
	process *proc.Process
	writer  *pipe.Writer
	reader  *wire.Reader
	decoder *wire.Decoder
	output  *output
	methods *methods // set by serve
	decodes decodes
	exit    chan struct{} // closed when the process has exited
	done    chan struct{} // closed when the life has ended
	linkState
}

// decodes is what has come and is not delivered yet.
type decodes struct {
	now   atomic.Bool    // a frame is being taken in
	later sync.WaitGroup // verdicts that wait for user code
}

// linkState is what the parts of a link tell each other.
type linkState struct {
	mu       sync.Mutex
	pending  map[uint64]*Request // sent and not answered, by number
	ending   bool                // no further requests; the end is expected
	fault    error               // why the life had to end, other than an exit
	killedBy string
	status   proc.Status
	exited   bool // status is set
	up       time.Time
	uptime   time.Duration
	replies  *task.Task // reads the replies; nil before serve
	err      error      // the life's end, once done
	last     lastWords
}

const (
	// exitWait is how long a worker whose pipe has ended may take to exit.
	exitWait = 200 * time.Millisecond
	// drainWait bounds reading what a dead worker left in its pipes: a
	// descendant may hold them open.
	drainWait = 500 * time.Millisecond
	// leastFrame is what a worker may always send: method tables and errors.
	leastFrame = 1 << 20
)

func newProcessLink(c *processChild, life *Life, p *proc.Process) (*processLink, error) {
	w, err := pipe.NewWriter(p.Requests, c.slot.cfg.limits.Frame)
	if err != nil {
		return nil, err
	}
	l := &processLink{
		child: c, life: life, process: p, writer: w,
		reader:  wire.NewReader(p.Replies, max(c.slot.cfg.limits.Frame, leastFrame)),
		decoder: wire.NewDecoder(types, c.slot.cfg.limits.Frame),
		exit:    make(chan struct{}),
		done:    make(chan struct{}),
	}
	l.pending = make(map[uint64]*Request)
	l.output = newOutput(c.slot, life, p)
	task.Go(func(context.Context) { l.bury() })
	task.Go(func(context.Context) {
		select {
		case <-w.Broken(): // the worker may live on without ever reading a request
			l.lost(w.Err())
		case <-l.done:
		}
	})
	return l, nil
}

// serve begins to take replies.
func (l *processLink) serve(m *methods) {
	l.methods = m
	l.mu.Lock()
	defer l.mu.Unlock()
	l.up = time.Now()
	l.replies = task.Go(func(context.Context) { l.receive() })
}

// pid is the worker's process id.
func (l *processLink) pid() int { return l.process.Pid() }

// Submit writes the request; it waits for nobody.
func (l *processLink) Submit(r *Request) error {
	if r.coded.table != l.methods {
		return because(ErrVersion, errors.New("the worker's program was replaced by one with other methods"))
	}
	h := wire.Header{Kind: wire.KindRequest, Flags: r.coded.flags, Request: r.Num}
	if r.method >= 0 {
		h.Method = uint16(r.method)
	}
	if !r.deadline.IsZero() {
		r.coded.body.SetRemaining(time.Until(r.deadline))
	}
	l.mu.Lock()
	if l.ending {
		l.mu.Unlock()
		return ErrClosed
	}
	l.pending[r.Num] = r
	l.mu.Unlock()
	err := l.writer.Send(h, r.coded.body, true)
	if err == nil {
		return nil
	}
	l.take(r.Num)
	if errors.Is(err, ErrEncode) || errors.Is(err, ErrTooLarge) {
		return err
	}
	return ErrClosed // the pipe has broken: the end of the life is under way
}

// take removes a request from the pending ones.
func (l *processLink) take(num uint64) *Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.pending[num]
	delete(l.pending, num)
	return r
}

// cutOff reports whether Stop had to kill the worker, and the method of the
// request that waits longest for its answer.
func (l *processLink) cutOff() (method string, cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.killedBy != tooSlow {
		return "", false
	}
	var oldest *Request
	for _, r := range l.pending {
		if oldest == nil || r.Num < oldest.Num {
			oldest = r
		}
	}
	if oldest == nil {
		return "", true
	}
	return oldest.Method, true
}

// cancelRequest tells the worker that nobody waits for a request any more. Its
// answer is still expected, and dropped when it comes.
func (l *processLink) cancelRequest(num uint64) {
	l.mu.Lock()
	_, sent := l.pending[num]
	l.mu.Unlock()
	if sent {
		_ = l.writer.InOrder(wire.Header{Kind: wire.KindCancel, Request: num}) // if the pipe is broken the life is over
	}
}

// receive reads replies until the pipe ends or the worker breaks the protocol.
func (l *processLink) receive() {
	for {
		h, body, err := l.reader.Next()
		if err == nil {
			l.decodes.now.Store(true)
			err = l.handle(h, body)
			l.decodes.now.Store(false)
		}
		if err != nil {
			l.lost(err)
			return
		}
	}
}

// lost is called when nothing more can be received. A worker that is not told
// to stop has to go then.
func (l *processLink) lost(err error) {
	l.mu.Lock()
	if l.fault == nil && !isEOF(err) && !errors.Is(err, os.ErrDeadlineExceeded) { // the latter is bury's
		l.fault = err
	}
	expected := l.ending && isEOF(err)
	l.mu.Unlock()
	switch {
	case expected:
	case isEOF(err): // most often it is about to exit, and its status says more than ours
		awaitFor(l.exit, exitWait)
		l.kill("it closed its pipe")
	default:
		l.kill("it broke the protocol")
	}
}

func isEOF(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

// handle takes one frame. Its error is a protocol offence.
func (l *processLink) handle(h wire.Header, body []byte) error {
	if h.Kind != wire.KindReply {
		return l.handleOther(h, body)
	}
	r := l.take(h.Request)
	if r == nil {
		return fmt.Errorf("%w: reply to request %d, which is not open", ErrProtocol, h.Request)
	}
	prefix, rest, err := wire.ParseReplyPrefix(h.Flags, body)
	if err != nil {
		return err
	}
	if prefix.Refused && l.refusedByEnd(r) {
		return nil
	}
	v := verdict{unexecuted: prefix.Refused, queued: prefix.Queued, ran: prefix.Ran}
	if prefix.Error {
		return l.failed(r, v, rest)
	}
	var room [1]any
	vals, err := l.decoder.Values(h, rest, l.reader.Owned(), []*wire.Codec{l.resultCodec(r)}, room[:0])
	switch {
	case errors.Is(err, ErrProtocol): // the value streams have come apart
		return err
	case err != nil:
		v.err = library(err)
	case len(vals) != 1:
		return fmt.Errorf("%w: reply with %d values", ErrProtocol, len(vals))
	default:
		switch value := vals[0].(type) {
		case *wire.Deferred: // its decoding is user code, and not for this goroutine
			l.later(r, v, value.Decode)
			return nil
		case *wire.Raw:
			v.value = &rawValue{value}
		default:
			v.value = value
		}
	}
	l.life.reply(r, v)
	return nil
}

func (l *processLink) resultCodec(r *Request) *wire.Codec {
	if r.method < 0 {
		return nil
	}
	return l.methods.all[r.method].out
}

// failed takes an error reply.
func (l *processLink) failed(r *Request, v verdict, body []byte) error {
	node, err := wire.ParseError(body)
	if err != nil {
		return err
	}
	if v.failed = true; hasData(node) { // a registered type, whose codec may be user code
		l.later(r, v, func() (any, error) { return nil, fromNode(node) })
		return nil
	}
	v.err = fromNode(node)
	l.life.reply(r, v)
	return nil
}

func hasData(n wire.ErrorNode) bool {
	if n.Data != nil {
		return true
	}
	for _, kid := range n.Kids {
		if hasData(kid) {
			return true
		}
	}
	return false
}

// later gives r its verdict once decode, which is user code, has run.
func (l *processLink) later(r *Request, v verdict, decode func() (any, error)) {
	l.decodes.later.Add(1)
	task.Go(func(context.Context) {
		defer l.decodes.later.Done()
		err := contained(func() error {
			v.value, v.err = decode()
			return nil
		})
		switch {
		case err != nil:
			v.value, v.err = nil, fmt.Errorf("%w: %w", ErrDecode, err)
		case v.err != nil && !v.failed:
			v.err = library(v.err)
		}
		l.life.reply(r, v)
	})
}

// tooSlow is why Stop kills.
const tooSlow = "it did not stop in time"

// Stop sends the stop message and escalates: SIGTERM to the group after the
// grace, SIGKILL when ctx ends.
func (l *processLink) Stop(ctx context.Context) error {
	if l.expectEnd() {
		_ = l.writer.InOrder(wire.Header{Kind: wire.KindStop}) // if the pipe is broken the life is over
		task.Go(func(context.Context) { l.terminate() })
	}
	select {
	case <-l.done:
		return l.outcome()
	case <-ctx.Done():
	}
	l.kill(tooSlow)
	l.awaitDone(killWait)
	return l.outcome()
}

// remains reports whether the kernel still has something of the process.
func (l *processLink) remains() bool { return !isClosed(l.done) }

// expectEnd makes the end an orderly one; false if it was already.
func (l *processLink) expectEnd() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := !l.ending
	l.ending = true
	return first
}

// terminate sends SIGTERM when the grace is over.
func (l *processLink) terminate() {
	stop := l.child.slot.cfg.stop
	if !awaitFor(l.done, stop.grace()) {
		l.terminateAgain(stop.termGrace())
	}
}

// firstPause is the one before the second SIGTERM.
const firstPause = 20 * time.Millisecond

// terminateAgain sends SIGTERM to the group of a worker that has been told to
// stop, and then to the worker alone until it has ended or the time is over: the
// first one may overtake the message, and means nothing to the worker then.
func (l *processLink) terminateAgain(grace time.Duration) {
	l.process.Terminate()
	for pause := firstPause; grace > 0; pause *= 2 {
		if pause = min(pause, grace); awaitFor(l.done, pause) {
			return
		}
		grace -= pause
		_ = l.process.Signal(false, syscall.SIGTERM) // fails only if it has ended
	}
}

// kill ends the process group. Only the first reason counts.
func (l *processLink) kill(why string) {
	l.mu.Lock()
	if l.killedBy == "" && !l.exited {
		l.killedBy = why
	}
	l.mu.Unlock()
	l.process.Kill()
}

// Wait returns when the life has ended.
func (l *processLink) Wait() error {
	<-l.done
	return l.outcome()
}

func (l *processLink) outcome() error {
	select {
	case <-l.done:
	default: // not even SIGKILL has ended it
		in := l.life.self
		return &StuckError{ProcID: in.ProcID, Name: in.Name, Incarnation: in.Incarnation, Method: "the kernel"}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// awaitDone waits for the end of the life, but not longer than d.
func (l *processLink) awaitDone(d time.Duration) { awaitFor(l.done, d) }
