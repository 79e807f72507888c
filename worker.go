package supervisor

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/workerlink/supervisor/internal/pipe"
	"github.com/workerlink/supervisor/internal/proc"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/wire"
)

// Init is the first line of main, and of TestMain in a test binary. In a worker
// process it serves and never returns; in any other it does nothing. What a
// worker needs, such as factories and registered types, must be in place
// before: package variables and init functions are.
func Init() {
	in, ok := proc.Inherited()
	if !ok {
		return
	}
	w, err := newWorker(in)
	status := 0
	if err == nil {
		status, err = w.serve()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "supervisor: worker: %s\n", bare(err)) // the host reads it
		status = workerFailed
	}
	in.EndGroup() // the host does that too, if it lives
	os.Exit(status)
}

// workerFailed is the exit code of a worker that could not serve.
const workerFailed = 3

// refuseUninitialised ends a worker whose main went on to make a Supervisor
// instead of calling Init.
func refuseUninitialised() {
	in, ok := proc.Inherited()
	if !ok || initialised() {
		return
	}
	const text = "the program of this worker did not call supervisor.Init first thing in main, or in TestMain"
	w, err := pipe.NewWriter(in.Replies, 0)
	if err == nil {
		failed := wire.Failed{Kind: wire.FailNoInit, Node: toNode(&libraryError{is: ErrUnsupported, text: "supervisor: " + text})}
		_ = w.SendBytes(wire.Header{Kind: wire.KindFailed}, failed.Append(nil)) // stderr says it too
		w.Flush()
	}
	fmt.Fprintln(os.Stderr, "supervisor: "+text)
	os.Exit(workerFailed)
}

// serving is closed once this process is a worker that serves: its own
// supervisors are in order.
var serving = make(chan struct{})

func initialised() bool {
	select {
	case <-serving:
		return true
	default:
		return false
	}
}

// worker is the other side of a processLink: it reads requests, runs them on
// the object's runner and writes the replies.
//
// The goroutine that reads never waits for anything else, so that cancels, the
// stop message and the end of the host are always seen.
type worker struct {
	in      *proc.Worker
	reader  *wire.Reader
	writer  *pipe.Writer
	decoder *wire.Decoder
	hello   wire.Hello
	self    *self
	finish  chan int // the exit status; the first one counts
	end     sync.Once
	refuses sync.Mutex // held while requests are refused that were queued, which only queues: the exit waits for it
	workerState
}

// workerState is what the goroutines of a worker share.
type workerState struct {
	mu      sync.Mutex
	methods *methods // set, with the next one, once the object is made
	actor   *actor
	open    map[uint64]*Request // not answered yet, by number
	early   uint64              // cancelled while its large payload is arriving, which a cancel overtakes; or 0
	stopped bool                // the end has been announced, by whichever side
	leaving bool                // this side announces it, or did
	late    []*Request          // refused before the host knows why
}

func newWorker(in *proc.Worker) (*worker, error) {
	close(serving)
	w := &worker{in: in, reader: wire.NewReader(in.Requests, 0), finish: make(chan int, 1)}
	w.open = make(map[uint64]*Request)
	var err error
	w.writer, err = pipe.NewWriter(in.Replies, 0)
	return w, err
}

