package wire

import (
	"fmt"
	"reflect"
)

// gobTypes are the definitions of one gob stream, and what they mean for the Go types that its values go to.
type gobTypes struct {
	defs  map[int64]*gobDef
	nodes map[gobNodeKey]*gobNode
	bytes int // of all definitions
}

type gobNodeKey struct {
	id  int64
	typ reflect.Type // nil: gob skips the value
}

// gobNode is a type of the stream together with the Go type that takes its values. What it refers to is resolved when
// it is first met: definitions may refer to each other in circles and without end.
type gobNode struct {
	id      int64
	def     *gobDef      // nil for gob's own types
	typ     reflect.Type // without pointers; nil: skipped
	pointee int64        // memory behind the pointers to typ
	elem    *gobNode
	key     *gobNode
	fields  []*gobNode
}

func newGobTypes() *gobTypes {
	return &gobTypes{defs: make(map[int64]*gobDef), nodes: make(map[gobNodeKey]*gobNode)}
}

// node returns the node of the type id and the Go type t.
func (s *gobTypes) node(id int64, t reflect.Type) (*gobNode, error) {
	key := gobNodeKey{id, t}
	if n := s.nodes[key]; n != nil {
		return n, nil
	}
	n := &gobNode{id: id, typ: t}
	for n.typ != nil && n.typ.Kind() == reflect.Pointer {
		n.typ = n.typ.Elem()
		n.pointee += int64(n.typ.Size())
	}
	if id < gobBool || id > gobInterface {
		if n.def = s.defs[id]; n.def == nil {
			return nil, fmt.Errorf("%w: type %d is not defined", errGob, id)
		}
		if n.def.kind == gobStruct {
			n.fields = make([]*gobNode, len(n.def.fields))
		}
	}
	s.nodes[key] = n
	return n, nil
}

// elemOf returns the node of the elements of n, a slice, array or map.
func (s *gobTypes) elemOf(n *gobNode) (_ *gobNode, err error) {
	if n.elem == nil {
		n.elem, err = s.node(n.def.elem, n.part(func(t reflect.Type) reflect.Type { return t.Elem() }))
	}
	return n.elem, err
}

// keyOf returns the node of the keys of the map n.
func (s *gobTypes) keyOf(n *gobNode) (_ *gobNode, err error) {
	if n.key == nil {
		n.key, err = s.node(n.def.key, n.part(reflect.Type.Key))
	}
	return n.key, err
}

// fieldOf returns the node of a field of the struct n. Gob matches fields by name.
func (s *gobTypes) fieldOf(n *gobNode, i uint64) (_ *gobNode, err error) {
	if n.fields[i] == nil {
		def := n.def.fields[i]
		n.fields[i], err = s.node(def.id, n.part(func(t reflect.Type) reflect.Type {
			if f, ok := t.FieldByName(def.name); ok && f.IsExported() {
				return f.Type
			}
			return nil
		}))
	}
	return n.fields[i], err
}

var gobKindOf = [...]reflect.Kind{
	gobArray: reflect.Array, gobSlice: reflect.Slice, gobStruct: reflect.Struct, gobMap: reflect.Map,
	gobMethods: reflect.Invalid,
}

// part returns a part of the Go type of n, if that has the kind of the definition. If not, gob will refuse the value.
func (n *gobNode) part(f func(reflect.Type) reflect.Type) reflect.Type {
	if n.typ == nil {
		return nil
	}
	if n.typ.Kind() != gobKindOf[n.def.kind] {
		return nil
	}
	return f(n.typ)
}

// size returns the memory of a value where it lies, without what it refers to.
func (n *gobNode) size() int64 {
	switch {
	case n.typ == nil:
		return 0
	case n.pointee > 0:
		return 8
	}
	return int64(n.typ.Size())
}
