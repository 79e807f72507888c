package wire

// These tests need the inside: the code for machines whose memory differs from the wire runs on no machine that runs
// them, and the encoding of numbers is shared between both ways.

import (
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNumbersOneByOne(t *testing.T) {
	for _, v := range []any{
		[]bool{true, false},
		[]int{1, -2, math.MinInt},
		[]int8{-1, 127},
		[]int16{-300},
		[]int32{math.MinInt32},
		[]int64{math.MaxInt64},
		[]uint{7, math.MaxUint},
		[]uint8{1, 255},
		[]uint16{65535},
		[]uint32{math.MaxUint32},
		[]uint64{math.MaxUint64},
		[]uintptr{3},
		[]float32{1.5, float32(math.Inf(-1))},
		[]float64{math.Pi, math.Copysign(0, -1)},
		[]complex64{complex(1, -2)},
		[]complex128{complex(-3, 4)},
		[]int{},
	} {
		rv := reflect.ValueOf(v)
		fast, slow := appendNumbers(nil, rv), appendEach(nil, rv)
		require.Equal(t, fast, slow, "bytes of %T", v)
		back := reflect.MakeSlice(rv.Type(), rv.Len(), rv.Len())
		require.NoError(t, setEach(back, slow), "set %T", v)
		require.Equal(t, v, back.Interface(), "%T", v)
	}
	nan := reflect.ValueOf([]float32{float32(math.NaN())})
	back := reflect.ValueOf([]float32{0})
	require.NoError(t, setEach(back, appendEach(nil, nan)), "NaN")
	require.True(t, math.IsNaN(back.Index(0).Float()), "NaN")
	require.Error(t, setEach(back, nil), "no bytes")
}

func TestPromotedMethodsAreRecognised(t *testing.T) {
	type embeds struct {
		trustedTime
		N int
	}
	require.True(t, promoted(reflect.TypeFor[embeds](), "MarshalBinary"), "method of an embedded field")
	require.False(t, promoted(reflect.TypeFor[trustedTime](), "MarshalBinary"), "declared method")
	require.False(t, promoted(reflect.TypeFor[byPtr](), "MarshalBinary"), "method declared for the pointer")
}

type trustedTime struct{ n int }

func (t trustedTime) MarshalBinary() ([]byte, error) { return []byte{byte(t.n)}, nil }

type byPtr struct{ n int }

func (b *byPtr) MarshalBinary() ([]byte, error) { return []byte{byte(b.n)}, nil }
