package wire

import "fmt"

// skip steps over the next value. For each value of the shared gob stream it calls visit, if not nil, with the place
// and the bytes.
func (c *cursor) skip(visit func(at int, section []byte)) {
	type level struct {
		left int  // values still to come
		dict bool // a key stands before each
	}
	var first [4]level
	open := append(first[:0], level{left: 1})
	for len(open) > 0 && c.err == nil {
		top := &open[len(open)-1]
		if top.left == 0 {
			open = open[:len(open)-1]
			continue
		}
		top.left--
		if top.dict {
			c.bytes()
		}
		n, dict := c.skipOne(visit)
		if n > 0 {
			open = append(open, level{n, dict})
		}
		if len(open) > MaxDepth+1 {
			c.fail(fmt.Errorf("nested more than %d deep", MaxDepth))
		}
	}
}

// skipOne steps over a value, up to the values that it holds, if it is a list or a dict, whose number it returns.
func (c *cursor) skipOne(visit func(at int, section []byte)) (inside int, dict bool) {
	t := c.byte()
	for t == tagPointer || t == tagTyped { // another value follows
		if t == tagTyped {
			c.bytes()
		}
		t = c.byte()
	}
	switch t {
	case tagNil, tagZero, tagEmpty, tagFalse, tagTrue:
	case tagInt, tagInt8, tagInt16, tagInt32, tagInt64, tagUint, tagUint8, tagUint16, tagUint32, tagUint64, tagUintptr:
		c.uvarint()
	case tagString, tagBytes, tagMethods, tagGobOwn:
		c.bytes()
	case tagStrings:
		for n := c.count(1); n > 0 && c.err == nil; n-- {
			c.bytes()
		}
	case tagList:
		return c.count(1), false
	case tagDict:
		return c.count(2), true
	case tagGobShared:
		at := c.pos
		if section := c.bytes(); c.err == nil && visit != nil {
			visit(at, section)
		}
	default:
		c.skipNumbers(t)
	}
	return 0, false
}

// skipNumbers steps over numbers of a fixed size: one, or a slice of them.
func (c *cursor) skipNumbers(t tag) {
	typ := naturalType(t)
	switch {
	case typ == nil:
		if c.err == nil {
			c.fail(fmt.Errorf("tag %#02x", t))
		}
	case scalar(typ.Kind()):
		c.next(scalars[typ.Kind()].size)
	default:
		size := scalars[typ.Elem().Kind()].size
		c.next(c.count(size) * size)
	}
}

// Count returns the number of values in body, which is what follows a prefix. The error is [ErrDecode].
func Count(body []byte) (int, error) {
	c := cursor{b: body}
	n := 0
	for ; c.left() > 0 && c.err == nil; n++ {
		c.skip(nil)
	}
	if c.err != nil {
		return 0, fmt.Errorf("%w: value %d: %w", ErrDecode, n-1, c.err)
	}
	return n, nil
}
