package wire_test

import (
	"encoding"
	"reflect"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/wire"
)

type (
	onlyEncodes struct{ N int }
	onlyDecodes struct{ N int }
	promotes    struct {
		time.Time
		N int
	}
	wraps    struct{ time.Time }
	selfPtr  *selfPtr
	deepChan struct {
		A []map[string]struct{ C [2]chan int }
	}
	odd struct { // what gob drops silently
		N     int
		C     chan int
		F     func()
		P     *chan int
		inner int
	}
	outer struct {
		List []odd
		Map  map[string]*odd
	}
	locked struct {
		N  int
		mu sync.Mutex
	}
	node struct {
		V    any
		Next []node
	}
	selfSlice []selfSlice
	selfMap   map[string]selfMap
)

func (onlyEncodes) MarshalBinary() ([]byte, error)  { return nil, nil }
func (*onlyDecodes) UnmarshalBinary(b []byte) error { return nil }
func (o *odd) use()                                 { o.inner++ }
func (l *locked) use()                              { l.mu.Lock() }

func TestTypesThatCannotCross(t *testing.T) {
	for _, tt := range []struct {
		name string
		typ  reflect.Type
		text string
	}{
		{"channel", reflect.TypeFor[chan int](), "chan int"},
		{"function", reflect.TypeFor[func()](), "func()"},
		{"unsafe pointer", reflect.TypeFor[unsafe.Pointer](), "unsafe.Pointer"},
		{"slice of channels", reflect.TypeFor[[]chan int](), "[]chan int"},
		{"map to functions", reflect.TypeFor[map[string]func()](), "func()"},
		{"pointer to channel", reflect.TypeFor[*chan int](), "chan int"},
		{"deep inside", reflect.TypeFor[deepChan](), "deepChan.A[][].C[] has type chan int"},
		{"error", reflect.TypeFor[error](), "error"},
		{"pointer to itself", reflect.TypeFor[selfPtr](), "itself"},
		{"only encodes", reflect.TypeFor[onlyEncodes](), "not UnmarshalBinary"},
		{"only decodes", reflect.TypeFor[[]onlyDecodes](), "UnmarshalBinary"},
		{"methods of an embedded field", reflect.TypeFor[promotes](), "embedded"},
		{"without exported fields, inside", reflect.TypeFor[[]sync.Mutex](), "sync.Mutex"},
		{"interface with codec method", reflect.TypeFor[[]encoding.BinaryMarshaler](), "BinaryMarshaler"},
		{"nil", nil, "no type"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := wire.CodecOf(tt.typ, wire.NewRegistry())
			require.ErrorIs(t, err, wire.ErrEncode, "CodecOf(%v)", tt.typ)
			require.ErrorContains(t, err, tt.text, "CodecOf(%v)", tt.typ)
			if tt.typ != nil && tt.typ.Kind() != reflect.Interface {
				_, err = wire.Prepare(nil, []any{reflect.Zero(tt.typ).Interface()})
				require.ErrorIs(t, err, wire.ErrEncode, "in any")
			}
		})
	}
	c, err := wire.CodecOf(reflect.TypeFor[wraps](), nil)
	require.NoError(t, err, "an embedded field alone loses nothing")
	require.Equal(t, wire.Own, c.Class(), "class")
}

func TestFieldsThatWouldBeLost(t *testing.T) {
	l := newLink(t)
	for _, tt := range []struct {
		name string
		v    any
		path string // empty: fine
	}{
		{"nothing set", odd{N: 1}, ""},
		{"channel", odd{C: make(chan int)}, "odd.C"},
		{"function", odd{F: func() {}}, "odd.F"},
		{"pointer to channel", odd{P: new(chan int)}, "odd.P"},
		{"unexported", odd{inner: 1}, "odd.inner"},
		{"by pointer", &odd{inner: 1}, ".inner"},
		{"in a slice", outer{List: []odd{{}, {inner: 1}}}, "outer.List.inner"},
		{"in a map", outer{Map: map[string]*odd{"a": {inner: 1}}}, "outer.Map.inner"},
		{"in an interface", boxed{V: &secret{key: "k"}}, "boxed.V.key"},
		{"unlocked", &locked{N: 1}, ""},
		{"without exported fields", sync.Mutex{}, ""},
		{"own codec", sealed{3}, ""},
		{"time", time.Now(), ""},
		{"nil", nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.NoError(t, l.reg.Register(reflect.TypeFor[secret]()), "register")
			errs := map[string]error{"CheckLossless": wire.CheckLossless(tt.v)}
			if tt.v != nil {
				_, _, errs["send"] = l.send(l.codec(reflect.TypeOf(tt.v)), tt.v)
			}
			for name, err := range errs {
				if tt.path == "" {
					require.NoError(t, err, name)
					continue
				}
				require.ErrorIs(t, err, wire.ErrEncode, name)
				require.ErrorContains(t, err, tt.path, name)
			}
		})
	}
	busy := &locked{}
	busy.use()
	require.ErrorContains(t, wire.CheckLossless(busy), ".mu", "a locked mutex")
	(&odd{}).use()
	require.ErrorIs(t, wire.CheckLossless(make(chan int)), wire.ErrEncode, "a type that cannot cross")
	require.ErrorIs(t, wire.CheckLossless([]any{1, make(chan int)}), wire.ErrEncode, "such a type in an interface")
}

