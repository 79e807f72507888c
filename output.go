package supervisor

import (
	"bytes"
	"context"
	"io"
	"os"
	"reflect"
	"regexp"
	"sync"
	"time"

	"github.com/workerlink/supervisor/internal/lines"
	"github.com/workerlink/supervisor/internal/proc"
	"github.com/workerlink/supervisor/internal/task"
)

// output reads what a worker writes on its stdout and stderr, and the fatal
// trace that the Go runtime leaves on the control socket.
type output struct {
	process *proc.Process
	tail    *lines.Tail
	reasons *reasons
	readers []*task.Task
	trace   *lines.Tail
}

// maxTrace bounds the fatal trace that is kept.
const maxTrace = 64 << 10

func newOutput(s *slot, life *Life, p *proc.Process) *output {
	o := &output{process: p, tail: lines.NewTail(s.cfg.limits.Tail), reasons: newReasons(), trace: lines.NewTail(maxTrace)}
	var to Proc
	if s.cfg.proc != nil {
		to = *s.cfg.proc
	}
	if sameWriter(to.Stdout, to.Stderr) {
		both := &sharedWriter{to: to.Stdout}
		to.Stdout, to.Stderr = both, both
	}
	follow := func(f *os.File, keep, user io.Writer, stream int64) {
		o.readers = append(o.readers, task.Go(func(context.Context) {
			in := io.TeeReader(f, keep)
			if user != nil {
				copyTo(user, in)
				return
			}
			_ = lines.Copy(in, s.cfg.limits.Line, func(line []byte, _ bool) { // its error is the end of the pipe
				s.emit(Event{
					Kind: EventOutput, Incarnation: life.Incarnation(), Pid: p.Pid(),
					Text: lines.Clean(line), N: stream,
				})
			})
		}))
	}
	follow(p.Stdout, o.tail, to.Stdout, 1)
	follow(p.Stderr, io.MultiWriter(o.tail, o.reasons), to.Stderr, 2)
	o.readers = append(o.readers, task.Go(func(context.Context) { _, _ = io.Copy(o.trace, p.Control) }))
	return o
}

// sharedWriter is a user's writer for both streams: one write at a time, as
// os/exec has it.
type sharedWriter struct {
	mu sync.Mutex
	to io.Writer
}

func (w *sharedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}

// sameWriter compares two writers, whose types need not be comparable.
func sameWriter(a, b io.Writer) bool {
	return a != nil && b != nil && reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// copyTo hands everything to the user's writer. Once that fails the rest is
// read all the same, so that the worker does not block.
func copyTo(w io.Writer, r io.Reader) {
	if _, err := io.Copy(w, r); err != nil {
		_, _ = io.Copy(io.Discard, r)
	}
}

// close waits until everything is read, which it is unless a descendant of the
// worker holds a pipe open or a user's writer blocks; limit bounds both.
func (o *output) close(limit time.Time) {
	for _, f := range []*os.File{o.process.Stdout, o.process.Stderr, o.process.Control} {
		_ = f.SetReadDeadline(limit) // fails only if it is closed
	}
	for _, t := range o.readers {
		awaitFor(t.Done(), time.Until(limit)+lastGrace)
	}
}

// text returns the end of the output, fit to be shown, and the fatal trace.
func (o *output) text() (tail, trace string) {
	tail, trace = cleanLines(o.tail.String()), cleanLines(o.trace.String())
	if trace != "" && !isHeadline(firstLine(trace)) {
		// The runtime says what a fatal error is before it begins to write the trace.
		trace = cleanLines(o.reasons.text()) + trace
	}
	return tail, trace
}

// headline begins a line with which the Go runtime says why a program ends.
var headline = regexp.MustCompile(`^(fatal error: |panic: |runtime: |unexpected fault address |SIG[A-Z]+: )`)

func isHeadline(line string) bool { return headline.MatchString(line) }

// reasons keeps the last line of stderr that says why a Go program ends: the
// trace after it may be longer than the tail.
type reasons struct {
	split *lines.Splitter // for the stream's only writer

	mu   sync.Mutex
	last string // with its line end; or ""
}

// maxReason bounds a line that is kept as a reason.
const maxReason = 4 << 10

func newReasons() *reasons {
	r := &reasons{}
	r.split = lines.NewSplitter(maxReason, func(line []byte, _ bool) {
		if bytes.HasPrefix(line, []byte("fatal error: ")) || bytes.HasPrefix(line, []byte("panic: ")) {
			r.mu.Lock()
			r.last = string(line) + "\n"
			r.mu.Unlock()
		}
	})
	return r
}

func (r *reasons) Write(p []byte) (int, error) { return r.split.Write(p) }

func (r *reasons) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

func cleanLines(s string) string {
	var clean []byte
	splitter := lines.NewSplitter(max(len(s), 1), func(line []byte, _ bool) {
		clean = append(append(clean, lines.Clean(line)...), '\n')
	})
	_, _ = io.WriteString(splitter, s) // never fails
	_ = splitter.Close()               // likewise
	return string(clean)
}
