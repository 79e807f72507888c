package wire

import "errors"

// The root package re-exports these values under the same names; their texts speak for the whole library.
var (
	// ErrProtocol says that the bytes received are no message of this protocol, or that the message may not come now.
	// The connection cannot be used any further.
	ErrProtocol = errors.New("supervisor: protocol error")

	// ErrTooLarge says that a message or a value exceeds a limit.
	ErrTooLarge = errors.New("supervisor: message too large")

	// ErrVersion says that both sides have no protocol version in common.
	ErrVersion = errors.New("supervisor: protocol versions differ")

	// ErrEncode says that a value cannot cross to another process.
	ErrEncode = errors.New("supervisor: value cannot be encoded")

	// ErrDecode says that a received value cannot be decoded. It concerns that value alone.
	ErrDecode = errors.New("supervisor: value cannot be decoded")
)
