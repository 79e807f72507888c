package supervisor

// Definitions are global, so what they refuse is tested from inside, with names that no program has.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/proc"
)

// recipe is an argument of a factory.
type recipe struct {
	Name  string
	Parts []string
	Sizes map[string]float64
}

// dish is made by a recipe.
type dish struct{ Recipe recipe }

// Describe shows what the factory got.
func (d *dish) Describe() string {
	return fmt.Sprintf("%s %v %v", d.Recipe.Name, d.Recipe.Parts, d.Recipe.Sizes)
}

var (
	newDish = DefineWith("define_internal_test.dish", func(_ context.Context, r recipe) (*dish, error) { return &dish{r}, nil })
	anyDish = DefineWith("define_internal_test.anyDish", func(_ context.Context, r any) (*dish, error) {
		return &dish{recipe{Name: fmt.Sprint(r)}}, nil
	})
	plainDish = Define("define_internal_test.plainDish", func(context.Context) (dish, error) {
		return dish{recipe{Name: "plain"}}, nil
	})

	errNoWater = errors.New("no water")
	failing    = Define("define_internal_test.failing", func(context.Context) (*dish, error) { return nil, errNoWater })
	panicking  = Define("define_internal_test.panicking", func(context.Context) (*dish, error) { panic("hot") })
	noDish     = Define("define_internal_test.missing", func(context.Context) (*dish, error) { return nil, nil })
)

// definedTwice makes names for a test that may run more than once.
var definedTwice atomic.Int64

// Types of ready objects: named, not named, and with something that would be lost.
type (
	namedObject    struct{ N int }
	namelessObject struct{ N int }
	secretObject   struct {
		N      int
		hidden int
	}
	funcObject struct{ F func() }
)

// Get returns N.
func (o *namedObject) Get() int { return o.N }

// Get returns N.
func (o *namelessObject) Get() int { return o.N }

// Get returns the sum of both fields.
func (o *secretObject) Get() int { return o.N + o.hidden }

// Get returns a constant.
func (o *funcObject) Get() int { return 1 }

func init() {
	RegisterType[namedObject]()
	RegisterType[secretObject]()
}

// described starts a child of a spec and asks it.
func described(t *testing.T, spec Spec, method string) any {
	t.Helper()
	s, err := New(Goroutine)
	require.NoError(t, err, "New")
	defer s.Close()
	id, err := s.Register(t.Context(), spec)
	require.NoError(t, err, "Register")
	require.NoError(t, s.StartLink(t.Context()), "StartLink")
	p, err := s.Do(t.Context(), NewSendPayload(id, method))
	require.NoError(t, err, "Do(%s)", method)
	require.NoError(t, s.Shutdown(t.Context()), "Shutdown")
	return p.Data
}

func TestSpecCarriesItsArgument(t *testing.T) {
	r := recipe{"soup", []string{"salt", "water"}, map[string]float64{"pot": 2.5}}
	for _, tt := range []struct {
		name string
		spec Spec
		want any
		get  string
	}{
		{"a struct", newDish.With(r), "soup [salt water] map[pot:2.5]", "Describe"},
		{"the zero value", newDish.With(recipe{}), " [] map[]", "Describe"},
		{"an interface", anyDish.With(7), "7 [] map[]", "Describe"},
		{"a nil interface", anyDish.With(nil), "<nil> [] map[]", "Describe"},
		{"no argument", plainDish, "plain [] map[]", "Describe"},
		{"a ready object", Object(&namedObject{N: 4}), 4, "Get"},
		{"a ready object by value", Object(namedObject{N: 5}), 5, "Get"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, err := tt.spec.MarshalBinary()
			require.NoError(t, err, "MarshalBinary")
			var back Spec
			require.NoError(t, back.UnmarshalBinary(b), "UnmarshalBinary")
			require.Equal(t, tt.spec.Name(), back.Name(), "name")
			again, err := back.MarshalBinary()
			require.NoError(t, err, "MarshalBinary of what came back")
			require.Equal(t, b, again, "the same bytes again")
			require.Equal(t, tt.want, described(t, tt.spec, tt.get), "the object of the original")
			require.Equal(t, tt.want, described(t, back, tt.get), "the object of what came back")
		})
	}
}

