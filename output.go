package supervisor

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
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
	readers []*task.Task
	trace   *lines.Tail
}

// maxTrace bounds the fatal trace that is kept.
const maxTrace = 64 << 10

func newOutput(s *slot, life *Life, p *proc.Process) *output {
	o := &output{process: p, tail: lines.NewTail(s.cfg.limits.Tail), trace: lines.NewTail(maxTrace)}
	var to Proc
	if s.cfg.proc != nil {
		to = *s.cfg.proc
	}
	follow := func(f *os.File, user io.Writer, stream int64) {
		o.readers = append(o.readers, task.Go(func(context.Context) {
			in := io.TeeReader(f, o.tail)
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
	follow(p.Stdout, to.Stdout, 1)
	follow(p.Stderr, to.Stderr, 2)
	o.readers = append(o.readers, task.Go(func(context.Context) { _, _ = io.Copy(o.trace, p.Control) }))
	return o
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
		trace = headline(tail) + trace
	}
	return tail, trace
}

var headlines = []string{"fatal error: ", "panic: ", "runtime: ", "unexpected fault address "}

func isHeadline(line string) bool {
	return slices.ContainsFunc(headlines, func(h string) bool { return strings.HasPrefix(line, h) })
}

// headline returns the last line of the output that says why a Go program
// ends, with its line end, or "".
func headline(tail string) string {
	all := slices.Collect(strings.Lines(tail))
	for _, h := range headlines[:2] {
		for _, line := range slices.Backward(all) {
			if strings.HasPrefix(line, h) {
				return line
			}
		}
	}
	return ""
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
