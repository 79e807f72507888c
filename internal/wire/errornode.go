package wire

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// Limits of an error on the wire, in bytes and in nodes.
const (
	errorMax      = 64 << 10
	errorTextMax  = 8 << 10
	errorStackMax = 32 << 10
	errorNodes    = 64
	errorDepth    = 16

	// nodeMin is what a node takes with all its fields empty, nodeRoom what it takes at most besides the contents of
	// its fields: lengths and marks of cut texts.
	nodeMin  = 6
	nodeRoom = nodeMin*binary.MaxVarintLen32 + 3*len(truncated)

	truncated = "… (truncated)"
)

// ErrorNode is an error as data: one error of a tree.
type ErrorNode struct {
	Text  string      // what its Error method says
	Type  string      // its Go type
	Name  string      // under which the sentinel or the type was registered, or empty
	Data  []byte      // the value of a registered type
	Stack string      // of a panic
	Kids  []ErrorNode // the errors that it wraps
}

// AppendError appends n to dst, cut to the limits of the protocol. Whatever is cut says so.
func AppendError(dst []byte, n ErrorNode) []byte {
	w := nodeWriter{dst: dst, left: errorMax, nodes: errorNodes - 1}
	w.left -= nodeRoom
	w.append(n, 1)
	return w.dst
}

// nodeWriter appends the nodes of one error. The room of a node is taken from left before it is appended, so that a
// node that was counted as a child always fits.
type nodeWriter struct {
	dst   []byte
	left  int // bytes
	nodes int
}

func (w *nodeWriter) append(n ErrorNode, depth int) {
	kids := n.Kids
	if depth == errorDepth {
		kids = nil
	}
	kids = kids[:min(len(kids), w.nodes, max(0, w.left/nodeRoom))]
	w.nodes -= len(kids)
	w.left -= len(kids) * nodeRoom
	w.text(n.Text, errorTextMax, len(kids) < len(n.Kids))
	w.text(n.Type, errorTextMax, false)
	name, data := n.Name, n.Data
	if len(name)+len(data) > w.left {
		name, data = "", nil // a part of a value is worth nothing, and a name promises its value
	}
	w.left -= len(name) + len(data)
	w.dst = appendString(w.dst, name)
	w.dst = appendString(w.dst, data)
	w.text(n.Stack, errorStackMax, false)
	w.dst = binary.AppendUvarint(w.dst, uint64(len(kids)))
	for _, k := range kids {
		w.append(k, depth+1)
	}
}

// text appends s, cut so that with a mark it keeps to limit, and to what is left. A text that is cut, or that must
// speak for something else that was, ends with the mark.
func (w *nodeWriter) text(s string, limit int, mark bool) {
	if room := min(limit-len(truncated), w.left); len(s) > room {
		s, mark = s[:cutAt(s, room)], true
	}
	w.left -= len(s)
	if mark {
		w.dst = binary.AppendUvarint(w.dst, uint64(len(s)+len(truncated)))
		w.dst = append(append(w.dst, s...), truncated...)
		return
	}
	w.dst = appendString(w.dst, s)
}

// cutAt returns the largest place up to n where s can be cut without splitting a character.
func cutAt(s string, n int) int {
	for i := n; i > 0 && i > n-utf8.UTFMax; i-- {
		if utf8.RuneStart(s[i]) {
			return i
		}
	}
	return n
}

// ParseError reads an error that takes all of b; it holds no views of b. The error is [ErrProtocol].
func ParseError(b []byte) (ErrorNode, error) {
	c := cursor{b: b}
	if len(b) > errorMax {
		return ErrorNode{}, fmt.Errorf("%w: error of %d bytes", ErrProtocol, len(b))
	}
	n := parseNode(&c, new(int), 0)
	if c.err == nil && c.left() > 0 {
		c.fail(fmt.Errorf("is followed by %d bytes", c.left()))
	}
	if c.err != nil {
		return ErrorNode{}, fmt.Errorf("%w: error message %w", ErrProtocol, c.err)
	}
	return n, nil
}

func parseNode(c *cursor, nodes *int, depth int) ErrorNode {
	if *nodes++; *nodes > errorNodes || depth >= errorDepth {
		c.fail(fmt.Errorf("has more than %d nodes or %d levels", errorNodes, errorDepth))
		return ErrorNode{}
	}
	n := ErrorNode{Text: c.string(), Type: c.string(), Name: c.string()}
	if data := c.bytes(); len(data) > 0 {
		n.Data = append([]byte(nil), data...)
	}
	n.Stack = c.string()
	for k := c.count(nodeMin); k > 0 && c.err == nil; k-- {
		n.Kids = append(n.Kids, parseNode(c, nodes, depth+1))
	}
	return n
}
