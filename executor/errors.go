package executor

import (
	"errors"
	"fmt"
	"strings"

	"github.com/workerlink/supervisor"
)

// What callers branch on beside the errors of package supervisor, of which these occur here: ErrBusy for a full queue,
// ErrClosed after Shutdown, ErrCanceled, ErrTimeout, ErrEncode, ErrDecode, ErrTooLarge and ErrBadArgs.
var (
	// ErrBroken says that workers died or failed to start too often; the last cause is wrapped beside it.
	ErrBroken = errors.New("executor: broken")
	// ErrPoison says that the task was running at so many crashes that it is not tried again.
	ErrPoison = errors.New("executor: poison task")
	// ErrTooDeep says that executors of processes are nested in each other's tasks too deep.
	ErrTooDeep = errors.New("executor: nested too deep")
)

func init() {
	supervisor.RegisterError("executor.ErrBroken", ErrBroken)
	supervisor.RegisterError("executor.ErrPoison", ErrPoison)
	supervisor.RegisterError("executor.ErrTooDeep", ErrTooDeep)
}

// TaskError is the verdict of a task that has no value: which task it was, where it ran, and why.
type TaskError struct {
	Task       string // the name of the function
	Worker     int    // the id that the worker has in events and snapshots; -1 if none had the task
	Attempts   int    // how often it was begun
	Unexecuted bool   // it was surely not executed; false says nothing
	Err        error  // why; never nil
}

func (e *TaskError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "executor: task %q", e.Task)
	if e.Worker >= 0 {
		fmt.Fprintf(&b, " (worker %d)", e.Worker)
	}
	if e.Attempts > 1 {
		fmt.Fprintf(&b, ", attempt %d", e.Attempts)
	}
	if e.Unexecuted {
		b.WriteString(": not executed")
	}
	b.WriteString(": ")
	b.WriteString(bare(e.Err))
	return b.String()
}

// Unwrap returns the reason.
func (e *TaskError) Unwrap() error { return e.Err }

// Exit returns how the worker ended that was executing the task, with the end of its output, or nil if that is not why
// the task has no value.
func (e *TaskError) Exit() *supervisor.ExitError {
	exit, _ := errors.AsType[*supervisor.ExitError](e.Err)
	return exit
}

// LoadError says that the object which a function of [Method] needs could not be made in a worker.
type LoadError struct {
	Factory string // the name of its spec
	Err     error  // as of a supervisor's child that does not start
}

func (e *LoadError) Error() string {
	return fmt.Sprintf("executor: object of %q: %s", e.Factory, bare(e.Err))
}

// Unwrap returns the cause.
func (e *LoadError) Unwrap() error { return e.Err }

// becauseError is one of our sentinels with its cause.
type becauseError struct{ err, cause error }

func (e *becauseError) Error() string   { return e.err.Error() + ": " + bare(e.cause) }
func (e *becauseError) Unwrap() []error { return []error{e.err, e.cause} }

// bare is err's text without the prefix of who says it, for use inside a text that has one.
func bare(err error) string {
	text := err.Error()
	for _, prefix := range []string{"executor: ", "supervisor: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return text
}
