package inbox

import (
	"errors"
	"strconv"
)

// What a box and its gathers refuse. Errors of a context are passed on as they are.
var (
	// ErrFull says that all places are taken.
	ErrFull = errors.New("supervisor: inbox is full")
	// ErrDuplicate says that the id is open or its reply unclaimed.
	ErrDuplicate = errors.New("supervisor: duplicate request id")
	// ErrUnknown says that the id is neither open nor unclaimed.
	ErrUnknown = errors.New("supervisor: no such request")
	// ErrAwaited says that another gather awaits the id.
	ErrAwaited = errors.New("supervisor: request is awaited elsewhere")
	// ErrNone says that a gather awaits nothing any more.
	ErrNone = errors.New("supervisor: no request is awaited")
	// ErrDropped says that a request which a gather awaits was not accepted after all.
	ErrDropped = errors.New("supervisor: awaited request was not accepted")
	// ErrClosed says that the box was closed or the gather released.
	ErrClosed = errors.New("supervisor: inbox is closed")
)

// An IDError names the id that was refused.
type IDError struct {
	ID  string
	Err error // ErrDuplicate, ErrUnknown or ErrAwaited
}

func (e *IDError) Error() string { return e.Err.Error() + ": " + strconv.Quote(e.ID) }

// Unwrap returns Err.
func (e *IDError) Unwrap() error { return e.Err }
