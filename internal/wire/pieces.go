package wire

import (
	"fmt"
	"iter"
	"math"
)

const (
	// ChunkSize is the largest piece of a payload that one frame carries, in bytes. Both sides must agree on it, it
	// belongs to the protocol.
	ChunkSize = 256 << 10

	// DefaultLimit is the largest payload that a connection takes if nothing else is said, in bytes.
	DefaultLimit = 512 << 20
)

// AppendFrame appends to dst a whole frame: h with its length set, and body. It panics if the body is larger than
// [ChunkSize]; that is for [Pieces].
func AppendFrame(dst []byte, h Header, body []byte) []byte {
	if len(body) > ChunkSize {
		panic(fmt.Sprintf("wire: frame of %d bytes", len(body)))
	}
	h.Length = uint32(len(body))
	return append(h.Append(dst), body...)
}

// Pieces yields the frames that carry body as the payload of one message: for each the bytes of the header and the
// piece of body behind it, which is not copied. Between two frames the caller may write control frames, but no other
// message. A body that fits in one frame gives one. Pieces panics if body has more than 4 GiB.
func Pieces(h Header, body []byte) iter.Seq2[[HeaderSize]byte, []byte] {
	if uint64(len(body)) > math.MaxUint32 {
		panic(fmt.Sprintf("wire: payload of %d bytes", len(body)))
	}
	return func(yield func([HeaderSize]byte, []byte) bool) {
		h.Length = uint32(len(body)) // the whole: so the receiver knows the size with the first frame
		rest := body
		for first := true; first || len(rest) > 0; first = false {
			piece := rest[:min(len(rest), ChunkSize)]
			rest = rest[len(piece):]
			if !first {
				h = Header{Length: uint32(len(piece)), Kind: KindChunk, Request: h.Request}
			}
			h.Flags &^= FlagMore
			if len(rest) > 0 {
				h.Flags |= FlagMore
			}
			var head [HeaderSize]byte
			h.Append(head[:0])
			if !yield(head, piece) {
				return
			}
		}
	}
}
