package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// RequestPrefix is what stands before the arguments in the payload of a Request.
type RequestPrefix struct {
	HasDeadline bool
	Remaining   time.Duration // until the deadline; only with HasDeadline, where 0 or less means that it has passed
	Name        string        // of the method or attribute if the method table has no number for it, else empty
	Kwargs      bool          // the last value is a map[string]any
	Attr        bool          // read an attribute rather than call
	Timings     bool          // the reply shall have its times
	Watch       bool          // a Begun frame shall say when the handler begins
}

// Flags returns the header flags that belong to the prefix.
func (p RequestPrefix) Flags() Flags {
	return flag(FlagDeadline, p.HasDeadline) | flag(FlagNamed, p.Name != "") |
		flag(FlagKwargs, p.Kwargs) | flag(FlagAttr, p.Attr) | flag(FlagTimings, p.Timings) | flag(FlagWatch, p.Watch)
}

// Append appends the prefix to dst.
func (p RequestPrefix) Append(dst []byte) []byte {
	if p.HasDeadline { // of fixed size, so that SetRemaining can bring it up to date
		dst = binary.LittleEndian.AppendUint64(dst, uint64(max(0, p.Remaining)))
	}
	if p.Name != "" {
		dst = appendString(dst, p.Name)
	}
	return dst
}

// SetRemaining brings the remaining time up to date in a body whose prefix is that of a [RequestPrefix] with a deadline:
// between [Prepare] and sending the request may have waited.
func (b *Body) SetRemaining(d time.Duration) {
	binary.LittleEndian.PutUint64(b.buf, uint64(max(0, d)))
}

// ParseRequestPrefix splits the payload of a Request with the flags f into its prefix and the values. Both the error's
// identity, [ErrProtocol], and its reach are those of the whole connection.
func ParseRequestPrefix(f Flags, payload []byte) (p RequestPrefix, values []byte, err error) {
	c := cursor{b: payload}
	p.HasDeadline = f&FlagDeadline != 0
	p.Kwargs = f&FlagKwargs != 0
	p.Attr = f&FlagAttr != 0
	p.Timings = f&FlagTimings != 0
	p.Watch = f&FlagWatch != 0
	if p.HasDeadline {
		p.Remaining = time.Duration(min(c.uint64(), math.MaxInt64))
	}
	if f&FlagNamed != 0 {
		if p.Name = c.string(); p.Name == "" {
			c.fail(errShort)
		}
	}
	if c.err != nil {
		return RequestPrefix{}, nil, fmt.Errorf("%w: request prefix %w", ErrProtocol, c.err)
	}
	return p, payload[c.pos:], nil
}

// ReplyPrefix is what stands before the result in the payload of a Reply.
type ReplyPrefix struct {
	Error   bool // the body is an error
	Refused bool // the request was not and will never be executed
	Timings bool
	Queued  time.Duration // from receipt to the start of the handler; only with Timings
	Ran     time.Duration // of the handler; only with Timings
}

// Flags returns the header flags that belong to the prefix.
func (p ReplyPrefix) Flags() Flags {
	return flag(FlagError, p.Error) | flag(FlagRefused, p.Refused) | flag(FlagTimings, p.Timings)
}

// Append appends the prefix to dst.
func (p ReplyPrefix) Append(dst []byte) []byte {
	if p.Timings {
		dst = binary.AppendUvarint(dst, uint64(max(0, p.Queued)))
		dst = binary.AppendUvarint(dst, uint64(max(0, p.Ran)))
	}
	return dst
}

// ParseReplyPrefix splits the payload of a Reply with the flags f into its prefix and the value or error. The error
// is [ErrProtocol].
func ParseReplyPrefix(f Flags, payload []byte) (p ReplyPrefix, body []byte, err error) {
	c := cursor{b: payload}
	p.Error = f&FlagError != 0
	p.Refused = f&FlagRefused != 0
	p.Timings = f&FlagTimings != 0
	if p.Timings {
		p.Queued = c.duration()
		p.Ran = c.duration()
	}
	if c.err != nil {
		return ReplyPrefix{}, nil, fmt.Errorf("%w: reply prefix %w", ErrProtocol, c.err)
	}
	return p, payload[c.pos:], nil
}

// duration reads nanoseconds; more than a Duration holds is the longest Duration.
func (c *cursor) duration() time.Duration {
	return time.Duration(min(c.uvarint(), math.MaxInt64))
}

func flag(f Flags, on bool) Flags {
	if on {
		return f
	}
	return 0
}
