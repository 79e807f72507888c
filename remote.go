package supervisor

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/workerlink/supervisor/internal/wire"
)

var (
	errContextCanceled = context.Canceled
	errContextDeadline = context.DeadlineExceeded
)

// Marks in an ErrorNode's Type for the errors that are ours, not a handler's.
const (
	nodePanic   = "supervisor.PanicError"
	nodeLibrary = "supervisor" // a sentinel of ours with a text, such as ErrBadArgs
)

// toNode is err as data. It may run user code: Error methods and codecs.
func toNode(err error) wire.ErrorNode {
	if e, ok := err.(*libraryError); ok { //nolint:errorlint // the outermost error decides, not one that it wraps
		name, _ := knownErrors.sentinel(e.is)
		return wire.ErrorNode{Text: e.text, Type: nodeLibrary, Name: name}
	}
	node, _ := new(errorWalk).node(err, 0)
	return node
}

// Limits of a walk through an error's chain, which may be a graph of any size.
const (
	maxErrorDepth = 12
	maxErrors     = 128
)

// errorWalk is one such walk.
type errorWalk struct{ seen int }

// node reports whether anything in err's chain is registered: only such
// branches are kept below the outermost error.
func (w *errorWalk) node(err error, depth int) (wire.ErrorNode, bool) {
	if fatal, ok := err.(*fatalError); ok { //nolint:errorlint // only its outside is ours
		return w.node(fatal.error, depth)
	}
	w.seen++
	if p, ok := err.(*PanicError); ok { //nolint:errorlint // this one, not one that it wraps
		return wire.ErrorNode{Text: p.Value, Type: nodePanic, Stack: p.Stack, Kids: w.kids(p.causes, depth)}, true
	}
	t := reflect.TypeOf(err)
	node := wire.ErrorNode{Text: errorText(err), Type: wire.TypeText(t)}
	if name, ok := knownErrors.sentinel(err); ok {
		node.Name = name
		return node, true
	}
	if name, et, ok := knownErrors.typeOf(err); ok {
		if data, err := et.encode(err); err == nil {
			node.Name, node.Data = name, data
		}
	}
	if depth < maxErrorDepth {
		node.Kids = append(w.kids(unwrapped(err), depth), claimed(err)...)
	}
	return node, node.Name != "" || len(node.Kids) > 0
}

// claimed are the sentinels that err says it is by a method Is, such as
// fs.ErrNotExist for a syscall.ENOENT.
func claimed(err error) (nodes []wire.ErrorNode) {
	e, ok := err.(interface{ Is(error) bool })
	if !ok {
		return nil
	}
	for name, sentinel := range knownErrors.all() {
		safely(func() {
			if e.Is(sentinel) {
				nodes = append(nodes, wire.ErrorNode{Text: sentinel.Error(), Type: wire.TypeText(reflect.TypeOf(sentinel)), Name: name})
			}
		})
	}
	slices.SortFunc(nodes, func(a, b wire.ErrorNode) int { return strings.Compare(a.Name, b.Name) })
	return nodes
}

// safely runs a method of a user's error; if that panics it has said nothing.
func safely(f func()) {
	defer func() { _ = recover() }()
	f()
}

func (w *errorWalk) kids(errs []error, depth int) []wire.ErrorNode {
	var kids []wire.ErrorNode
	for _, err := range errs {
		if err == nil || w.seen >= maxErrors {
			continue
		}
		if kid, ok := w.node(err, depth+1); ok {
			kids = append(kids, kid)
		}
	}
	return kids
}

func unwrapped(err error) (inner []error) {
	safely(func() {
		switch e := err.(type) { //nolint:errorlint // this is the unwrapping
		case interface{ Unwrap() error }:
			inner = []error{e.Unwrap()}
		case interface{ Unwrap() []error }:
			inner = e.Unwrap()
		}
	})
	return inner
}

