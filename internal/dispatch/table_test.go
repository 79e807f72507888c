package dispatch_test

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/dispatch"
)

// The types below have, between them, each way in which a method can belong to a type. Names tell: Own... is declared by
// the type itself, Base... comes from an embedded field.

type base struct{ BaseField int }

func (b base) BaseValue() int    { return b.BaseField }
func (b *base) BasePointer() int { return b.BaseField }
func (b *base) OwnOverride() int { return -1 }

type Other struct{ OtherField string }

func (o *Other) BaseOther() string { return o.OtherField }

type speaker interface{ BaseSpeak() string }

type object struct {
	base
	*Other
	speaker
	Public  int
	private int
}

func (o *object) OwnPointer() int              { return o.Public }
func (o object) OwnValue() int                 { return o.Public }
func (o object) OwnLarge(n int) string         { return fmt.Sprint(o.Public, n, o.private) }
func (o *object) OwnOverride() int             { return 1 }
func (o *object) OwnEmpty()                    {}
func (o *object) unexported()                  {}
func (o *object) Close() error                 { return nil }
func (o *object) Handle()                      {}
func (o *object) Serve(context.Context)        {}
func (o *object) Health() error                { return nil }
func (o *object) Snapshot() any                { return nil }
func (o *object) EncodeShared()                {}
func (o *object) String() string               { return "" }
func (o *object) GoString() string             { return "" }
func (o *object) Error() string                { return "" }
func (o *object) Format(fmt.State, rune)       {}
func (o *object) MarshalText() ([]byte, error) { return nil, nil }
func (o *object) UnmarshalText([]byte) error   { return nil }
func (o *object) GobEncode() ([]byte, error)   { return nil, nil }
func (o *object) OwnMarshal()                  {}
func (o *object) Marshalling() bool            { o.unexported(); return true }
func (o *object) Gobble()                      {}

type generic[T any] struct {
	base
	Held T
}

func (g *generic[T]) OwnGet() T                 { return g.Held }
func (g generic[T]) OwnValue() T                { return g.Held }
func (g *generic[T]) OwnSet(v T)                { g.Held = v }
func (g *generic[T]) OwnOverride() int          { return 2 }
func (g generic[T]) OwnLarge(v T, n int) string { return fmt.Sprint(g.Held, v, n) }

type (
	wrapsGeneric struct{ generic[int] }
	wrapsPointer struct{ *object } //nolint:errname // it is no error, though object has the method
	renamed      object            // a new type has the fields and what they promote, but none of the methods
	number       int
	dict         map[string]int
	double       = object
)

func (w wrapsPointer) OwnValue() int { return 3 }
func (n number) OwnDouble() int      { return 2 * int(n) }
func (n *number) OwnInc()            { *n++ }
func (d dict) OwnLen() int           { return len(d) }

type iface interface {
	fmt.Stringer
	io.Closer
	OwnAct(ctx context.Context, n int) (int, error)
	secret()
}

func table[T any](t testing.TB) *dispatch.Table {
	t.Helper()
	table, err := dispatch.TableFor[T]()
	require.NoError(t, err, "TableFor[%v]", reflect.TypeFor[T]())
	return table
}

// names lists the methods, and the fields in a second list, in the order of their numbers.
func names(t *dispatch.Table) (methods, fields []string) {
	for _, m := range t.All() {
		if m.Field {
			fields = append(fields, m.Name)
		} else {
			methods = append(methods, m.Name)
		}
	}
	return methods, fields
}