// serve is a worker's whole life; it returns the exit status.
func (w *worker) serve() (status int, err error) {
	if err := w.in.SetCrashOutput(); err != nil {
		return 0, fmt.Errorf("fatal traces: %w", err)
	}
	w.in.HoldSignals(w.orphaned, w.terminated)
	h, body, err := w.reader.Next()
	if err != nil {
		return 0, fmt.Errorf("no greeting from the host: %w", err)
	}
	if h.Kind != wire.KindHello {
		return 0, fmt.Errorf("%w: %v frame before the greeting", ErrProtocol, h.Kind)
	}
	if w.hello, err = wire.ParseHello(body); err != nil {
		return 0, err
	}
	w.reader.SetLimit(w.hello.FrameLimit)
	w.writer.SetLimit(w.hello.FrameLimit)
	w.decoder = wire.NewDecoder(types, w.hello.FrameLimit)
	w.self = &self{Info: Info{ProcID: w.hello.ProcID, Name: w.hello.Name, Incarnation: w.hello.Incarnation}}
	if w.hello.Name != "" {
		proc.SetName(w.hello.Name)
	}
	version, err := w.hello.Negotiate()
	if err != nil {
		return w.refuse(wire.FailVersion, &libraryError{is: ErrVersion, text: err.Error()}), nil
	}
	task.Go(func(context.Context) { w.receive() })
	task.Go(func(context.Context) { w.start(version) })
	return <-w.finish, nil
}

// refuse tells the host why this worker does not serve.
func (w *worker) refuse(kind wire.FailKind, err error) (status int) {
	failed := wire.Failed{Kind: kind, Node: toNode(err)}
	_ = w.writer.SendBytes(wire.Header{Kind: wire.KindFailed}, failed.Append(nil)) // nobody else to tell
	w.writer.Flush()
	return workerFailed
}

// start makes the object and tells the host.
func (w *worker) start(version int) {
	def, err := definitions.find(w.hello.Factory)
	if err == nil && def.declared {
		err = fmt.Errorf("%w: factory %q is only declared in the worker's program", ErrBadArgs, w.hello.Factory)
	}
	if err != nil {
		w.finish <- w.refuse(wire.FailNotFound, library(err))
		return
	}
	m, err := def.methods()
	if err != nil {
		w.finish <- w.refuse(wire.FailError, err)
		return
	}
	ctx := context.WithValue(context.Background(), selfKey{}, w.self)
	object, err := buildObject(ctx, def, Spec{name: def.name, encoded: w.hello.Arg}, nil)
	if err != nil {
		kind := wire.FailError
		if _, ok := err.(*PanicError); ok { //nolint:errorlint // only buildObject's own
			kind = wire.FailPanic
		}
		w.finish <- w.refuse(kind, err)
		return
	}
	w.mu.Lock()
	w.methods = m
	w.actor = newActor(ctx, object, newRunner(m, object, w, max(1, w.hello.Concurrency), w.hello.EndOnPanic), w.hello.HealthLimit)
	stopped := w.stopped
	w.mu.Unlock()
	if stopped { // while the factory ran
		w.wind()
		return
	}
	ready := m.describe(version)
	if err := w.writer.SendBytes(wire.Header{Kind: wire.KindReady}, ready.Append(nil)); err != nil {
		w.orphaned()
		return
	}
	w.actor.begin(ctx, w.served)
}

// receive reads frames until the host is gone.
func (w *worker) receive() {
	for {
		h, body, err := w.reader.Next()
		if err == nil {
			err = w.handle(h, body)
		}
		switch {
		case err == nil:
		case isEOF(err):
			w.orphaned()
			return
		default:
			fmt.Fprintf(os.Stderr, "supervisor: worker: %s\n", bare(err)) // the host reads it
			w.finish <- workerFailed
			return
		}
	}
}

// handle takes one frame. Its error is a protocol offence.
func (w *worker) handle(h wire.Header, body []byte) error {
	switch h.Kind {
	case wire.KindRequest:
		return w.request(h, body)
	case wire.KindCancel:
		w.cancel(h.Request)
		return nil
	case wire.KindStop:
		w.stop()
		return nil
	case wire.KindPing:
		w.ping(h.Request)
		return nil
	case wire.KindAskStacks:
		task.Go(func(context.Context) { w.sendStacks() })
		return nil
	default:
		return fmt.Errorf("%w: unexpected %v frame", ErrProtocol, h.Kind)
	}
}

