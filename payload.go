package supervisor

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/google/uuid"

	"github.com/workerlink/supervisor/internal/dispatch"
)

// SendPayload is one request to one child, as DI-engine's SendPayload is.
type SendPayload struct {
	ProcID int            // the child's id, from Register
	ReqID  string         // unique among open and unclaimed requests; not empty for Send
	Method string         // a callable method of the child's object
	Args   []any          // positional arguments
	Kwargs map[string]any // fill a trailing struct parameter by field name

	// Timeout limits the request from Send to its verdict, which is then
	// [ErrTimeout]. Zero means none, negative an error.
	Timeout time.Duration

	// KillAfter limits the run of the handler, from its start: past it the child
	// has hung, and its life is ended with the stacks of what it was doing. The
	// request's verdict is then an [ErrTimeout] that wraps how the life ended; it
	// comes with that end: of a process up to 1 s later, for the stacks, and of both
	// kinds up to [Stop].TermGrace, 2 s by default, after that. A shorter TermGrace
	// makes a faster verdict; a Timeout does, too, but ends no life. Time in which the host stood still does not count. Zero means none, negative
	// an error. For children of the built-in kinds.
	KillAfter time.Duration

	// Into is lent to receive a []byte result: if it has the room, the reply's
	// Data is a slice of it. It is the caller's again with the verdict.
	Into []byte
}

// NewSendPayload returns a request with a fresh id, a version 7 UUID.
func NewSendPayload(procID int, method string, args ...any) SendPayload {
	return SendPayload{ProcID: procID, ReqID: newID(), Method: method, Args: args}
}

// RecvPayload is the verdict of one request.
type RecvPayload struct {
	ProcID      int
	ReqID       string
	Method      string
	Data        any   // the method's result; nil if it has none or Err is set. Of a [Declare] worker it may need [Value]
	Err         error // nil for a value, else a [*CallError]
	Extra       any   // free for the receiver
	Incarnation uint64

	// How long the request waited in the child's queue and how long its handler
	// ran; zero without [WithTimings].
	Queued, Ran time.Duration
}

// Value converts a reply to R: its error if it has one, else its Data if that
// is an R or a number that becomes one without loss; otherwise an [ErrDecode].
// A method without a result gives R's zero value if Data is nil.
func Value[R any](p RecvPayload) (R, error) {
	var r R
	if p.Err != nil {
		return r, p.Err
	}
	if v, ok := p.Data.(R); ok {
		return v, nil
	}
	if p.Data == nil {
		return r, nil
	}
	want := reflect.TypeFor[R]()
	if raw, ok := p.Data.(*rawValue); ok {
		v, err := raw.decode(want)
		if err != nil {
			return r, p.fail(err)
		}
		r, _ = v.(R)
		return r, nil
	}
	v, err := dispatch.Convert(p.Data, want)
	if err != nil {
		return r, p.fail(fmt.Errorf("%w: result of %s is %T, not %v", ErrDecode, p.Method, p.Data, want))
	}
	r, _ = v.(R)
	return r, nil
}

// fail is the verdict of a reply that arrived and cannot be used.
func (p RecvPayload) fail(err error) *CallError {
	return &CallError{ProcID: p.ProcID, Incarnation: p.Incarnation, ReqID: p.ReqID, Method: p.Method, Err: err}
}

// fastRandom feeds ids from the runtime's own generator: unique is enough, and
// it is several times cheaper than the system's. It has no state of its own.
type fastRandom struct{}

func (fastRandom) Read(b []byte) (int, error) {
	var word [8]byte
	for i := 0; i < len(b); i += 8 {
		binary.LittleEndian.PutUint64(word[:], rand.Uint64())
		copy(b[i:], word[:])
	}
	return len(b), nil
}

func newID() string {
	id, err := uuid.NewV7FromReader(fastRandom{})
	if err != nil { // fastRandom never fails
		panic("supervisor: " + err.Error())
	}
	return id.String()
}