func TestWhatATypeHas(t *testing.T) {
	own := []string{
		"Gobble", "Marshalling", "OwnEmpty", "OwnLarge", "OwnMarshal", "OwnOverride", "OwnPointer", "OwnValue",
	}
	ownFields := []string{"BaseField", "Other", "OtherField", "Public"}
	generics := []string{"OwnGet", "OwnLarge", "OwnOverride", "OwnSet", "OwnValue"}
	for _, tt := range []struct {
		name            string
		table           *dispatch.Table
		methods, fields []string
	}{
		{"value", table[object](t), own, ownFields},
		{"pointer", table[*object](t), own, ownFields},
		{"alias", table[*double](t), own, ownFields},
		{"generic", table[generic[int]](t), generics, []string{"BaseField", "Held"}},
		{"generic over a pointer", table[*generic[*string]](t), generics, []string{"BaseField", "Held"}},
		{"embedded generic", table[wrapsGeneric](t), nil, []string{"BaseField", "Held"}},
		{"embedded pointer", table[wrapsPointer](t), []string{"OwnValue"}, ownFields},
		{"new type of a struct", table[renamed](t), nil, ownFields},
		{"number", table[number](t), []string{"OwnDouble", "OwnInc"}, nil},
		{"map", table[*dict](t), []string{"OwnLen"}, nil},
		{"interface", table[iface](t), []string{"Close", "OwnAct", "String"}, nil},
		{"empty interface", table[any](t), nil, nil},
		{"basic type", table[int](t), nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			methods, fields := names(tt.table)
			require.Equal(t, tt.methods, methods, "methods")
			require.Equal(t, tt.fields, fields, "fields")
			for i, m := range tt.table.All() {
				at, ok := tt.table.At(i)
				require.True(t, ok && at == m, "At(%d) is %v", i, m)
			}
			_, ok := tt.table.At(len(tt.table.All()))
			require.False(t, ok, "At one behind the last")
			_, ok = tt.table.At(-1)
			require.False(t, ok, "At(-1)")
		})
	}
}

func TestTypesWithoutATable(t *testing.T) {
	type pointer *object
	for name, build := range map[string]func() (*dispatch.Table, error){
		"pointer to a pointer":    dispatch.TableFor[**object],
		"pointer to an interface": dispatch.TableFor[*iface],
		"named pointer":           dispatch.TableFor[pointer],
	} {
		_, err := build()
		require.ErrorContains(t, err, "can have no methods", name)
	}
}

func TestHeldType(t *testing.T) {
	require.Equal(t, reflect.TypeFor[*object](), table[object](t).Type(), "held type of a struct")
	require.Equal(t, reflect.TypeFor[*object](), table[*object](t).Type(), "held type of a pointer")
	require.Equal(t, reflect.TypeFor[iface](), table[iface](t).Type(), "held type of an interface")
}

type shapes struct{}

func (shapes) Plain()                                       {}
func (shapes) Ctx(context.Context)                          {}
func (shapes) Result(int, string) float64                   { return 0 }
func (shapes) Err(ctx context.Context, b []byte) error      { return nil }
func (shapes) Both(context.Context, ...int) (string, error) { return "", nil }
func (shapes) LateCtx(int, context.Context)                 {} //nolint:revive // the point of the test
func (shapes) Two() (int, int)                              { return 0, 0 }
func (shapes) Three() (int, int, error)                     { return 0, 0, nil }
func (shapes) TwoErrs() (error, error)                      { return nil, nil }
func (shapes) OwnError() *dispatch.LookupError              { return nil }
func (shapes) Second() (error, int)                         { return nil, 0 } //nolint:staticcheck // the point of the test

func TestSignatures(t *testing.T) {
	tb := table[shapes](t)
	for name, want := range map[string]string{
		"Plain":    "Plain()",
		"Ctx":      "Ctx(context.Context)",
		"Result":   "Result(int, string) float64",
		"Err":      "Err(context.Context, []uint8) error",
		"Both":     "Both(context.Context, ...int) (string, error)",
		"LateCtx":  "LateCtx(int, context.Context)",
		"OwnError": "OwnError() *dispatch.LookupError",
	} {
		_, m, err := tb.Lookup(name)
		require.NoError(t, err, "Lookup(%q)", name)
		require.Equal(t, want, m.String(), "String of the method")
	}
	for name, want := range map[string]string{
		"Two":     "returns two results, of which the second is not an error",
		"Three":   "returns 3 results",
		"TwoErrs": "returns two errors",
		"Second":  "returns two results",
	} {
		_, _, err := tb.Lookup(name)
		require.ErrorIs(t, err, dispatch.ErrNoMethod, "Lookup(%q)", name)
		require.ErrorContains(t, err, name+" of *dispatch_test.shapes "+want)
	}
}

