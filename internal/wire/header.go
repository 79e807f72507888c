package wire

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

const (
	// HeaderSize is the length of a frame's header in bytes.
	HeaderSize = 24

	// Version is the newest protocol version that this package speaks.
	Version = 1

	// MinVersion is the oldest protocol version that this package speaks.
	MinVersion = 1

	// headerVersion is in byte 4 of each header. It changes only if the header itself changes.
	headerVersion = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Header is the fixed part of a frame.
type Header struct {
	// Length is the number of payload bytes. With [FlagMore] on any kind but Chunk it is the size of the whole
	// payload, of which the frame carries the first [ChunkSize] bytes.
	Length  uint32
	Kind    Kind
	Flags   Flags
	Request uint64 // number of the request that the frame is about, or 0
	Stream  uint16 // number of the gob stream of this direction, see Encoder
	Method  uint16 // index in the method table of the handshake
}

// Append appends the header's bytes to dst. It takes all fields as they are.
func (h Header) Append(dst []byte) []byte {
	start := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, h.Length)
	dst = append(dst, headerVersion, byte(h.Kind))
	dst = binary.LittleEndian.AppendUint16(dst, uint16(h.Flags))
	dst = binary.LittleEndian.AppendUint64(dst, h.Request)
	dst = binary.LittleEndian.AppendUint16(dst, h.Stream)
	dst = binary.LittleEndian.AppendUint16(dst, h.Method)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// ParseHeader reads a header from the first [HeaderSize] bytes of b. The error is [ErrVersion] if the header is sound
// but of another version, else [ErrProtocol]: too few bytes, a wrong checksum, an unknown kind, or a flag that the
// kind does not have.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < HeaderSize {
		return Header{}, fmt.Errorf("%w: header of %d bytes", ErrProtocol, len(b))
	}
	// The checksum comes first: without it, all other findings would be about garbage.
	if crc32.Checksum(b[:HeaderSize-4], castagnoli) != binary.LittleEndian.Uint32(b[HeaderSize-4:]) {
		return Header{}, fmt.Errorf("%w: bad header checksum", ErrProtocol)
	}
	if b[4] != headerVersion {
		return Header{}, fmt.Errorf("%w: frame of version %d, this side knows %d", ErrVersion, b[4], headerVersion)
	}
	h := Header{
		Length:  binary.LittleEndian.Uint32(b),
		Kind:    Kind(b[5]),
		Flags:   Flags(binary.LittleEndian.Uint16(b[6:])),
		Request: binary.LittleEndian.Uint64(b[8:]),
		Stream:  binary.LittleEndian.Uint16(b[16:]),
		Method:  binary.LittleEndian.Uint16(b[18:]),
	}
	allowed, known := h.Kind.flags()
	if !known {
		return Header{}, fmt.Errorf("%w: unknown frame kind %d", ErrProtocol, b[5])
	}
	if extra := h.Flags &^ allowed; extra != 0 {
		return Header{}, fmt.Errorf("%w: %v frame with unknown flags %#x", ErrProtocol, h.Kind, uint16(extra))
	}
	return h, nil
}
