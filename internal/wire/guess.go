package wire

import "reflect"

const (
	guessTypes = 64     // bytes allowed for the type definitions of a value
	guessParts = 100000 // parts of a value that are looked at; the rest is taken to be like them
)

// guess estimates the bytes of gob that v will take, without its type definitions' full size, which is needed once.
// It errs on the high side: gob writes a number as up to 9 bytes, most take less.
func guess(c *Codec, v reflect.Value) int {
	g := guesser{shapes: &c.reg.shapes, left: guessParts}
	return guessTypes + g.value(v)
}

type guesser struct {
	shapes *shapes
	left   int
}

func (g *guesser) value(v reflect.Value) int {
	t := v.Type()
	g.left--
	if g.left < 0 || g.shapes.of(t).flat {
		return flatGuess(t)
	}
	switch v.Kind() {
	case reflect.String:
		return 5 + v.Len()
	case reflect.Pointer:
		if v.IsNil() {
			return 0
		}
		return g.value(v.Elem())
	case reflect.Slice, reflect.Array:
		return g.elements(v)
	case reflect.Map:
		n := 5
		for it := v.MapRange(); it.Next(); {
			n += g.value(it.Key()) + g.value(it.Value())
		}
		return n
	case reflect.Struct:
		if trusted[t] {
			return flatGuess(t)
		}
		n := 1
		for i := range v.NumField() {
			n += 1 + g.value(v.Field(i))
		}
		return n
	}
	return flatGuess(t)
}

func (g *guesser) elements(v reflect.Value) int {
	elem := v.Type().Elem()
	if elem.Kind() == reflect.Uint8 {
		return 5 + v.Len()
	}
	if g.shapes.of(elem).flat {
		return 5 + v.Len()*flatGuess(elem)
	}
	n := 5
	for i := range v.Len() {
		if g.left < 0 {
			return n + (v.Len()-i)*(n/max(i, 1)+1)
		}
		n += g.value(v.Index(i))
	}
	return n
}

// flatGuess is the size of a value that lies in one piece.
func flatGuess(t reflect.Type) int {
	size := int(t.Size())
	return size + size/8 + 2
}