func TestLookup(t *testing.T) {
	tb := table[object](t)
	for _, tt := range []struct {
		name string
		text string
	}{
		{"Close", "supervisor: no such method: Close of *dispatch_test.object is a hook, which is called for you"},
		{"String", "supervisor: no such method: String of *dispatch_test.object describes the object, and cannot be called"},
		{"GobEncode", "supervisor: no such method: GobEncode of *dispatch_test.object encodes the object, and cannot be called"},
		{"BaseValue", "supervisor: no such method: BaseValue of *dispatch_test.object is promoted from an embedded field: only methods of the type itself can be called"},
		{"Public", "supervisor: no such method: Public of *dispatch_test.object is a field, which can be read but not called"},
		{"own_value", `supervisor: no such method: "own_value" of *dispatch_test.object; did you mean OwnValue?`},
		{"OwnPoniter", `supervisor: no such method: "OwnPoniter" of *dispatch_test.object; did you mean OwnPointer?`},
		{"unexported", `supervisor: no such method: "unexported" of *dispatch_test.object`},
		{"", `supervisor: no such method: "" of *dispatch_test.object`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := tb.Lookup(tt.name)
			require.EqualError(t, err, tt.text)
			require.ErrorIs(t, err, dispatch.ErrNoMethod)
			var lookup *dispatch.LookupError
			require.ErrorAs(t, err, &lookup)
			require.Equal(t, tt.name, lookup.Name, "the name in the error")
		})
	}
	num, m, err := tb.Lookup("OwnValue")
	require.NoError(t, err, "Lookup of a callable method")
	require.Same(t, tb.All()[num], m, "the method under its number")
}

func TestAttr(t *testing.T) {
	tb := table[object](t)
	for _, name := range []string{"Public", "BaseField", "OtherField", "OwnValue"} {
		num, m, err := tb.Attr(name)
		require.NoError(t, err, "Attr(%q)", name)
		require.Same(t, tb.All()[num], m, "the attribute under its number")
	}
	for name, text := range map[string]string{
		"OwnLarge": "takes arguments, so it can be called but not read",
		"OwnEmpty": "has no result to read",
		"Snapshot": "is a hook",
		"private":  `"private" of *dispatch_test.object`,
		"public":   "did you mean Public?",
	} {
		_, _, err := tb.Attr(name)
		require.ErrorIs(t, err, dispatch.ErrNoMethod, "Attr(%q)", name)
		require.ErrorContains(t, err, text, "Attr(%q)", name)
	}
}

type near struct{}

func (near) Load()      {}
func (near) LoadAll()   {}
func (near) LoadModel() {}
func (near) Lead()      {}
func (near) Lord()      {}
func (near) Unload()    {}

func TestNearNames(t *testing.T) {
	tb := table[near](t)
	for name, want := range map[string][]string{
		"load_model": {"LoadModel"},
		"LoadAl":     {"LoadAll"},
		"load":       {"Load", "Lead", "Lord"},
		"Lo":         nil,
		"Quit":       nil,
	} {
		_, _, err := tb.Lookup(name)
		var lookup *dispatch.LookupError
		require.ErrorAs(t, err, &lookup, "Lookup(%q)", name)
		require.Equal(t, want, lookup.Near, "names near %q", name)
	}
}

type shadow struct{ Inner }

type Inner struct {
	Deep struct{ Name string }
	Name string
}

func (s *shadow) Name(n int) int { return n }

func TestMethodHidesField(t *testing.T) {
	methods, fields := names(table[shadow](t))
	require.Equal(t, []string{"Name"}, methods, "methods")
	require.Equal(t, []string{"Deep", "Inner"}, fields, "fields: Name is the method now")
}
