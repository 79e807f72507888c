package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

var (
	errShort  = errors.New("ends too early")
	errVarint = errors.New("bad variable-length integer")
)

// appendString appends the length of s and s itself.
func appendString[S string | []byte](dst []byte, s S) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

// appendBool appends a byte 1 or 0.
func appendBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// cursor reads through bytes. Its first error stays, and from then on it returns zero values, so that a sequence
// of fields needs one check at the end.
type cursor struct {
	b   []byte
	pos int
	err error
}

func (c *cursor) left() int { return len(c.b) - c.pos }

func (c *cursor) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// next returns the next n bytes as a view.
func (c *cursor) next(n int) []byte {
	if c.err != nil {
		return nil
	}
	if n < 0 || n > c.left() {
		c.fail(errShort)
		return nil
	}
	c.pos += n
	return c.b[c.pos-n : c.pos : c.pos]
}

func (c *cursor) byte() byte {
	if c.err != nil || c.pos >= len(c.b) {
		c.fail(errShort)
		return 0
	}
	c.pos++
	return c.b[c.pos-1]
}

func (c *cursor) uint16() uint16 {
	if b := c.next(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (c *cursor) uint32() uint32 {
	if b := c.next(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) uint64() uint64 {
	if b := c.next(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (c *cursor) uvarint() uint64 {
	if c.err != nil {
		return 0
	}
	v, n := binary.Uvarint(c.b[c.pos:])
	switch {
	case n == 0:
		c.fail(errShort)
		return 0
	case n < 0 || n > 1 && c.b[c.pos+n-1] == 0: // longer than needed: one value has one form
		c.fail(errVarint)
		return 0
	}
	c.pos += n
	return v
}

func (c *cursor) varint() int64 {
	u := c.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// count reads the number of elements that follow, each of at least size bytes.
func (c *cursor) count(size int) int {
	n := c.uvarint()
	if c.err == nil && n > uint64(c.left()/size) {
		c.fail(fmt.Errorf("%d elements in %d bytes", n, c.left()))
		return 0
	}
	return int(n)
}

// bytes reads a length and returns that many bytes as a view.
func (c *cursor) bytes() []byte { return c.next(c.count(1)) }

// string is like bytes, but returns a copy.
func (c *cursor) string() string { return string(c.bytes()) }

// bounded reads a number that must fit in an int.
func (c *cursor) bounded() int {
	n := c.uvarint()
	if int(n) < 0 || uint64(int(n)) != n {
		c.fail(fmt.Errorf("number %d out of range", n))
		return 0
	}
	return int(n)
}
