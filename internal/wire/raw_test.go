package wire_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/wire"
)

// fragile has codec methods that do what the value says.
type fragile struct{ mode string }

func (f fragile) MarshalBinary() ([]byte, error) {
	switch f.mode {
	case "panic":
		panic("cannot marshal")
	case "error":
		return nil, errors.New("will not marshal")
	}
	return []byte(f.mode), nil
}

func (f *fragile) UnmarshalBinary(b []byte) error {
	switch string(b) {
	case "late panic":
		panic("cannot unmarshal")
	case "late error":
		return errors.New("will not unmarshal")
	}
	f.mode = string(b)
	return nil
}

func TestFragileCodecs(t *testing.T) {
	type holder struct{ F []fragile }
	l := newLink(t)
	require.NoError(t, l.reg.Register(reflect.TypeFor[fragile]()), "register")
	for _, typ := range []struct {
		name string
		make func(mode string) any
	}{
		{"at the top", func(mode string) any { return fragile{mode} }},
		{"by pointer", func(mode string) any { return &fragile{mode} }},
		{"inside gob", func(mode string) any { return holder{[]fragile{{mode}}} }},
		{"in an interface", func(mode string) any { return []any{fragile{mode}} }},
	} {
		t.Run(typ.name, func(t *testing.T) {
			c := l.codec(reflect.TypeOf(typ.make("")))
			for mode, text := range map[string]string{"panic": "cannot marshal", "error": "will not marshal"} {
				_, _, err := l.send(c, typ.make(mode))
				require.ErrorIs(t, err, wire.ErrEncode, mode)
				require.ErrorContains(t, err, text, mode)
			}
			for mode, text := range map[string]string{"late panic": "cannot unmarshal", "late error": "will not unmarshal"} {
				b, h, err := l.send(c, typ.make(mode))
				require.NoError(t, err, "send %s", mode)
				vals, err := l.dec.Values(h, b, false, []*wire.Codec{c}, nil)
				require.NoError(t, err, "the reader runs no user code: %s", mode)
				require.IsType(t, (*wire.Deferred)(nil), vals[0], "value that comes later: %s", mode)
				_, err = vals[0].(*wire.Deferred).Decode()
				require.ErrorIs(t, err, wire.ErrDecode, mode)
				require.ErrorContains(t, err, text, mode)
			}
			require.Equal(t, typ.make("fine"), l.trip(c.Type(), typ.make("fine")), "the next value")
		})
	}
}

func TestDeferredKeepsItsBytes(t *testing.T) {
	l := newLink(t)
	c := l.codec(reflect.TypeFor[sealed]())
	for _, owned := range []bool{false, true} {
		b, h, err := l.send(c, sealed{7})
		require.NoError(t, err, "send")
		vals, err := l.dec.Values(h, b, owned, []*wire.Codec{c}, nil)
		require.NoError(t, err, "values")
		d := vals[0].(*wire.Deferred)
		require.Equal(t, reflect.TypeFor[sealed](), d.Type(), "type")
		if !owned {
			clear(b) // the view is gone
		}
		for range 2 {
			got, err := d.Decode()
			require.NoError(t, err, "decode, body owned %v", owned)
			require.Equal(t, sealed{7}, got, "body owned %v", owned)
		}
	}
	vals, err := l.dec.Values(wire.Header{}, unhex(t, "01"), false, []*wire.Codec{l.codec(reflect.TypeFor[*sealed]())}, nil)
	require.NoError(t, err, "nil pointer")
	require.Equal(t, (*sealed)(nil), vals[0], "what needs no user code is there at once")
}

func TestWhichTypesAreDeferred(t *testing.T) {
	l := newLink(t)
	for _, tt := range []struct {
		v     any
		class wire.Class
		late  bool
	}{
		{5, wire.Inline, false},
		{stats{Name: "x"}, wire.Stream, false},
		{[]any{point{1, 2}}, wire.Inline, false},
		{[]any{sealed{1}}, wire.Inline, true},
		{map[string]any{"a": []any{sealed{1}}}, wire.Inline, true},
		{boxed{1}, wire.Own, true},
		{sealed{1}, wire.Own, true},
		{[]sealed{{1}}, wire.Own, true},
	} {
		c := l.codec(reflect.TypeOf(tt.v))
		require.Equal(t, tt.class, c.Class(), "class of %T", tt.v)
		b, h, err := l.send(c, tt.v)
		require.NoError(t, err, "send %T", tt.v)
		vals, err := l.dec.Values(h, b, false, []*wire.Codec{c}, nil)
		require.NoError(t, err, "receive %T", tt.v)
		_, late := vals[0].(*wire.Deferred)
		require.Equal(t, tt.late, late, "%T is deferred", tt.v)
	}
	b, _, err := l.send(nil, map[string]any{"x": sealed{3}})
	require.NoError(t, err, "keyword arguments with user code")
	vals, err := l.dec.Values(wire.Header{}, b, false, []*wire.Codec{nil}, nil)
	require.NoError(t, err, "without a codec")
	got, err := vals[0].(*wire.Deferred).Decode()
	require.NoError(t, err, "decode")
	require.Equal(t, map[string]any{"x": sealed{3}}, got, "value")
}

