package vecenv

import (
	"errors"
	"fmt"

	"github.com/workerlink/supervisor"
)

var (
	// ErrClosed says that the vector is not launched, or was closed.
	ErrClosed = errors.New("vecenv: not launched")
	// ErrLaunched says that the vector is launched already.
	ErrLaunched = errors.New("vecenv: already launched")
	// ErrBusy says that an environment is in no state for this request, or that
	// too many results wait for Recv; nothing was sent.
	ErrBusy = errors.New("vecenv: environment is not ready for this")
	// ErrReplaced says that the environment that took the request was not the one
	// that was reset: that one has died in between.
	ErrReplaced = errors.New("vecenv: environment was replaced")
)

// errWithdrawn marks the verdict of a request whose caller went away before its
// deadline.
var errWithdrawn = errors.New("vecenv: request was withdrawn")

// FailedError says that an environment could not be reset.
type FailedError struct {
	Env   int
	Tries int
	Err   error // of the last try
}

func (e *FailedError) Error() string {
	return fmt.Sprintf("vecenv: environment %d could not be reset in %d tries: %v", e.Env, e.Tries, e.Err)
}

// Unwrap returns the error of the last try.
func (e *FailedError) Unwrap() error { return e.Err }

// AbnormalError says that an environment was given up because steps cut so many
// of its episodes short, and none came to its end in between.
type AbnormalError struct {
	Env      int
	Episodes int
	Err      error // of the last step
}

func (e *AbnormalError) Error() string {
	return fmt.Sprintf("vecenv: environment %d failed in %d episodes in a row: %v", e.Env, e.Episodes, e.Err)
}

// Unwrap returns the error of the last step.
func (e *AbnormalError) Unwrap() error { return e.Err }

// answered reports whether err is what an environment said itself, so that it is
// there and does nothing else.
func answered(err error) bool {
	var remote *supervisor.RemoteError
	var panicked *supervisor.PanicError
	return errors.As(err, &remote) || errors.As(err, &panicked)
}
