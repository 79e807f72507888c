package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
)

const (
	readBuffer = 64 << 10                // size of a Reader's buffer
	viewMax    = readBuffer - HeaderSize // largest payload returned as a view
	firstGrant = 1 << 20                 // memory given to a payload before any of it has come
	growth     = 4                       // memory given to a payload for each byte that has come
	quoteMax   = 64                      // offending bytes shown in an error
)

// Reader takes frames from a byte stream and returns whole messages. It is for one goroutine.
type Reader struct {
	// Lend, if not nil, may give the memory for a payload that is not returned as a view, before any of it is read. A
	// result of at least size bytes is used, a shorter one (or nil) is not. Lend runs on the reading goroutine and must
	// not block. Set it before the first Next.
	Lend func(h Header, size int) []byte

	in    *bufio.Reader
	limit int
	err   error // sticky

	owned bool

	// The payload under way, if cut is true.
	cut   bool
	head  Header
	part  []byte // what has come so far
	total int
}

// NewReader returns a Reader of r that refuses payloads of more than limit bytes. Limit 0 means [DefaultLimit];
// no limit is above 4 GiB.
func NewReader(r io.Reader, limit int) *Reader {
	return &Reader{in: bufio.NewReaderSize(r, readBuffer), limit: bounded(limit)}
}

// UnderWay returns the number of the request whose payload has begun to arrive in pieces and is not whole yet, or 0.
func (r *Reader) UnderWay() uint64 {
	if !r.cut {
		return 0
	}
	return r.head.Request
}

// SetLimit changes the limit for the messages to come.
func (r *Reader) SetLimit(limit int) { r.limit = bounded(limit) }

// bounded returns a payload limit in force for the limit asked for.
func bounded(limit int) int {
	if limit <= 0 {
		return DefaultLimit
	}
	return int(min(uint64(limit), math.MaxUint32))
}

// Buffered returns the number of bytes that were read from the stream but not yet returned.
func (r *Reader) Buffered() int { return r.in.Buffered() }

// Owned reports whether the payload last returned by Next belongs to the caller (it is fresh, or was lent). If not,
// it is a view, valid until the next call of Next.
func (r *Reader) Owned() bool { return r.owned }

// Next returns the next message, blocking as the underlying reader does. A payload that came in pieces is whole and
// under its first header, without [FlagMore] and with the full length; control frames that came between the pieces are
// returned before it. At the end of the stream between two messages the error is [io.EOF]. An end elsewhere is
// [ErrProtocol] and [io.ErrUnexpectedEOF]; other errors are [ErrProtocol], [ErrTooLarge], [ErrVersion] or the reader's
// own. The first error stays.
func (r *Reader) Next() (Header, []byte, error) {
	if r.err != nil {
		return Header{}, nil, r.err
	}
	h, payload, err := r.next()
	if err != nil {
		r.err, r.part, r.owned = err, nil, false
		return Header{}, nil, err
	}
	return h, payload, nil
}

func (r *Reader) next() (Header, []byte, error) {
	for {
		h, err := r.header()
		if err != nil {
			return Header{}, nil, err
		}
		switch {
		case h.Kind.Control():
			if h.Length != 0 {
				return Header{}, nil, fmt.Errorf("%w: %v frame with a payload", ErrProtocol, h.Kind)
			}
			r.owned = false
			return h, nil, nil
		case h.Kind == KindChunk:
			done, err := r.chunk(h)
			if err != nil {
				return Header{}, nil, err
			}
			if done {
				return r.finish()
			}
		case r.cut:
			return Header{}, nil, fmt.Errorf("%w: %v frame between the pieces of request %d", ErrProtocol, h.Kind, r.head.Request)
		case h.Flags&FlagMore != 0:
			if err := r.begin(h); err != nil {
				return Header{}, nil, err
			}
		default:
			return r.single(h)
		}
	}
}

