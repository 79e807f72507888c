package wire_test

import (
	"encoding/gob"
	"fmt"
	"math/big"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/wire"
)

type (
	pair[K comparable, V any] struct {
		Key   K
		Value V
	}
	byPointer struct{ N int }
	renamed   struct{ N int }
	takesName struct{ N int }
	shaper    interface{ Shape() string }
)

func (b *byPointer) Shape() string { return fmt.Sprint("pointer ", b.N) }

const here = "github.com/workerlink/supervisor/internal/wire_test."

func TestTypeTexts(t *testing.T) {
	reg := registry(t)
	require.NoError(t, reg.Register(reflect.TypeFor[pair[string, []point]]()), "register generic type")
	for _, tt := range []struct {
		typ   reflect.Type
		text  string
		known bool
	}{
		{reflect.TypeFor[int](), "int", true},
		{reflect.TypeFor[any](), "any", true},
		{reflect.TypeFor[error](), "error", true},
		{reflect.TypeFor[[]byte](), "[]uint8", true},
		{reflect.TypeFor[[]float64](), "[]float64", true},
		{reflect.TypeFor[[4]**string](), "[4]**string", true},
		{reflect.TypeFor[map[string]int](), "map[string]int", true},
		{reflect.TypeFor[map[[2]int]map[string][]any](), "map[[2]int]map[string][]any", true},
		{reflect.TypeFor[time.Duration](), "time.Duration", true},
		{reflect.TypeFor[*time.Time](), "*time.Time", true},
		{reflect.TypeFor[*big.Int](), "*math/big.Int", true},
		{reflect.TypeFor[point](), here + "point", true},
		{reflect.TypeFor[[]*point](), "[]*" + here + "point", true},
		{reflect.TypeFor[map[point]stats](), "map[" + here + "point]" + here + "stats", true},
		{reflect.TypeFor[pair[string, []point]](), here + "pair[string,[]" + here + "point]", true},
		{reflect.TypeFor[map[string]pair[string, []point]](), "map[string]" + here + "pair[string,[]" + here + "point]", true},
		{reflect.TypeFor[fromElsewhere](), here + "fromElsewhere", false},
		{reflect.TypeFor[map[string]fromElsewhere](), "map[string]" + here + "fromElsewhere", false},
		{reflect.TypeFor[map[fromElsewhere]string](), "map[" + here + "fromElsewhere]string", false},
		{reflect.TypeFor[struct{ N int }](), "struct { N int }", false},
		{reflect.TypeFor[chan int](), "chan int", false},
		{reflect.TypeFor[func(int) string](), "func(int) string", false},
		{nil, "nil", false},
	} {
		require.Equal(t, tt.text, wire.TypeText(tt.typ), "text of %v", tt.typ)
		got, ok := reg.TypeOf(tt.text)
		require.Equal(t, tt.known, ok, "%q is known", tt.text)
		if tt.typ == nil {
			continue
		}
		name, known := reg.Name(tt.typ)
		require.Equal(t, tt.text, name, "name of %v", tt.typ)
		require.Equal(t, tt.known, known, "%v is known", tt.typ)
		if tt.known {
			require.Equal(t, tt.typ, got, "type of %q", tt.text)
		}
	}
	for _, text := range []string{
		"", "*", "[]", "[x]int", "[-1]int", "[01]int", "[3", "[99999999999999999999]int", "[999999999999]int",
		"[65536][65536]int", "map[", "map[int", "map[int]", "map[[]int]string", "map]int", "int ", "[] int",
		"struct{}", string(make([]byte, 5000)), fmt.Sprintf("%0100d", 0),
	} {
		_, ok := reg.TypeOf(text)
		require.False(t, ok, "%.50q stands for no type", text)
	}
	var deep string
	for range 100 {
		deep += "[]"
	}
	_, ok := reg.TypeOf(deep + "int")
	require.False(t, ok, "a hundred slices")
	got, ok := reg.TypeOf("[]byte")
	require.True(t, ok, "the other name of uint8")
	require.Equal(t, reflect.TypeFor[[]byte](), got, "the other name of uint8")
}

// otherPoint returns a type with the name of a package-level type that is another type.
func otherPoint() reflect.Type {
	type point struct{ X, Y, Z float64 }
	return reflect.TypeFor[point]()
}

