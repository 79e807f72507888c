package wire

import "reflect"

// tag is the first byte of each value; it says what follows.
type tag = byte

const (
	tagNil        tag = 0x01
	tagZero       tag = 0x02
	tagEmpty      tag = 0x03
	tagPointer    tag = 0x04
	tagFalse      tag = 0x05
	tagTrue       tag = 0x06
	tagInt        tag = 0x08
	tagInt8       tag = 0x09
	tagInt16      tag = 0x0a
	tagInt32      tag = 0x0b
	tagInt64      tag = 0x0c
	tagUint       tag = 0x10
	tagUint8      tag = 0x11
	tagUint16     tag = 0x12
	tagUint32     tag = 0x13
	tagUint64     tag = 0x14
	tagUintptr    tag = 0x15
	tagFloat32    tag = 0x18
	tagFloat64    tag = 0x19
	tagComplex64  tag = 0x1a
	tagComplex128 tag = 0x1b
	tagString     tag = 0x20
	tagBytes      tag = 0x21
	tagStrings    tag = 0x22
	tagList       tag = 0x23
	tagDict       tag = 0x24
	tagTyped      tag = 0x30
	tagMethods    tag = 0x31
	tagGobShared  tag = 0x32
	tagGobOwn     tag = 0x33
	tagNumbers    tag = 0x40 // plus the tag of an element
)

// scalars says how values of basic kinds are tagged, and how many bytes an element of a numbers value has. Booleans
// stand under tagTrue; tagFalse is the other half of their kind.
var scalars = [...]struct {
	tag  tag
	size int
	typ  reflect.Type
}{
	reflect.Bool:       {tagTrue, 1, reflect.TypeFor[bool]()},
	reflect.Int:        {tagInt, 8, reflect.TypeFor[int]()},
	reflect.Int8:       {tagInt8, 1, reflect.TypeFor[int8]()},
	reflect.Int16:      {tagInt16, 2, reflect.TypeFor[int16]()},
	reflect.Int32:      {tagInt32, 4, reflect.TypeFor[int32]()},
	reflect.Int64:      {tagInt64, 8, reflect.TypeFor[int64]()},
	reflect.Uint:       {tagUint, 8, reflect.TypeFor[uint]()},
	reflect.Uint8:      {tagUint8, 1, reflect.TypeFor[uint8]()},
	reflect.Uint16:     {tagUint16, 2, reflect.TypeFor[uint16]()},
	reflect.Uint32:     {tagUint32, 4, reflect.TypeFor[uint32]()},
	reflect.Uint64:     {tagUint64, 8, reflect.TypeFor[uint64]()},
	reflect.Uintptr:    {tagUintptr, 8, reflect.TypeFor[uintptr]()},
	reflect.Float32:    {tagFloat32, 4, reflect.TypeFor[float32]()},
	reflect.Float64:    {tagFloat64, 8, reflect.TypeFor[float64]()},
	reflect.Complex64:  {tagComplex64, 8, reflect.TypeFor[complex64]()},
	reflect.Complex128: {tagComplex128, 16, reflect.TypeFor[complex128]()},
}

// kindOfTag is the inverse of scalars; Invalid for tags of other values.
var kindOfTag = func() (kinds [256]reflect.Kind) {
	for k, s := range scalars {
		if s.tag != 0 {
			kinds[s.tag] = reflect.Kind(k)
		}
	}
	kinds[tagFalse] = reflect.Bool
	return kinds
}()

// scalar reports whether values of the kind are booleans or numbers.
func scalar(k reflect.Kind) bool { return int(k) < len(scalars) && scalars[k].tag != 0 }

// numbersTag returns the tag of a slice or array with elements of the kind k.
func numbersTag(k reflect.Kind) tag {
	if k == reflect.Uint8 {
		return tagBytes
	}
	return tagNumbers + scalars[k].tag
}
