package wire_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/wire"
)

// Another program's version of a struct may have fields that this one does not know.
type (
	newer struct {
		X int
		B bool
		U uint
		F float64
		C complex128
		S string
		R []byte
		A [2]string
		L []point
		M map[string][]int
		P *point
		G sealed
		V any
		W any
		Z int
	}
	older struct {
		X int
		Z int
		Y string // not sent
	}
)

func TestFieldsThatTheReceiverDoesNotKnow(t *testing.T) {
	l := newLink(t)
	for _, v := range []newer{
		{X: 1, Z: 2},
		{
			X: 1, B: true, U: 1, F: 1, C: 1, S: "s", R: []byte{1}, A: [2]string{"a", "b"}, L: []point{{1, 2}},
			M: map[string][]int{"a": {1}}, P: &point{1, 2}, G: sealed{1}, V: point{3, 4}, W: 5, Z: 2,
		},
	} {
		b, _, err := l.send(l.codec(reflect.TypeOf(v)), v)
		require.NoError(t, err, "send")
		got, err := l.receive(l.codec(reflect.TypeFor[older]()), wire.Header{}, b)
		require.NoError(t, err, "receive")
		require.Equal(t, older{X: 1, Z: 2}, got, "what both know")
	}
}

func TestFieldsOfOtherTypes(t *testing.T) {
	type otherX struct {
		X string
		Z int
	}
	type otherZ struct{ Z []int }
	l := newLink(t)
	for _, typ := range []reflect.Type{
		reflect.TypeFor[otherX](), reflect.TypeFor[otherZ](), reflect.TypeFor[map[string]int](), reflect.TypeFor[[]int](), reflect.TypeFor[struct{ Q int }](),
	} {
		b, _, err := l.send(l.codec(reflect.TypeFor[newer]()), newer{X: 1, Z: 2})
		require.NoError(t, err, "send")
		_, err = l.receive(l.codec(typ), wire.Header{}, b)
		require.ErrorIs(t, err, wire.ErrDecode, "as %v", typ)
	}
}

func TestNamedVariantsInInterfaces(t *testing.T) {
	type (
		myBool    bool
		myUint    uint16
		myFloat   float32
		myDouble  float64
		myComplex complex64
		myWide    complex128
		myBytes   []byte
		myFlags   []flags
		myStrings []color
		myList    []any
		myDict    map[string]any
	)
	l := newLink(t)
	for _, v := range []any{
		myBool(true), myBool(false), myUint(7), myFloat(1.5), myDouble(2.5), myComplex(1), myWide(2),
		myBytes{1},
		myBytes{},
		myFlags{true, false},
		myStrings{"a"},
		myList{1, nil},
		myDict{"a": 1},
		myList(nil), myDict(nil), myBytes(nil),
	} {
		require.NoError(t, l.reg.Register(reflect.TypeOf(v)), "register %T", v)
		require.Equal(t, v, l.trip(reflect.TypeOf(v), v), "%T", v)
		require.Equal(t, v, l.trip(reflect.TypeFor[any](), v), "%T in any", v)
		if rv := reflect.ValueOf(v); rv.Kind() == reflect.Slice && rv.Len() == 0 || rv.Kind() == reflect.Map && rv.IsNil() {
			continue // inside gob, gob's rules hold
		}
		require.Equal(t, boxed{v}, l.trip(reflect.TypeFor[boxed](), boxed{v}), "%T in any, inside gob", v)
	}
}
