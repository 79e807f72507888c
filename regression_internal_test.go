package supervisor

// What another binary says can be made up from inside only.

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/proc"
	"github.com/workerlink/supervisor/internal/wire"
)

// The method table of a worker is bytes from a pipe. A table that no Go program has is an offence, not a panic.
func TestImpossibleMethodsOfAWorker(t *testing.T) {
	for _, tt := range []struct {
		name string
		desc wire.MethodDesc
		want error
	}{
		{"variadic without parameters", wire.MethodDesc{Variadic: true}, ErrProtocol},
		{"variadic in a number", wire.MethodDesc{Variadic: true, In: []string{"int"}}, ErrProtocol},
		{"variadic in a string", wire.MethodDesc{Variadic: true, In: []string{"[]int", "string"}}, ErrProtocol},
		{"variadic in a map", wire.MethodDesc{Variadic: true, In: []string{"map[string]int"}}, ErrProtocol},
		{"variadic", wire.MethodDesc{Variadic: true, In: []string{"string", "[]int"}, Out: "int"}, nil},
		{"variadic in a type that is not known here", wire.MethodDesc{Variadic: true, In: []string{"[]example.com/other.T"}}, nil},
		{"a type that is not known here", wire.MethodDesc{In: []string{"example.com/other.T"}, Out: "example.com/other.T"}, nil},
		{"nothing", wire.MethodDesc{}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.desc.Name = "Suspect"
			m, err := remoteMethods(wire.Ready{Methods: []wire.MethodDesc{{Name: "Fine"}, tt.desc}})
			if tt.want != nil {
				require.ErrorIs(t, err, tt.want, "remoteMethods(%+v)", tt.desc)
				require.ErrorContains(t, err, "Suspect", "the error names the method")
				return
			}
			require.NoError(t, err, "remoteMethods(%+v)", tt.desc)
			for n := range 4 {
				r := &Request{Method: "Suspect", Args: []any{"1", 2, 3}[:n]}
				require.NotPanics(t, func() { _ = m.resolve(r) }, "resolve of a call with %d arguments", n) // which fit or do not
			}
		})
	}
}

// A Spec may come from a program where its factory takes no argument.
func TestSpecWithoutItsArgument(t *testing.T) {
	unmarshalled := func(name string) (s Spec) {
		b, err := packSelfContained(nil, []any{name, []byte(nil)})
		require.NoError(t, err, "bytes of a spec without an argument")
		require.NoError(t, s.UnmarshalBinary(b), "UnmarshalBinary")
		require.Equal(t, name, s.Name(), "name of the spec")
		return s
	}
	kinds := []ChildType{Goroutine}
	if proc.Supported {
		kinds = append(kinds, Process)
	}
	for _, kind := range kinds {
		t.Run(kind.String(), func(t *testing.T) {
			start := func(spec Spec) error {
				s, err := New(kind)
				require.NoError(t, err, "New")
				defer s.Close()
				if _, err = s.Register(t.Context(), spec); err != nil {
					return err
				}
				if err := s.StartLink(context.Background()); err != nil {
					return err
				}
				text, err := Call[string](t.Context(), s, 0, "Describe")
				require.NoError(t, err, "Call")
				require.Contains(t, text, "plain", "result of the child")
				return nil
			}
			require.NoError(t, start(unmarshalled(plainDish.Name())), "a factory that takes none")
			err := start(unmarshalled(newDish.Name()))
			require.ErrorIs(t, err, ErrBadArgs, "a factory that takes one")
			require.ErrorContains(t, err, newDish.Name(), "a factory that takes one")
		})
	}
}

// Unregister may come between StartLink's list of children and the start of one of them.
func TestLaunchOfALeavingChild(t *testing.T) {
	s, err := New(Goroutine)
	require.NoError(t, err, "New")
	defer s.Close()
	id, err := s.Register(t.Context(), newDish.With(recipe{}))
	require.NoError(t, err, "Register")
	sl := s.present()[id]
	require.NoError(t, s.Unregister(t.Context(), id), "Unregister")
	first := make(chan error, 1)
	sl.launch(t.Context(), first)
	require.NoError(t, <-first, "what StartLink is told: it does not concern the others")
	require.Nil(t, sl.keeper, "keeper of a child that is gone")
	require.Equal(t, StateIdle, sl.state, "its state")
}

// A writer may serve both streams, and need not be comparable.
func TestSameWriter(t *testing.T) {
	var a, b strings.Builder
	require.True(t, sameWriter(&a, &a), "the same")
	require.False(t, sameWriter(&a, &b), "two")
	require.False(t, sameWriter(nil, nil), "none")
	require.False(t, sameWriter(funcs{}, funcs{}), "not comparable")
}

type funcs []func()

func (funcs) Write(p []byte) (int, error) { return len(p), nil }

// Who waits for a life that comes up and ends before he looks has waited for it all the same.
func TestLifeThatIsOverBeforeAnybodyLooks(t *testing.T) {
	sl := newSlot(nil, childConfig{})
	sl.life, sl.err = newLife(sl), because(ErrRestartLimit, errors.New("died at once"))
	sl.state = StateEnded
	require.NoError(t, sl.awaitUp(t.Context(), 0), "waiting for any life")
	require.ErrorIs(t, sl.awaitUp(t.Context(), sl.life.Incarnation()), ErrRestartLimit, "waiting for the next one")
}