// A worker of another program sends values whose types the host does not know, until someone asks for one.
func TestRaw(t *testing.T) {
	worker := newLink(t)
	host := wire.NewDecoder(wire.NewRegistry(), 0)
	require.NoError(t, worker.reg.Register(reflect.TypeFor[fromElsewhere]()), "register")
	for _, tt := range []struct {
		name string
		v    any
		raw  bool
	}{
		{"number", 5, false},
		{"list", []any{1, "a"}, false},
		{"struct", fromElsewhere{3}, true},
		{"zero struct", fromElsewhere{}, true},
		{"pointer", &fromElsewhere{3}, true},
		{"slice of structs", []fromElsewhere{{1}, {2}}, true},
		{"empty map", map[string]int{}, true},
		{"own codec", sealed{4}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := worker.codec(reflect.TypeOf(tt.v))
			b, err := wire.Packing{SelfContained: true}.Prepare([]*wire.Codec{c}, []any{tt.v})
			require.NoError(t, err, "prepare")
			body := append([]byte{}, b.Bytes()...)
			vals, err := host.Values(wire.Header{}, body, false, []*wire.Codec{nil}, nil)
			require.NoError(t, err, "values")
			raw, ok := vals[0].(*wire.Raw)
			require.Equal(t, tt.raw, ok, "raw: %T", vals[0])
			if !ok {
				require.Equal(t, tt.v, vals[0], "value")
				return
			}
			clear(body)
			got, err := raw.Decode(reflect.TypeOf(tt.v))
			require.NoError(t, err, "decode")
			require.Equal(t, tt.v, got, "value")
			_, err = raw.Decode(reflect.TypeFor[int]())
			require.ErrorIs(t, err, wire.ErrDecode, "as another type")
			_, err = raw.Decode(reflect.TypeFor[chan int]())
			require.ErrorIs(t, err, wire.ErrEncode, "as a type that cannot cross")
		})
	}
}

func TestRawWithATypeText(t *testing.T) {
	worker := newLink(t)
	require.NoError(t, worker.reg.Register(reflect.TypeFor[fromElsewhere]()), "register")
	b, _, err := worker.send(nil, fromElsewhere{3})
	require.NoError(t, err, "send")
	vals, err := wire.NewDecoder(nil, 0).Values(wire.Header{}, b, true, []*wire.Codec{nil}, nil)
	require.NoError(t, err, "values")
	raw := vals[0].(*wire.Raw)
	got, err := raw.Decode(reflect.TypeFor[fromElsewhere]())
	require.NoError(t, err, "decode")
	require.Equal(t, fromElsewhere{3}, got, "value")
	_, err = raw.Decode(reflect.TypeFor[point]())
	require.ErrorIs(t, err, wire.ErrDecode, "a struct of another name")
	_, err = raw.Decode(reflect.TypeFor[any]())
	require.ErrorIs(t, err, wire.ErrDecode, "any still does not know the type")
}

func TestUnregisteredAtTheReceiver(t *testing.T) {
	worker := newLink(t)
	require.NoError(t, worker.reg.Register(reflect.TypeFor[fromElsewhere]()), "register")
	b, _, err := worker.send(nil, []any{fromElsewhere{3}})
	require.NoError(t, err, "send")

	reg := wire.NewRegistry()
	host := wire.NewDecoder(reg, 0)
	c, err := wire.CodecOf(reflect.TypeFor[any](), reg)
	require.NoError(t, err, "codec")
	_, err = host.Values(wire.Header{}, b, false, []*wire.Codec{c}, nil)
	require.ErrorIs(t, err, wire.ErrDecode, "unknown type in any")
	require.ErrorContains(t, err, "fromElsewhere", "the error names it")
	got, err := host.Values(wire.Header{}, unhex(t, "08 02"), false, []*wire.Codec{c}, nil)
	require.NoError(t, err, "the next value")
	require.Equal(t, []any{1}, got, "the next value")
}
