package supervisor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/workerlink/supervisor/future"
	"github.com/workerlink/supervisor/internal/dispatch"
	"github.com/workerlink/supervisor/internal/inbox"
	"github.com/workerlink/supervisor/internal/proc"
	"github.com/workerlink/supervisor/internal/wire"
)

// The verdicts and refusals that callers branch on, for errors.Is. Every
// verdict that is not a value reaches the caller inside a [*CallError].
var (
	// ErrTimeout says that a deadline passed; it is a context.DeadlineExceeded.
	// The request may have been executed, or may still be.
	ErrTimeout = future.ErrTimeout
	// ErrCanceled says that the caller withdrew; it is a context.Canceled.
	ErrCanceled = future.ErrCanceled
	// ErrRestarted says that [Supervisor.Restart], or the strategy together with
	// another child, ended the life that held the request.
	ErrRestarted = errors.New("supervisor: child was restarted")
	// ErrRestartLimit says that the child died too often and is not started
	// again by itself; the last cause is wrapped beside it.
	ErrRestartLimit = errors.New("supervisor: restart limit reached")
	// ErrClosed says that the supervisor, or this child, was shut down.
	ErrClosed = errors.New("supervisor: closed")
	// ErrNotStarted says that StartLink has not been called, or has not finished.
	ErrNotStarted = errors.New("supervisor: not started")
	// ErrNoSuchChild says that no child has this id: never registered, or unregistered.
	ErrNoSuchChild = errors.New("supervisor: no such child")
	// ErrNoSuchMethod says that the child has no callable method, or no
	// readable attribute, of this name.
	ErrNoSuchMethod = dispatch.ErrNoMethod
	// ErrNoSuchRequest says that no open or unclaimed request has this id, or
	// that another RecvAll already waits for it.
	ErrNoSuchRequest = inbox.ErrUnknown
	// ErrBadArgs says that arguments or options do not fit; nothing was sent.
	ErrBadArgs = dispatch.ErrArgs
	// ErrDuplicateRequest says that the request id is open or its reply unclaimed.
	ErrDuplicateRequest = inbox.ErrDuplicate
	// ErrBusy says that a bounded queue or the inbox is full, or, of TrySend, that
	// the child is between two lives.
	ErrBusy = errors.New("supervisor: queue is full")
	// ErrPending marks an entry of RecvAll's result that has no verdict yet.
	ErrPending = errors.New("supervisor: reply is still pending")
	// ErrEncode says that a value cannot leave its side; the text names its Go type.
	ErrEncode = wire.ErrEncode
	// ErrDecode says that the receiving side could not rebuild a value.
	ErrDecode = wire.ErrDecode
	// ErrTooLarge says that a value is over a limit.
	ErrTooLarge = wire.ErrTooLarge
	// ErrProtocol says that the other side broke the protocol; it ends that life.
	ErrProtocol = wire.ErrProtocol
	// ErrVersion says that host and worker speak different protocol versions.
	ErrVersion = wire.ErrVersion
	// ErrUnsupported says that this system, or this kind of child, cannot do it.
	ErrUnsupported = proc.ErrUnsupported
)

// CallError is the verdict of a request that has no value: which request it
// was, which life of which child held it, and why.
type CallError struct {
	ProcID      int    // the child
	Incarnation uint64 // the life that held the request, numbered over all children; 0 if none did
	ReqID       string // empty for calls that were never given one
	Method      string
	Unexecuted  bool  // the request was surely not executed; false says nothing
	Err         error // why; never nil
}

func (e *CallError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "supervisor: child %d", e.ProcID)
	if e.Incarnation != 0 {
		fmt.Fprintf(&b, " (life %d)", e.Incarnation)
	}
	if e.Method != "" {
		fmt.Fprintf(&b, ": %s", e.Method)
	}
	if e.ReqID != "" {
		fmt.Fprintf(&b, " [%s]", e.ReqID)
	}
	if e.Unexecuted {
		b.WriteString(": not executed")
	}
	b.WriteString(": ")
	b.WriteString(bare(e.Err))
	return b.String()
}

// Unwrap returns the reason.
func (e *CallError) Unwrap() error { return e.Err }

// RemoteError is an error that a handler returned. It is the same for both
// kinds of child: the text and type of the original, and, below it, what
// [RegisterError] and [RegisterErrorType] know of its chain, so that errors.Is
// and errors.As find those and nothing else.
type RemoteError struct {
	Type   string // Go type of the original, with its package path
	Text   string // its Error text
	causes []error
}

func (e *RemoteError) Error() string { return e.Text }

// Unwrap returns the registered errors of the original's chain.
func (e *RemoteError) Unwrap() []error { return e.causes }

// PanicError is a panic, or a runtime.Goexit, in a handler or a factory. The
// object is kept and serves on.
type PanicError struct {
	Value  string // the panic's value as text
	Stack  string // the panicking goroutine's stack
	causes []error
}

func (e *PanicError) Error() string { return "supervisor: panic: " + e.Value }

// Unwrap returns what is registered of the chain of the panic's value, if that was an error.
func (e *PanicError) Unwrap() []error { return e.causes }

// ExitError says how a life ended while it was needed: a worker process, or a
// goroutine child, which has no more than Err and perhaps Trace.
type ExitError struct {
	Pid      int            // 0 for a goroutine child
	Code     int            // exit code; -1 after a signal or if there is none
	Signal   syscall.Signal // 0 if no signal ended it
	KilledBy string         // why the supervisor killed it; empty if it did not
	OOM      bool           // it ended for want of memory: by the kernel in its cgroup, or by the Go runtime under a limit
	Uptime   time.Duration  // from ready to end; 0 if it never got ready
	Tail     string         // last lines of its stderr and stdout
	Trace    string         // the Go runtime's fatal trace, or the stacks of a life that hung, if there are any
	Err      error          // what ended the life, if it was not the exit: the error of Fatal or Serve, ErrProtocol, …
}

