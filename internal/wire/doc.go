// Package wire describes and codes the bytes that a host and its worker processes exchange: frames, values, errors
// and the messages of the handshake. PROTOCOL.md beside this file is the description; this is its implementation.
//
// The package holds bytes only. It starts no goroutine, opens nothing, reads no clock and keeps no state outside the
// values that it hands out, so that its users decide who writes, who reads and for how long.
//
// # Frames
//
// A [Reader] returns one message at a time, whole, however it was cut; [Pieces] and [AppendFrame] are its counterpart.
// What a [Reader] returns without [Reader.Owned] is a view into its buffer.
//
// # Values
//
// Values are coded by their static types. A [Codec], made once per type by [CodecOf], knows how. The sending side
// runs [Prepare] on the caller's goroutine, where user code may run, and [Encoder.Finish] under the connection's send
// lock, where it may not. The receiving side calls [Decoder.Values] on its reader; what may run user code comes back
// as a [*Deferred], to be decoded on another goroutine.
//
// # Trust
//
// The peer is our own code, which may be confused or broken, but is not hostile. Its bytes are checked all the same:
// lengths and counts against what is left, nesting against [MaxDepth], the memory a value takes once decoded against
// [MemoryFactor] times the frame limit.
package wire
