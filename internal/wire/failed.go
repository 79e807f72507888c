package wire

import (
	"fmt"
	"strconv"
)

// FailKind says why a worker does not serve.
type FailKind uint8

// The reasons why a worker does not serve.
const (
	FailError    FailKind = 1 // the factory returned an error
	FailPanic    FailKind = 2 // the factory panicked
	FailNotFound FailKind = 3 // the worker's program has no factory of that name
	FailVersion  FailKind = 4 // host and worker have no protocol version in common
	FailNoInit   FailKind = 5 // the worker's program never called Init
)

// String names the reason.
func (k FailKind) String() string {
	switch k {
	case FailError:
		return "factory failed"
	case FailPanic:
		return "factory panicked"
	case FailNotFound:
		return "no such factory"
	case FailVersion:
		return "no common version"
	case FailNoInit:
		return "not initialised"
	}
	return "FailKind(" + strconv.Itoa(int(k)) + ")"
}

// Failed is the worker's answer when it does not serve.
type Failed struct {
	Kind FailKind
	Node ErrorNode
}

// Append appends the message to dst.
func (m Failed) Append(dst []byte) []byte {
	return AppendError(append(dst, byte(m.Kind)), m.Node)
}

// ParseFailed reads a Failed. The error is [ErrProtocol]. A kind that this program does not know is no error.
func ParseFailed(b []byte) (Failed, error) {
	c := cursor{b: b}
	m := Failed{Kind: FailKind(c.byte())}
	if c.err == nil {
		m.Node = parseNode(&c, new(int), 0)
	}
	if c.err != nil {
		return Failed{}, fmt.Errorf("%w: Failed message %w", ErrProtocol, c.err)
	}
	return m, nil
}
