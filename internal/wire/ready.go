package wire

import (
	"encoding/binary"
	"fmt"
	"math"
)

// MaxMethods is the largest number of entries of a method table.
const MaxMethods = math.MaxUint16

// MethodDesc describes one entry of a worker's method table.
type MethodDesc struct {
	Name     string
	Field    bool     // an exported field: it can be read only
	Context  bool     // takes a context, which is not in In
	Variadic bool     // the last of In is the type of the slice
	In       []string // type texts of the parameters
	Out      string   // type text of the result, empty without one
}

// Ready is the worker's answer when it serves.
type Ready struct {
	Version int          // the protocol version that both speak from now on
	Methods []MethodDesc // a method's number is its place; at most MaxMethods
	Handles bool         // the object dispatches by itself: other names are welcome
}

const (
	descField = 1 << iota
	descContext
	descVariadic
)

// Append appends the message to dst.
func (m Ready) Append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint16(dst, uint16(m.Version))
	dst = appendBool(dst, m.Handles)
	dst = binary.AppendUvarint(dst, uint64(len(m.Methods)))
	for _, d := range m.Methods {
		var bits byte
		if d.Field {
			bits |= descField
		}
		if d.Context {
			bits |= descContext
		}
		if d.Variadic {
			bits |= descVariadic
		}
		dst = append(appendString(dst, d.Name), bits)
		dst = binary.AppendUvarint(dst, uint64(len(d.In)))
		for _, in := range d.In {
			dst = appendString(dst, in)
		}
		dst = appendString(dst, d.Out)
	}
	return dst
}

// ParseReady reads a Ready. The error is [ErrProtocol], or [ErrVersion] if the worker chose a version that this
// program does not speak.
func ParseReady(b []byte) (Ready, error) {
	c := cursor{b: b}
	m := Ready{Version: int(c.uint16()), Handles: c.byte() == 1}
	const least = 4 // bytes of the shortest entry
	n := c.count(least)
	if n > MaxMethods {
		c.fail(fmt.Errorf("has %d methods", n))
	}
	for i := 0; i < n && c.err == nil; i++ {
		m.Methods = append(m.Methods, parseDesc(&c))
	}
	if c.err != nil {
		return Ready{}, fmt.Errorf("%w: Ready message %w", ErrProtocol, c.err)
	}
	if m.Version < MinVersion || m.Version > Version {
		return Ready{}, fmt.Errorf("%w: the worker chose %d, the host speaks %d to %d", ErrVersion, m.Version, MinVersion, Version)
	}
	return m, nil
}

func parseDesc(c *cursor) MethodDesc {
	d := MethodDesc{Name: c.string()}
	bits := c.byte()
	d.Field, d.Context, d.Variadic = bits&descField != 0, bits&descContext != 0, bits&descVariadic != 0
	for n := c.count(1); n > 0 && c.err == nil; n-- {
		d.In = append(d.In, c.string())
	}
	d.Out = c.string()
	return d
}