// stop is the host's word that the end has come: what was submitted is still
// executed, then Close runs and the worker exits.
func (w *worker) stop() {
	w.mu.Lock()
	w.stopped = true
	made := w.actor != nil
	w.mu.Unlock()
	if made {
		task.Go(func(context.Context) { w.wind() })
	}
}

// wind waits until the object has nothing more to do and ends the worker in order.
func (w *worker) wind() {
	<-w.actor.close()
	w.refuses.Lock()   // what has made it so may not have said all yet
	w.refuses.Unlock() //nolint:staticcheck // nothing to do in between
	w.end.Do(func() {
		status := 0
		if err := w.actor.closeObject(); err != nil {
			fmt.Fprintln(os.Stderr, err) // the host reads it
			status = workerFailed
		}
		w.writer.Flush()
		w.finish <- status
	})
}

// terminated is SIGTERM while the host lives: if the end was announced, all
// contexts end now.
func (w *worker) terminated() {
	w.mu.Lock()
	stopped, a := w.stopped, w.actor
	w.mu.Unlock()
	if stopped && a != nil {
		w.abort(ErrClosed)
	}
}

// abort ends all contexts for that cause and refuses what is queued.
func (w *worker) abort(cause error) {
	w.refuses.Lock()
	defer w.refuses.Unlock()
	w.refuseAll(w.actor.abort(cause))
}

func (w *worker) refuseAll(unstarted []*Request) {
	for _, r := range unstarted {
		w.reply(r, verdict{err: library(ErrClosed), unexecuted: true})
	}
}

// served is the return of the object's Serve. If nobody asked for it the life
// ends: in order after nil.
func (w *worker) served(err error) {
	if err == nil {
		if w.leave(wire.Header{Kind: wire.KindEnded}, nil) {
			task.Go(func(context.Context) { w.wind() })
		}
		return
	}
	w.fail(&whereError{"Serve", err}, nil)
}

// fail ends the life because of err: no further request begins, and contexts
// are cancelled. The host sees to it that the end comes.
func (w *worker) fail(err error, unstarted []*Request) {
	body := wire.AppendError(nil, toNode(err))
	if w.leave(wire.Header{Kind: wire.KindEnded, Flags: wire.FlagError}, body) {
		task.Go(func(context.Context) {
			w.abort(err)
			w.wind()
		})
	}
	w.refuseAll(unstarted)
}

// leave tells the host that the life ends by itself; false if the end was
// announced before.
func (w *worker) leave(h wire.Header, body []byte) bool {
	w.mu.Lock()
	if w.leaving {
		w.mu.Unlock()
		return false
	}
	w.leaving = true
	first := !w.stopped
	w.mu.Unlock()
	if first {
		_ = w.writer.SendBytes(h, body) // a broken pipe is the end of the host, which receive sees
	}
	w.mu.Lock()
	w.stopped = true
	late := w.late
	w.late = nil
	w.mu.Unlock()
	w.refuseAll(late)
	return first
}

// refuseNew refuses a request that comes too late. Its host must know first
// that the life ends.
func (w *worker) refuseNew(r *Request) {
	w.mu.Lock()
	known := w.stopped
	if !known {
		w.late = append(w.late, r)
	}
	w.mu.Unlock()
	if known {
		w.refuseAll([]*Request{r})
	}
}

// orphanGrace is how long an orphan's handlers and its Close may take at most.
// Workers of workers notice one after the other, so it adds up with the depth.
const orphanGrace = 500 * time.Millisecond

// orphaned ends a worker whose host is gone, and all of its process group.
func (w *worker) orphaned() {
	done := task.Go(func(context.Context) {
		a := w.acting()
		if a == nil {
			return
		}
		a.abort(ErrClosed)
		<-a.close()
		w.end.Do(func() { _ = a.closeObject() }) // nobody is left to be told
	})
	awaitFor(done.Done(), min(orphanGrace, w.hello.CloseGrace))
	w.in.KillGroup()
}
