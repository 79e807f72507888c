package wire

import (
	"errors"
	"fmt"
)

// The ids of gob's own types, and the first id of others.
const (
	gobBool      = 1
	gobInt       = 2
	gobUint      = 3
	gobFloat     = 4
	gobBytes     = 5
	gobString    = 6
	gobComplex   = 7
	gobInterface = 8
	gobFirstID   = 64
)

var errGob = errors.New("bad gob")

// gobDef is a type definition of a gob stream.
type gobDef struct {
	kind   gobKind
	elem   int64 // array, slice, map
	key    int64 // map
	length uint64
	fields []gobField // struct
}

type gobField struct {
	name string
	id   int64
}

// gobKind is a kind of definition. The numbers are those of the fields of gob's wireType.
type gobKind uint8

const (
	gobArray   gobKind = 0
	gobSlice   gobKind = 1
	gobStruct  gobKind = 2
	gobMap     gobKind = 3
	gobMethods gobKind = 4 // and 5, 6: GobEncoder, BinaryMarshaler, TextMarshaler
	gobKinds           = 7
)

// gobCursor reads the primitives of gob. Like cursor, it keeps its first error.
type gobCursor struct{ cursor }

// uint reads an unsigned number: one byte up to 127, or a negated length and that many bytes, high ones first.
func (c *gobCursor) uint() uint64 {
	b := c.byte()
	if b <= 0x7f {
		return uint64(b)
	}
	n := -int(int8(b))
	if n > 8 {
		c.fail(errGob)
		return 0
	}
	var u uint64
	for _, b := range c.next(n) {
		u = u<<8 | uint64(b)
	}
	return u
}

func (c *gobCursor) int() int64 {
	u := c.uint()
	if u&1 != 0 {
		return ^int64(u >> 1)
	}
	return int64(u >> 1)
}

// length reads the size of what follows, in bytes or in elements: each takes one byte at least.
func (c *gobCursor) length() int {
	n := c.uint()
	if n > uint64(c.left()) {
		c.fail(fmt.Errorf("%w: %d elements in %d bytes", errGob, n, c.left()))
		return 0
	}
	return int(n)
}

func (c *gobCursor) text() string { return string(c.next(c.length())) }

// structure reads a struct: for each field that is there its number, which f must consume.
func (c *gobCursor) structure(fields uint64, f func(field uint64)) {
	for next := uint64(0); c.err == nil; {
		delta := c.uint()
		if delta == 0 {
			return
		}
		if delta > fields || next+delta > fields {
			c.fail(fmt.Errorf("%w: field out of range", errGob))
			return
		}
		next += delta
		f(next - 1)
	}
}

// definition reads gob's wireType: a struct with one field that is not nil.
func (c *gobCursor) definition() *gobDef {
	var d *gobDef
	c.structure(gobKinds, func(kind uint64) {
		if d != nil {
			c.fail(fmt.Errorf("%w: type defined twice over", errGob))
			return
		}
		d = &gobDef{kind: min(gobKind(kind), gobMethods)}
		c.details(d)
	})
	if d == nil {
		c.fail(fmt.Errorf("%w: empty type definition", errGob))
	}
	return d
}

// details reads one of arrayType, sliceType, structType, mapType, gobEncoderType. The first field of each is its
// name and id.
func (c *gobCursor) details(d *gobDef) {
	fields := [...]uint64{gobArray: 3, gobSlice: 2, gobStruct: 2, gobMap: 3, gobMethods: 1}[d.kind]
	c.structure(fields, func(field uint64) {
		switch {
		case field == 0:
			c.structure(2, func(field uint64) {
				if field == 0 {
					c.text()
				} else {
					c.int()
				}
			})
		case d.kind == gobStruct:
			for n := c.length(); n > 0 && c.err == nil; n-- {
				d.fields = append(d.fields, c.field())
			}
		case d.kind == gobMap && field == 1:
			d.key = c.int()
		case d.kind == gobArray && field == 2:
			d.length = uint64(c.int())
		default:
			d.elem = c.int()
		}
	})
}

func (c *gobCursor) field() (f gobField) {
	c.structure(2, func(field uint64) {
		if field == 0 {
			f.name = c.text()
		} else {
			f.id = c.int()
		}
	})
	return f
}