// A spec that came back is a copy: a change of the argument does not reach it.
func TestSpecIsDataOnceMarshalled(t *testing.T) {
	r := recipe{Name: "soup", Parts: []string{"salt"}}
	b, err := newDish.With(r).MarshalBinary()
	require.NoError(t, err, "MarshalBinary")
	r.Parts[0] = "sugar"
	var back Spec
	require.NoError(t, back.UnmarshalBinary(b), "UnmarshalBinary")
	clear(b)
	require.Equal(t, "soup [salt] map[]", described(t, back, "Describe"), "the object")
}

func TestSpecRefuses(t *testing.T) {
	_, err := Spec{}.MarshalBinary()
	require.ErrorIs(t, err, ErrBadArgs, "MarshalBinary of the zero Spec")
	_, err = Spec{name: "nobody"}.MarshalBinary()
	require.ErrorIs(t, err, ErrBadArgs, "MarshalBinary of a name that is not defined")
	require.ErrorContains(t, err, `"nobody"`, "the error names it")
	_, err = anyDish.With(func() {}).MarshalBinary()
	require.ErrorIs(t, err, ErrEncode, "MarshalBinary of a function")
	for name, b := range map[string][]byte{"nothing": nil, "noise": []byte("noise"), "zeros": make([]byte, 40)} {
		s := newDish.With(recipe{})
		require.Error(t, s.UnmarshalBinary(b), "UnmarshalBinary of %s", name)
		require.Equal(t, newDish.Name(), s.Name(), "a Spec is not changed by what it refuses")
	}
	other, err := packSelfContained(nil, []any{7, []byte{}})
	require.NoError(t, err, "two values")
	require.ErrorIs(t, new(Spec).UnmarshalBinary(other), ErrDecode, "UnmarshalBinary of a number where the name should be")
}

// The name need not be known where a spec only passes through.
func TestSpecOfAnotherProgram(t *testing.T) {
	b, err := packSelfContained(nil, []any{"other.program.Factory", []byte{1, 2}})
	require.NoError(t, err, "a Spec as bytes")
	var s Spec
	require.NoError(t, s.UnmarshalBinary(b), "UnmarshalBinary")
	require.Equal(t, "other.program.Factory", s.Name(), "name")
	sup, err := New(Goroutine)
	require.NoError(t, err, "New")
	_, err = sup.Register(t.Context(), s)
	require.ErrorIs(t, err, ErrBadArgs, "Register of a name that is not defined here")
}

var fileAndLine = regexp.MustCompile(`define_internal_test\.go:(\d+)`)

func TestDefineTwicePanics(t *testing.T) {
	empty := func(context.Context) (*dish, error) { return &dish{}, nil }
	for name, again := range map[string]func(name string){
		"Define":     func(name string) { Define(name, empty) },
		"DefineWith": func(name string) { DefineWith(name, func(context.Context, int) (*dish, error) { return &dish{}, nil }) },
		"Declare":    func(name string) { Declare[int](name) },
	} {
		t.Run(name, func(t *testing.T) {
			panicOf := func(f func()) (text string) {
				defer func() { text = fmt.Sprint(recover()) }()
				f()
				return ""
			}
			defined := fmt.Sprintf("define_internal_test.twice.%s.%d", name, definedTwice.Add(1))
			require.Equal(t, "<nil>", panicOf(func() { again(defined) }), "the first time")
			text := panicOf(func() { Define(defined, empty) })
			require.Contains(t, text, `supervisor: factory "`+defined+`" is defined twice`, "the second time")
			places := fileAndLine.FindAllString(text, -1)
			require.Len(t, places, 2, "places in %q", text)
			require.NotEqual(t, places[0], places[1], "both places are named: %q", text)
			require.Contains(t, panicOf(func() { again("") }), "empty factory name", "a name that is empty")
		})
	}
}

