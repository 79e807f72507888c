package wire

import (
	"fmt"
	"reflect"
)

// form is how the values of a type are written.
type form uint8

const (
	formScalar form = 1 + iota
	formString
	formBytes
	formNumbers // slice of booleans or numbers
	formArray   // array of booleans or numbers
	formStrings
	formList
	formDict
	formDynamic // interface
	formPointer
	formMethods
	formGob
)

// Class says what it takes to encode and decode the values of a type.
type Class uint8

// The classes of types.
const (
	Inline Class = 1 + iota // tagged bytes
	Stream                  // gob, on the stream of the direction
	Own                     // a user's codec methods, or gob with interfaces or such methods inside: self-contained
)

// Codec knows how values of one type cross. It is immutable and safe for concurrent use; [CodecOf] makes it.
type Codec struct {
	typ   reflect.Type
	reg   *Registry
	shape *shape // of typ
	elem  *Codec // of what a pointer points to
	form  form
	tag   tag  // of values that are not nil, where the form has one tag
	exact bool // typ is a basic type itself, a slice of one, []any or map[string]any
	class Class
	pair  pair
}

// CodecOf returns the codec of t, which takes names of types in interfaces from reg. A nil reg knows the basic types
// only. The error is [ErrEncode] and names the type, and the path to the part that can never cross: a channel, a
// function, an unsafe pointer, a struct without exported fields inside another type, half a pair of codec methods. The
// type error is no type of values: errors have a form of their own.
func CodecOf(t reflect.Type, reg *Registry) (*Codec, error) {
	if t == nil {
		return nil, fmt.Errorf("%w: no type", ErrEncode)
	}
	if reg == nil {
		reg = &Registry{}
	}
	return reg.codec(t)
}

func (r *Registry) codec(t reflect.Type) (*Codec, error) {
	if c, ok := r.codecs.Load(t); ok {
		return c.(*Codec), nil
	}
	c, err := newCodec(t, r)
	if err != nil {
		return nil, err
	}
	kept, _ := r.codecs.LoadOrStore(t, c)
	return kept.(*Codec), nil
}

func newCodec(t reflect.Type, r *Registry) (*Codec, error) {
	sh := r.shapes.of(t)
	if sh.err != nil {
		return nil, sh.err
	}
	if t == errorType {
		return nil, fmt.Errorf("%w: type error: errors cross as the error of a call only", ErrEncode)
	}
	c := &Codec{typ: t, reg: r, shape: sh, class: Inline}
	if t.Kind() == reflect.Pointer {
		elem, err := r.codec(t.Elem())
		if err != nil {
			return nil, err
		}
		c.form, c.tag, c.elem, c.class = formPointer, tagPointer, elem, elem.class
		return c, nil
	}
	if c.pair = topPair(t, sh); c.pair != pairNone {
		c.form, c.tag = formMethods, tagMethods
		if !trusted[t] {
			c.class = Own
		}
		return c, nil
	}
	c.inline()
	if c.form == 0 {
		c.form, c.class = formGob, Stream
		if sh.dynamic || sh.methods {
			c.class = Own
		}
	}
	return c, nil
}

// topPair returns the methods by which values of t are coded at the top. Unlike gob it also takes the text pair,
// for structs that gob would empty.
func topPair(t reflect.Type, sh *shape) pair {
	if t.Kind() == reflect.Interface {
		return pairNone
	}
	if p, _ := pairOf(t); p != pairNone {
		return p
	}
	if t.Kind() == reflect.Struct && sh.hidden && has(t, pairs[pairText].encoder) && has(t, pairs[pairText].decoder) &&
		!promoted(t, pairs[pairText].encode) {
		return pairText
	}
	return pairNone
}

// inline sets the form of types that need neither gob nor methods.
func (c *Codec) inline() {
	t := c.typ
	switch k := t.Kind(); {
	case scalar(k):
		c.form, c.tag, c.exact = formScalar, scalars[k].tag, t == scalars[k].typ
	case k == reflect.String:
		c.form, c.tag, c.exact = formString, tagString, t == reflect.TypeFor[string]()
	case k == reflect.Interface:
		c.form = formDynamic
	case k == reflect.Slice:
		c.slice(t.Elem())
	case k == reflect.Array && scalar(t.Elem().Kind()) && plain(t.Elem()):
		c.form, c.tag = formArray, numbersTag(t.Elem().Kind())
	case k == reflect.Map && t.Key() == reflect.TypeFor[string]() && t.Elem() == anyType:
		c.form, c.tag, c.exact = formDict, tagDict, t.Name() == ""
	}
}

func (c *Codec) slice(elem reflect.Type) {
	k := elem.Kind()
	c.exact = c.typ.Name() == "" && elem.PkgPath() == ""
	switch {
	case k == reflect.Uint8 && plain(elem):
		c.form, c.tag = formBytes, tagBytes
	case plain(elem) && k != reflect.String:
		c.form, c.tag = formNumbers, numbersTag(k)
	case plain(elem):
		c.form, c.tag = formStrings, tagStrings
	case elem == anyType:
		c.form, c.tag = formList, tagList
	default:
		c.exact = false
	}
}

// plain reports whether values of t are booleans, numbers or strings without codec methods.
func plain(t reflect.Type) bool {
	if !scalar(t.Kind()) && t.Kind() != reflect.String {
		return false
	}
	p, err := pairOf(t)
	return p == pairNone && err == nil
}

// Type returns the type of the values.
func (c *Codec) Type() reflect.Type { return c.typ }

// Class returns the class of the type. An interface type is [Inline], although a value in it may be anything.
func (c *Codec) Class() Class { return c.class }

// userCode reports whether decoding runs methods of users.
func (c *Codec) userCode() bool { return c.class == Own }