// errorText is err's text; an Error method that panics costs its text only.
func errorText(err error) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprintf("%T, whose Error method panicked: %v", err, v)
		}
	}()
	return err.Error()
}

func (t *errorType) encode(err error) ([]byte, error) {
	codec, cerr := t.codec()
	if cerr != nil {
		return nil, cerr
	}
	return packSelfContained([]*wire.Codec{codec}, []any{err})
}

func (t *errorType) decode(data []byte) (error, error) {
	codec, err := t.codec()
	if err != nil {
		return nil, err
	}
	vals, err := unpackSelfContained(data, []*wire.Codec{codec})
	if err != nil {
		return nil, err
	}
	e, ok := vals[0].(error)
	if !ok {
		return nil, fmt.Errorf("%w: a %v arrived as nil", ErrDecode, t.t)
	}
	return e, nil
}

// fromNode rebuilds an error. It may run the codecs of registered error types,
// which are user code.
func fromNode(n wire.ErrorNode) error {
	switch {
	case n.Type == nodePanic:
		return &PanicError{Value: n.Text, Stack: n.Stack, causes: fromNodes(n.Kids)}
	case n.Type == nodeLibrary:
		if _, is := knownErrors.byWireName(n.Name); is != nil {
			return &libraryError{is: is, text: n.Text}
		}
	}
	e := &RemoteError{Type: n.Type, Text: n.Text}
	if n.Name != "" {
		e.causes = []error{rebuilt(n)}
	} else {
		e.causes = fromNodes(n.Kids)
	}
	return e
}

func fromNodes(nodes []wire.ErrorNode) []error {
	var errs []error
	for _, n := range nodes {
		errs = append(errs, rebuilt(n))
	}
	return errs
}

// rebuilt is the registered error that n stands for, with what is below it.
func rebuilt(n wire.ErrorNode) error {
	et, sentinel := knownErrors.byWireName(n.Name)
	kids := fromNodes(n.Kids)
	switch {
	case n.Type == nodePanic: // that another one wraps, such as what Serve ended with
		return &PanicError{Value: n.Text, Stack: n.Stack, causes: kids}
	case n.Name == "":
	case n.Data != nil && et != nil:
		e, err := et.decode(n.Data)
		if err != nil {
			break
		}
		// What e unwraps to may not have crossed with it; the chain has.
		return &chainError{error: e, rest: missing(e, kids)}
	case sentinel != nil:
		return sentinel
	}
	return &RemoteError{Type: n.Type, Text: n.Text, causes: kids}
}

// missing returns those of errs that are not in e's own chain.
func missing(e error, errs []error) []error {
	var rest []error
	for _, err := range errs {
		there := false
		safely(func() { there = errors.Is(e, err) })
		if !there {
			rest = append(rest, err)
		}
	}
	return rest
}

// chainError is a rebuilt error value together with the part of its chain
// that its own fields did not carry.
type chainError struct {
	error
	rest []error
}

func (e *chainError) Unwrap() []error { return append([]error{e.error}, e.rest...) }

// libraryError is one of our sentinels with a text, so that the refusals of a
// worker read like those of the host.
type libraryError struct {
	is   error
	text string
}

func (e *libraryError) Error() string { return e.text }
func (e *libraryError) Unwrap() error { return e.is }

// library makes err, which wraps one of our sentinels, fit to cross.
func library(err error) error {
	for _, is := range []error{ErrBadArgs, ErrNoSuchMethod, ErrEncode, ErrDecode, ErrTooLarge, ErrUnsupported, ErrClosed, ErrBusy} {
		match := false
		safely(func() { match = errors.Is(err, is) })
		if match {
			return &libraryError{is: is, text: errorText(err)}
		}
	}
	return err
}

// crossed is a handler's error as it would arrive from a process. Goroutine
// children use it, so that both kinds show the same.
func crossed(err error) error { return fromNode(toNode(err)) }