func TestFactoryResults(t *testing.T) {
	for _, tt := range []struct {
		name string
		spec Spec
		as   func(err error) bool
		text string
	}{
		{
			"an error", failing,
			func(err error) bool { var e *RemoteError; return errors.As(err, &e) && e.Text == "no water" }, "no water",
		},
		{
			"a panic", panicking,
			func(err error) bool { var e *PanicError; return errors.As(err, &e) && e.Value == "hot" }, "hot",
		},
		{
			"nil without an error", noDish,
			func(error) bool { return true }, "returned nil",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := New(Goroutine)
			require.NoError(t, err, "New")
			_, err = s.Register(t.Context(), tt.spec, WithName("cook"))
			require.NoError(t, err, "Register does not start anything yet")
			err = s.StartLink(t.Context())
			var start *StartError
			require.ErrorAs(t, err, &start, "StartLink")
			require.Equal(t, "cook", start.Name, "the child in the error")
			require.True(t, tt.as(err), "the cause in %#v", start.Err)
			require.ErrorContains(t, err, tt.text, "StartLink")
		})
	}
}

func TestObjectForAProcess(t *testing.T) {
	for _, tt := range []struct {
		name string
		spec Spec
		want error
		text string
	}{
		{"named", Object(&namedObject{N: 1}), nil, ""},
		{"named, by value", Object(namedObject{N: 1}), nil, ""},
		{"zero unexported field", Object(&secretObject{N: 1}), nil, ""},
		{"not named", Object(&namelessObject{N: 1}), ErrEncode, "RegisterType"},
		{"set unexported field", Object(&secretObject{N: 1, hidden: 2}), ErrEncode, "hidden"},
		{"function", Object(&funcObject{func() {}}), ErrEncode, "funcObject"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := New(Process)
			require.NoError(t, err, "New")
			_, err = s.Register(t.Context(), tt.spec)
			if !proc.Supported {
				tt.want, tt.text = ErrUnsupported, "process"
			}
			if tt.want == nil {
				require.NoError(t, err, "Register for a process")
			} else {
				require.ErrorIs(t, err, tt.want, "Register for a process")
				require.ErrorContains(t, err, tt.text, "Register for a process")
			}
			_, err = s.Register(t.Context(), tt.spec, WithType(Goroutine))
			require.NoError(t, err, "Register for a goroutine, which shares the object")
		})
	}
}

// A goroutine child works on the object itself.
func TestObjectIsShared(t *testing.T) {
	o := &namedObject{N: 1}
	s, err := New(Goroutine)
	require.NoError(t, err, "New")
	defer s.Close()
	id, err := s.Register(t.Context(), Object(o))
	require.NoError(t, err, "Register")
	require.NoError(t, s.StartLink(t.Context()), "StartLink")
	o.N = 8
	n, err := GetChildAttr[int](t.Context(), s, id, "N")
	require.NoError(t, err, "GetChildAttr")
	require.Equal(t, 8, n, "the field of the very object")
}

func TestRegisterTypeRefuses(t *testing.T) {
	require.NotPanics(t, func() { RegisterType[namedObject](); RegisterType[*namedObject]() }, "the same type again")
	for name, register := range map[string]func(){
		"a function": RegisterType[func()], "a channel": RegisterType[chan int], "a struct without a name": RegisterType[struct{ A int }],
	} {
		require.Panics(t, register, "RegisterType of %s", name)
	}
}

func TestSnapshotAsJSON(t *testing.T) {
	s, err := New(Goroutine)
	require.NoError(t, err, "New")
	defer s.Close()
	_, err = s.Register(t.Context(), newDish.With(recipe{}), WithName("cook"))
	require.NoError(t, err, "Register")
	b, err := json.Marshal(s.Snapshot())
	require.NoError(t, err, "Snapshot as JSON")
	require.JSONEq(t, `{"running": false, "strategy": "one-for-one", "open": 0, "unclaimed": 0, "children": [{
		"proc_id": 0, "name": "cook", "type": "define_internal_test.dish", "kind": "goroutine", "state": "idle", "restarts": 0,
		"load": {"queued": 0, "in_flight": 0, "late": 0}
	}]}`, string(b), "Snapshot before StartLink")
	for state := StateIdle; state <= StateEnded; state++ {
		text, err := state.MarshalText()
		require.NoError(t, err, "MarshalText")
		require.Equal(t, state.String(), string(text), "text of state %d", int(state))
	}
	require.Equal(t, "State(-1)", State(-1).String(), "a state that is not there")
}
