package wire

import (
	"fmt"
	"reflect"
)

const (
	// gobDepth bounds the nesting of gob values of any type. It is above what a sender may send.
	gobDepth = 2*MaxDepth + 16

	// gobDefsMax bounds the definitions of one stream, in bytes.
	gobDefsMax = 8 << 20

	mapOverhead = 16 // memory per entry of a map, besides key and element
	anyOverhead = 16
)

// gobScan walks through gob bytes as gob's decoder will, and refuses what would make that allocate without bounds,
// overflow its stack or loop: counts that the bytes cannot hold, deep nesting, more memory than the budget.
type gobScan struct {
	gobCursor        // the message being read
	rest      []byte // the messages after it
	types     *gobTypes
	reg       *Registry
	budget    *budget
	depth     int
}

// message goes on to the next message.
func (s *gobScan) message() {
	c := gobCursor{cursor{b: s.rest}}
	b := c.next(c.length())
	if c.err != nil {
		s.fail(c.err)
		return
	}
	s.rest = s.rest[c.pos:]
	s.b, s.pos = b, 0
}

// define reads the definition of the type id.
func (s *gobScan) define(id int64) {
	start := s.pos
	d := s.definition()
	switch {
	case s.err != nil:
		return
	case id < gobFirstID || s.types.defs[id] != nil:
		s.fail(fmt.Errorf("%w: type %d is defined again", errGob, id))
		return
	}
	if s.types.bytes += s.pos - start; s.types.bytes > gobDefsMax {
		s.fail(fmt.Errorf("%w: more than %d bytes of type definitions", errGob, gobDefsMax))
		return
	}
	s.types.defs[id] = d
}

// typeID reads definitions up to the type id of a value.
func (s *gobScan) typeID(inInterface bool) int64 {
	for s.err == nil {
		if s.left() == 0 {
			s.message()
		}
		id := s.int()
		if s.err != nil {
			return 0
		}
		if id >= 0 {
			return id
		}
		s.define(-id)
		if s.left() > 0 && s.err == nil {
			if !inInterface {
				s.fail(fmt.Errorf("%w: data after a type definition", errGob))
			}
			s.uint() // the length of the message that follows in place
		}
	}
	return 0
}

// scan walks through section, which holds definitions and one value for the Go type t, and no more.
func (s *gobScan) scan(section []byte, t reflect.Type) error {
	s.rest = section
	id := s.typeID(false)
	s.budget.take(int64(t.Size()))
	s.top(id, t)
	if s.err == nil && s.left()+len(s.rest) > 0 {
		s.fail(fmt.Errorf("%w: %d bytes after the value", errGob, s.left()+len(s.rest)))
	}
	if s.err == nil {
		s.fail(s.budget.err())
	}
	return s.err
}

// top walks through a value that stands by itself: a zero goes before what is no struct.
func (s *gobScan) top(id int64, t reflect.Type) {
	n := s.node(s.types.node(id, t))
	if n == nil {
		return
	}
	if n.def == nil || n.def.kind != gobStruct {
		if s.uint() != 0 {
			s.fail(errGob)
		}
	}
	s.value(n)
}

func (s *gobScan) node(n *gobNode, err error) *gobNode {
	if err != nil {
		s.fail(err)
		return nil
	}
	return n
}

func (s *gobScan) value(n *gobNode) {
	if s.err != nil {
		return
	}
	if n.pointee > 0 && !s.take(n.pointee) {
		return
	}
	if n.def != nil {
		if s.depth++; s.depth > gobDepth {
			s.fail(fmt.Errorf("%w: nested more than %d deep", errGob, gobDepth))
			return
		}
		s.defined(n)
		s.depth--
		return
	}
	switch n.id {
	case gobBool, gobInt, gobUint, gobFloat:
		s.uint()
	case gobComplex:
		s.uint()
		s.uint()
	case gobBytes, gobString:
		size := s.length()
		s.take(int64(size))
		s.next(size)
	case gobInterface:
		s.dynamic(n)
	}
}

func (s *gobScan) defined(n *gobNode) {
	switch n.def.kind {
	case gobStruct:
		s.structure(uint64(len(n.fields)), func(i uint64) {
			if f := s.node(s.types.fieldOf(n, i)); f != nil {
				s.value(f)
			}
		})
	case gobSlice, gobArray:
		count := s.length()
		if n.def.kind == gobArray && uint64(count) != n.def.length {
			s.fail(fmt.Errorf("%w: array of wrong length", errGob))
		}
		elem := s.node(s.types.elemOf(n))
		if elem == nil || n.def.kind == gobSlice && !s.take(int64(count)*elem.size()) {
			return
		}
		for ; count > 0 && s.err == nil; count-- {
			s.value(elem)
		}
	case gobMap:
		s.entries(n)
	default:
		s.next(s.length())
	}
}

func (s *gobScan) entries(n *gobNode) {
	count := s.length()
	if s.err == nil && count > s.left()/2 {
		s.fail(fmt.Errorf("%w: map of %d entries in %d bytes", errGob, count, s.left()))
		return
	}
	key, elem := s.node(s.types.keyOf(n)), s.node(s.types.elemOf(n))
	if key == nil || elem == nil || n.typ != nil && !s.take(int64(count)*(key.size()+elem.size()+mapOverhead)) {
		return
	}
	for ; count > 0 && s.err == nil; count-- {
		s.value(key)
		s.value(elem)
	}
}

// dynamic walks through a value in an interface: name, definitions, type id, length, value.
func (s *gobScan) dynamic(n *gobNode) {
	name := s.text()
	if n.typ == nil { // gob skips it so, by its length, also where the name is empty
		s.typeID(true)
		s.next(s.length())
		return
	}
	if name == "" || s.err != nil {
		return
	}
	t, ok := s.reg.gobType(name)
	if !ok {
		s.fail(fmt.Errorf("type %q in an interface is not registered", name))
		return
	}
	id := s.typeID(true)
	s.uint()
	if !s.take(int64(t.Size()) + anyOverhead) {
		return
	}
	if s.depth++; s.depth > gobDepth {
		s.fail(fmt.Errorf("%w: nested more than %d deep", errGob, gobDepth))
		return
	}
	s.top(id, t)
	s.depth--
}

// take takes n bytes from the budget.
func (s *gobScan) take(n int64) bool {
	s.budget.take(n)
	if err := s.budget.err(); err != nil {
		s.fail(err)
		return false
	}
	return s.err == nil
}

// absorb takes the definitions in section and leaves its value alone. It returns the length of the messages that
// were taken, which on an error are those before it.
func (s *gobScan) absorb(section []byte) (int, error) {
	s.rest = section
	for {
		before := len(section) - len(s.rest)
		s.message()
		id := s.int()
		if s.err != nil || id >= 0 {
			return before, s.err
		}
		s.define(-id)
		if s.err == nil && s.left() > 0 {
			s.fail(fmt.Errorf("%w: data after a type definition", errGob))
		}
		if s.err != nil {
			return before, s.err
		}
	}
}
