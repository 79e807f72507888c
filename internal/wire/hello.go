package wire

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Hello is the host's first message.
type Hello struct {
	Min, Max    int    // protocol versions that the host speaks, lowest and highest
	Factory     string // name of the factory that makes the object
	Arg         []byte // its argument, coded by the factory
	Name        string // of the child
	ProcID      int
	Incarnation uint64
	Concurrency int  // handlers that may run at a time
	EndOnPanic  bool // a panic in a handler ends the life
	// SelfContained asks for results that need no shared stream: the host may not know their types.
	SelfContained bool
	HelloLimits
}

// HelloLimits are the part of a Hello that says what there may be at most.
type HelloLimits struct {
	FrameLimit  int           // bytes of a payload, both directions
	CloseGrace  time.Duration // that the object's Close may take
	HealthLimit time.Duration // that its Health may take
}

// Append appends the message to dst. Negative numbers are sent as 0.
func (m Hello) Append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint16(dst, uint16(m.Min))
	dst = binary.LittleEndian.AppendUint16(dst, uint16(m.Max))
	dst = appendString(dst, m.Factory)
	dst = appendString(dst, m.Arg)
	dst = appendString(dst, m.Name)
	dst = binary.AppendUvarint(dst, uint64(max(0, m.ProcID)))
	dst = binary.AppendUvarint(dst, m.Incarnation)
	dst = binary.AppendUvarint(dst, uint64(max(0, m.Concurrency)))
	dst = appendBool(dst, m.EndOnPanic)
	dst = appendBool(dst, m.SelfContained)
	dst = binary.AppendUvarint(dst, uint64(max(0, m.FrameLimit)))
	dst = binary.AppendUvarint(dst, uint64(max(0, m.CloseGrace)))
	return binary.AppendUvarint(dst, uint64(max(0, m.HealthLimit)))
}

// ParseHello reads a Hello; the result holds no views of b. The error is [ErrProtocol]. Whether the versions fit is
// for [Hello.Negotiate] to say.
func ParseHello(b []byte) (Hello, error) {
	c := cursor{b: b}
	m := Hello{
		Min:           int(c.uint16()),
		Max:           int(c.uint16()),
		Factory:       c.string(),
		Arg:           append([]byte(nil), c.bytes()...),
		Name:          c.string(),
		ProcID:        c.bounded(),
		Incarnation:   c.uvarint(),
		Concurrency:   c.bounded(),
		EndOnPanic:    c.byte() == 1,
		SelfContained: c.byte() == 1,
		HelloLimits:   HelloLimits{FrameLimit: c.bounded(), CloseGrace: c.duration(), HealthLimit: c.duration()},
	}
	if c.err != nil {
		return Hello{}, fmt.Errorf("%w: Hello message %w", ErrProtocol, c.err)
	}
	return m, nil
}

// Negotiate returns the highest version that the host and this program speak. If there is none, the error is
// [ErrVersion] and names both ranges.
func (m Hello) Negotiate() (int, error) {
	v := min(m.Max, Version)
	if v < m.Min || v < MinVersion {
		return 0, fmt.Errorf("%w: the host speaks %d to %d, the worker %d to %d", ErrVersion, m.Min, m.Max, MinVersion, Version)
	}
	return v, nil
}