// header reads and checks the next header, including its length.
func (r *Reader) header() (Header, error) {
	b, err := r.in.Peek(HeaderSize)
	if err != nil {
		if errors.Is(err, io.EOF) && len(b) == 0 && !r.cut {
			return Header{}, io.EOF
		}
		if errors.Is(err, io.EOF) && !r.prefix(b) {
			return Header{}, r.garbage(fmt.Errorf("%w: not a frame", ErrProtocol))
		}
		return Header{}, broken(err)
	}
	h, err := ParseHeader(b)
	if err != nil {
		return Header{}, r.garbage(err)
	}
	if uint64(h.Length) > uint64(r.limit) {
		return Header{}, fmt.Errorf("%w: payload of %d bytes, limit %d", ErrTooLarge, h.Length, r.limit)
	}
	if h.Length > ChunkSize && (h.Flags&FlagMore == 0 || h.Kind == KindChunk) {
		return Header{}, fmt.Errorf("%w: %v frame of %d bytes in one piece", ErrProtocol, h.Kind, h.Length)
	}
	_, err = r.in.Discard(HeaderSize)
	return h, err
}

// prefix reports whether b may be the start of a header, as far as it can be told without its checksum.
func (r *Reader) prefix(b []byte) bool {
	return len(b) <= 4 || b[4] == headerVersion
}

// garbage adds to err the bytes that caused it, escaped.
func (r *Reader) garbage(err error) error {
	b, _ := r.in.Peek(min(quoteMax, r.in.Buffered()))
	return fmt.Errorf("%w: %q", err, b)
}

// single reads the payload of a frame that is a whole message.
func (r *Reader) single(h Header) (Header, []byte, error) {
	size := int(h.Length)
	if size <= viewMax {
		b, err := r.in.Peek(size)
		if err != nil {
			return Header{}, nil, broken(err)
		}
		r.owned = false
		_, err = r.in.Discard(size) // the bytes stay until the buffer is filled again, by the next Next
		return h, b, err
	}
	b := r.lent(h, size)
	if b == nil {
		b = make([]byte, size)
	}
	if err := r.fill(b); err != nil {
		return Header{}, nil, err
	}
	r.owned = true
	return h, b, nil
}

// begin starts a payload in pieces and reads the first.
func (r *Reader) begin(h Header) error {
	if h.Length <= ChunkSize {
		return fmt.Errorf("%w: %v frame announces %d bytes in pieces", ErrProtocol, h.Kind, h.Length)
	}
	h.Flags &^= FlagMore
	r.cut, r.head, r.total = true, h, int(h.Length)
	if b := r.lent(h, r.total); b != nil {
		r.part = b[:0]
	} else {
		r.part = make([]byte, 0, min(r.total, firstGrant))
	}
	return r.take(ChunkSize)
}

// chunk reads a further piece and reports whether it was the last.
func (r *Reader) chunk(h Header) (bool, error) {
	size := int(h.Length)
	last := h.Flags&FlagMore == 0
	switch {
	case !r.cut || h.Request != r.head.Request:
		return false, fmt.Errorf("%w: Chunk frame of request %d without a beginning", ErrProtocol, h.Request)
	case size == 0:
		return false, fmt.Errorf("%w: empty Chunk frame", ErrProtocol)
	case size > r.total-len(r.part) || last != (size == r.total-len(r.part)):
		return false, fmt.Errorf("%w: pieces do not add up to %d bytes", ErrProtocol, r.total)
	}
	return last, r.take(size)
}

// take reads n further bytes of the payload under way. Memory follows what has come, not what was announced.
func (r *Reader) take(n int) error {
	have := len(r.part)
	if have+n > cap(r.part) {
		grown := make([]byte, have, min(r.total, growth*(have+n)))
		copy(grown, r.part)
		r.part = grown
	}
	r.part = r.part[:have+n]
	return r.fill(r.part[have:])
}

func (r *Reader) finish() (Header, []byte, error) {
	h, b := r.head, r.part
	r.cut, r.head, r.part, r.total = false, Header{}, nil, 0
	r.owned = true
	return h, b, nil
}

func (r *Reader) lent(h Header, size int) []byte {
	if r.Lend == nil {
		return nil
	}
	b := r.Lend(h, size)
	if len(b) < size {
		return nil
	}
	return b[:size:size]
}

func (r *Reader) fill(b []byte) error {
	if _, err := io.ReadFull(r.in, b); err != nil {
		return broken(err)
	}
	return nil
}

// broken tells an end inside a message, which is the peer's fault, from other failures to read.
func broken(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %w inside a message", ErrProtocol, io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("supervisor: read: %w", err)
}