func TestRegister(t *testing.T) {
	reg := wire.NewRegistry()
	for range 2 {
		require.NoError(t, reg.Register(reflect.TypeFor[*point]()), "a pointer registers what it points to")
	}
	_, ok := reg.TypeOf(here + "point")
	require.True(t, ok, "the type itself")
	require.NoError(t, reg.Register(reflect.TypeFor[shaper]()), "an interface")
	require.NoError(t, reg.Register(reflect.TypeFor[int]()), "a basic type")
	require.NoError(t, reg.Register(reflect.TypeFor[map[color][]*level]()), "a composite registers its parts")
	_, ok = reg.Name(reflect.TypeFor[[]level]())
	require.True(t, ok, "a part of the composite")

	err := reg.Register(otherPoint())
	require.ErrorIs(t, err, wire.ErrEncode, "another type of the same name")
	require.ErrorContains(t, err, "16 bytes", "one type")
	require.ErrorContains(t, err, "24 bytes", "the other")
	for _, typ := range []reflect.Type{nil, reflect.TypeFor[chan int](), reflect.TypeFor[[]func()](), reflect.TypeFor[struct{ N int }]()} {
		require.ErrorIs(t, reg.Register(typ), wire.ErrEncode, "%v", typ)
	}
	var zero wire.Registry
	require.NoError(t, zero.Register(reflect.TypeFor[point]()), "the zero value is ready")
	_, ok = zero.TypeOf("[]" + here + "point")
	require.True(t, ok, "known to the zero value")
}

func TestRegisterAtOnce(t *testing.T) {
	reg := wire.NewRegistry()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for _, v := range []any{point{}, stats{}, boxed{}, color("")} {
				if err := reg.Register(reflect.TypeOf(v)); err != nil {
					t.Errorf("register %T: %v", v, err)
				}
				if _, err := wire.CodecOf(reflect.TypeOf(v), reg); err != nil {
					t.Errorf("codec of %T: %v", v, err)
				}
				if _, ok := reg.TypeOf(wire.TypeText(reflect.TypeOf(v))); !ok {
					t.Errorf("%T is not known", v)
				}
			}
		})
	}
	wg.Wait()
}

func TestInterfacesInsideGob(t *testing.T) {
	type shapes struct{ S []shaper }
	l := newLink(t)
	require.NoError(t, l.reg.Register(reflect.TypeFor[byPointer]()), "register")
	v := shapes{[]shaper{&byPointer{1}, &byPointer{2}}}
	require.Equal(t, v, l.trip(reflect.TypeOf(v), v), "methods with pointer receivers")
	require.Equal(t, boxed{&byPointer{3}}, l.trip(reflect.TypeFor[boxed](), boxed{&byPointer{3}}), "in any")
	require.Equal(t, boxed{map[string]any{"a": []any{1, point{1, 2}}}},
		l.trip(reflect.TypeFor[boxed](), boxed{map[string]any{"a": []any{1, point{1, 2}}}}), "lists and dicts")

	_, _, err := l.send(l.codec(reflect.TypeFor[boxed]()), boxed{fromElsewhere{1}})
	require.ErrorIs(t, err, wire.ErrEncode, "unregistered")
	require.ErrorContains(t, err, "fromElsewhere", "the error names the type")
	require.Equal(t, boxed{1}, l.trip(reflect.TypeFor[boxed](), boxed{1}), "the next value")
}

// The program may have registered a type with gob itself, under a name of its own.
func TestTypesThatTheProgramGaveToGob(t *testing.T) {
	gob.RegisterName("my own name", renamed{})
	l := newLink(t)
	require.NoError(t, l.reg.Register(reflect.TypeFor[renamed]()), "register")
	require.Equal(t, boxed{renamed{5}}, l.trip(reflect.TypeFor[boxed](), boxed{renamed{5}}), "inside gob")
	require.Equal(t, renamed{5}, l.trip(reflect.TypeFor[any](), renamed{5}), "in an interface")

	gob.RegisterName(here+"taken", takesName{})
	type taken struct{ N int }
	err := l.reg.Register(reflect.TypeFor[taken]())
	require.ErrorIs(t, err, wire.ErrEncode, "a name that gob knows for another type")
	require.ErrorContains(t, err, "taken", "the error names it")
}