func TestDeepAndCyclicValues(t *testing.T) {
	chain := func(n int) *list {
		var l *list
		for i := range n {
			l = &list{i, l}
		}
		return l
	}
	cyclic := &list{V: 1}
	cyclic.Next = cyclic
	var loop any
	loop = &loop
	inList := []any{nil}
	inList[0] = inList
	inDict := map[string]any{}
	inDict["x"] = inDict
	inStruct := &boxed{}
	inStruct.V = inStruct
	slices := selfSlice{nil}
	slices[0] = slices
	maps := selfMap{}
	maps["x"] = maps
	nodes := []node{{}}
	nodes[0].Next = nodes

	for _, tt := range []struct {
		name string
		v    any
	}{
		{"3,000,000 deep", chain(3_000_000)},
		{"just too deep", chain(wire.MaxDepth + 2)},
		{"cycle of pointers", cyclic},
		{"pointer to itself in an interface", loop},
		{"list in itself", inList},
		{"dict in itself", inDict},
		{"struct in its interface", inStruct},
		{"slice in itself", slices},
		{"map in itself", maps},
		{"slice of structs in itself", nodes},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLink(t)
			require.NoError(t, l.reg.Register(reflect.TypeFor[node]()), "register")
			_, _, err := l.send(l.codec(reflect.TypeOf(tt.v)), tt.v)
			require.ErrorIs(t, err, wire.ErrEncode, "by its type")
			require.ErrorContains(t, err, "deep", "by its type")
			require.ErrorIs(t, wire.CheckLossless(tt.v), wire.ErrEncode, "CheckLossless")
		})
	}
	l := newLink(t)
	fine := chain(wire.MaxDepth)
	got := l.trip(reflect.TypeFor[*list](), fine)
	require.True(t, reflect.DeepEqual(fine, got), "a value as deep as allowed arrives")
	nested := any(1)
	for range wire.MaxDepth {
		nested = []any{nested}
	}
	got = l.trip(reflect.TypeFor[any](), nested)
	require.True(t, reflect.DeepEqual(nested, got), "a list as deep as allowed arrives")
}

func TestLoopingTypesAreHeldToTheirSize(t *testing.T) {
	l := newLink(t)
	wide := node{Next: make([]node, 600_000)}
	_, _, err := l.send(l.codec(reflect.TypeFor[node]()), wide)
	require.ErrorIs(t, err, wire.ErrEncode, "many parts")
	require.ErrorIs(t, err, wire.ErrTooLarge, "many parts")

	type tree struct {
		Name string
		Kids []tree
	}
	_, _, err = l.send(l.codec(reflect.TypeFor[tree]()), tree{Name: string(make([]byte, 2<<20))})
	require.ErrorIs(t, err, wire.ErrTooLarge, "a large part")

	// Twenty levels of two references to the same node are a million nodes on the wire.
	shared := []node{{}}
	for range 40 {
		shared = []node{{Next: shared}, {Next: shared}}
	}
	_, _, err = l.send(l.codec(reflect.TypeFor[[]node]()), shared)
	require.ErrorIs(t, err, wire.ErrTooLarge, "a value that is small only in memory")
	list := []any{1}
	for range 40 {
		list = []any{list, list}
	}
	_, err = wire.Packing{Limit: 1 << 20}.Prepare(nil, []any{list})
	require.ErrorIs(t, err, wire.ErrTooLarge, "a list that is small only in memory")
}