func (e *ExitError) Error() string {
	if e.Pid == 0 {
		return "supervisor: the life ended: " + bare(e.Err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "supervisor: worker %d ", e.Pid)
	switch {
	case e.Signal != 0:
		fmt.Fprintf(&b, "was killed by signal %d (%v)", int(e.Signal), e.Signal)
	case e.Code >= 0:
		fmt.Fprintf(&b, "exited with code %d", e.Code)
	default:
		b.WriteString("ended, its status is unknown")
	}
	if e.OOM {
		b.WriteString(", out of memory")
	}
	if e.KilledBy != "" {
		fmt.Fprintf(&b, ", ended by the supervisor: %s", e.KilledBy)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %s", bare(e.Err))
	}
	if line := firstLine(e.Trace); isHeadline(line) {
		fmt.Fprintf(&b, ": %s", line)
		if second := firstLine(strings.TrimPrefix(e.Trace, line)); strings.HasPrefix(second, "[signal ") {
			fmt.Fprintf(&b, " %s", second)
		}
	} else if line := e.lastWords(); line != "" {
		fmt.Fprintf(&b, ": last output: %s", shortened(line))
	}
	return b.String()
}

// lastWords is the line of the output that says most. A Go program that ends
// before it serves leaves no trace, but prints one, which ends with a line that
// says little.
func (e *ExitError) lastWords() string {
	if e.Code == fatalCode { // as of a flag that is wrong, but that has no stacks
		stacks := false
		for _, line := range slices.Backward(strings.Split(e.Tail, "\n")) {
			stacks = stacks || strings.HasPrefix(line, "goroutine ")
			if stacks && isHeadline(line) {
				return line
			}
		}
	}
	return lastLine(e.Tail)
}

// shortened is a line as it fits into an error's text; Tail has all of it.
func shortened(line string) string {
	const most = 200
	if len(line) <= most {
		return line
	}
	return strings.ToValidUTF8(line[:most], "") + "…"
}

// fatalCode is what a Go program exits with after a panic or a fatal error.
const fatalCode = 2

// Unwrap returns the fault that ended the life, if there was one beside the exit.
func (e *ExitError) Unwrap() error { return e.Err }

// StartError says why a child did not get ready: its factory failed or
// panicked ([*RemoteError], [*PanicError]), the start timed out ([ErrTimeout]),
// the process could not be started or ended first ([*ExitError]).
type StartError struct {
	ProcID      int
	Name        string
	Incarnation uint64
	Err         error
}

func (e *StartError) Error() string {
	return fmt.Sprintf("supervisor: child %d%s did not start: %s", e.ProcID, quoted(e.Name), bare(e.Err))
}

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// StuckError names a life that did not end in time. One that could not be ended
// at all, a goroutine child whose code ignores its context or a process that
// survives SIGKILL for a while, is abandoned; what it still answers is discarded.
type StuckError struct {
	ProcID      int
	Name        string
	Incarnation uint64
	Method      string // what it is doing: a method, or Factory, Serve, Health or Close; empty if that is not known
	Stack       string // the stuck goroutine's stack, if it could be found
	Killed      bool   // it was cut off in its work when the time was over, and is gone
	Err         error  // why it had to end, if that was no stop; else nil
}

// Unwrap returns why the life had to end, if that was no stop.
func (e *StuckError) Unwrap() error { return e.Err }

func (e *StuckError) Error() string {
	if e.Killed {
		doing := ""
		if e.Method != "" {
			doing = " in " + e.Method
		}
		return fmt.Sprintf("supervisor: child %d%s (life %d) was still at work%s and was cut off", e.ProcID, quoted(e.Name), e.Incarnation, doing)
	}
	text := fmt.Sprintf("supervisor: child %d%s (life %d) is stuck in %s", e.ProcID, quoted(e.Name), e.Incarnation, e.Method)
	if e.Err != nil {
		text += ": " + bare(e.Err)
	}
	return text
}

func quoted(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf(" (%q)", name)
}

// becauseError is one of our errors with its cause, each said once.
type becauseError struct{ err, cause error }

func (e *becauseError) Error() string   { return e.err.Error() + ": " + bare(e.cause) }
func (e *becauseError) Unwrap() []error { return []error{e.err, e.cause} }

// because returns err with its cause, or err alone.
func because(err, cause error) error {
	if cause == nil || errors.Is(cause, err) {
		return orErr(cause, err)
	}
	return &becauseError{err, cause}
}

// whereError is an error with a word on where it came from.
type whereError struct {
	where string
	err   error
}

func (e *whereError) Error() string { return "supervisor: " + e.where + ": " + bare(e.err) }
func (e *whereError) Unwrap() error { return e.err }

// bare is err's text without our prefix, for use inside a text that has it.
func bare(err error) string {
	if err == nil {
		return "unknown"
	}
	return strings.TrimPrefix(err.Error(), "supervisor: ")
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimLeft(s, "\n"), "\n")
	return line
}

func lastLine(s string) string {
	s = strings.TrimRight(s, "\n")
	return s[strings.LastIndexByte(s, '\n')+1:]
}

var errNoKillAfter = &libraryError{is: ErrUnsupported, text: "supervisor: KillAfter does not fit a child of kind outside"}
