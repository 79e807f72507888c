package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"unsafe"
)

// asMemory reports whether elements of type t lie in memory as they do on the wire.
func asMemory(t reflect.Type) bool {
	return int(t.Size()) == scalars[t.Kind()].size &&
		(t.Size() == 1 || binary.NativeEndian.Uint16([]byte{1, 0}) == 1)
}

// memory returns the elements of a slice of numbers as bytes. The bytes are the slice's own.
func memory(v reflect.Value) []byte {
	return unsafe.Slice((*byte)(v.UnsafePointer()), v.Len()*int(v.Type().Elem().Size()))
}

// appendNumbers appends the elements of v, a slice of booleans or numbers.
func appendNumbers(dst []byte, v reflect.Value) []byte {
	if asMemory(v.Type().Elem()) {
		return append(dst, memory(v)...)
	}
	return appendEach(dst, v)
}

// appendEach is appendNumbers where memory and wire differ.
func appendEach(dst []byte, v reflect.Value) []byte {
	kind := v.Type().Elem().Kind()
	for i := range v.Len() {
		e := v.Index(i)
		switch {
		case kind == reflect.Bool:
			dst = appendBool(dst, e.Bool())
		case e.CanInt():
			dst = appendFixed(dst, uint64(e.Int()), scalars[kind].size)
		case e.CanUint():
			dst = appendFixed(dst, e.Uint(), scalars[kind].size)
		case kind == reflect.Float32:
			dst = appendFixed(dst, uint64(math.Float32bits(float32(e.Float()))), 4)
		case kind == reflect.Float64:
			dst = appendFixed(dst, math.Float64bits(e.Float()), 8)
		case kind == reflect.Complex64:
			dst = appendComplex64(dst, complex64(e.Complex()))
		default:
			dst = appendComplex128(dst, e.Complex())
		}
	}
	return dst
}

// appendFixed appends the low size bytes of u.
func appendFixed(dst []byte, u uint64, size int) []byte {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], u)
	return append(dst, b[:size]...)
}

func appendComplex64(dst []byte, c complex64) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(real(c)))
	return binary.LittleEndian.AppendUint32(dst, math.Float32bits(imag(c)))
}

func appendComplex128(dst []byte, c complex128) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(real(c)))
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(imag(c)))
}

// setNumbers sets the elements of v, a slice of booleans or numbers, from as many elements in b.
func setNumbers(v reflect.Value, b []byte) error {
	elem := v.Type().Elem()
	if elem.Kind() == reflect.Bool {
		for i, x := range b { // a bool that is neither 0 nor 1 in memory breaks a program in strange places
			if x > 1 {
				return fmt.Errorf("element %d is no bool: %d", i, x)
			}
		}
	}
	if asMemory(elem) {
		copy(memory(v), b)
		return nil
	}
	return setEach(v, b)
}

// setEach is setNumbers where memory and wire differ.
func setEach(v reflect.Value, b []byte) error {
	kind := v.Type().Elem().Kind()
	size := scalars[kind].size
	c := cursor{b: b}
	for i := range v.Len() {
		e := v.Index(i)
		switch {
		case kind == reflect.Bool:
			e.SetBool(c.byte() == 1)
		case e.CanInt():
			shift := 64 - 8*size
			if err := setInt(e, int64(c.fixed(size)<<shift)>>shift); err != nil {
				return err
			}
		case e.CanUint():
			if err := setUint(e, c.fixed(size)); err != nil {
				return err
			}
		case kind == reflect.Float32:
			e.SetFloat(float64(math.Float32frombits(c.uint32())))
		case kind == reflect.Float64:
			e.SetFloat(math.Float64frombits(c.uint64()))
		case kind == reflect.Complex64:
			e.SetComplex(complex128(c.complex64()))
		default:
			e.SetComplex(c.complex128())
		}
	}
	return c.err
}

// fixed reads size bytes as an unsigned number.
func (c *cursor) fixed(size int) uint64 {
	var b [8]byte
	copy(b[:], c.next(size))
	return binary.LittleEndian.Uint64(b[:])
}

func (c *cursor) complex64() complex64 {
	re, im := c.uint32(), c.uint32()
	return complex(math.Float32frombits(re), math.Float32frombits(im))
}

func (c *cursor) complex128() complex128 {
	re, im := c.uint64(), c.uint64()
	return complex(math.Float64frombits(re), math.Float64frombits(im))
}

func setInt(v reflect.Value, i int64) error {
	if v.OverflowInt(i) {
		return fmt.Errorf("%d overflows %v", i, v.Type())
	}
	v.SetInt(i)
	return nil
}

func setUint(v reflect.Value, u uint64) error {
	if v.OverflowUint(u) {
		return fmt.Errorf("%d overflows %v", u, v.Type())
	}
	v.SetUint(u)
	return nil
}
