package childtest

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
)

// Tally is a ready object whose type is registered.
type Tally struct{ N int }

// Add adds to the tally.
func (y *Tally) Add(d int) int { y.N += d; return y.N }

// Locked is a ready object that would lose something when copied.
type Locked struct {
	N  int
	mu sync.Mutex
	on bool
}

// Add adds to the number.
func (l *Locked) Add(d int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.N += d
	return l.N
}

func init() {
	supervisor.RegisterType[Tally]()
	supervisor.RegisterType[Locked]()
}

// Unnamed is a ready object whose type nobody registers.
type Unnamed struct{ N int }

// Get returns the number.
func (u Unnamed) Get() int { return u.N }

var objectRules = []rule{
	{"a ready object is shared, or copied in each life", readyObject},
	{"a ready object that would lose something is refused", lossyObject},
	{"a ready object of a type that nobody named is refused if it has to cross", unnamedObject},
	{"what is no spec is refused", noSpec},
}

func readyObject(t *testing.T, k Kind) {
	r := NewRig(t, k)
	if !k.Can.Specs {
		noSpec(t, k)
		return
	}
	tally := &Tally{N: 3}
	id, err := r.Sup.Register(r.Ctx, supervisor.Object(tally))
	require.NoError(t, err)
	r.StartLink(t)
	require.Equal(t, 5, CallOf[int](t, r, id, "Add", 2))
	require.NoError(t, r.Sup.Restart(r.Ctx, id))
	if k.Can.Process {
		require.Equal(t, 4, CallOf[int](t, r, id, "Add", 1), "a copy of it as it was at Register")
		require.Equal(t, 3, tally.N, "the host's own is untouched")
	} else {
		require.Equal(t, 6, CallOf[int](t, r, id, "Add", 1), "the same object")
		require.NoError(t, r.Sup.Shutdown(r.Ctx)) // it is the host's alone again
		require.Equal(t, 6, tally.N)
	}
}

func lossyObject(t *testing.T, k Kind) {
	if !k.Can.Specs {
		noSpec(t, k)
		return
	}
	r := NewRig(t, k)
	_, err := r.Sup.Register(r.Ctx, supervisor.Object(&Locked{N: 1}))
	require.NoError(t, err, "unexported fields that are zero lose nothing")
	_, err = r.Sup.Register(r.Ctx, supervisor.Object(&Locked{N: 1, on: true}))
	if !k.Can.Process {
		require.NoError(t, err, "what is shared loses nothing")
		return
	}
	require.ErrorIs(t, err, supervisor.ErrEncode)
	require.ErrorContains(t, err, "on", "the field is named")
}

func unnamedObject(t *testing.T, k Kind) {
	if !k.Can.Specs {
		noSpec(t, k)
		return
	}
	r := NewRig(t, k)
	id, err := r.Sup.Register(r.Ctx, supervisor.Object(Unnamed{N: 8}))
	if k.Can.Process {
		require.ErrorIs(t, err, supervisor.ErrEncode)
		require.ErrorContains(t, err, "Unnamed")
		return
	}
	require.NoError(t, err)
	r.StartLink(t)
	require.Equal(t, 8, CallOf[int](t, r, id, "Get"))
}

func noSpec(t *testing.T, k Kind) {
	r := NewRig(t, k)
	_, err := r.Sup.RegisterChild(r.Ctx, nil)
	require.ErrorIs(t, err, supervisor.ErrBadArgs, "no Child")
	_, err = r.Sup.Register(r.Ctx, supervisor.Spec{})
	require.ErrorIs(t, err, supervisor.ErrBadArgs, "the zero Spec")
	_, err = r.Sup.Register(r.Ctx, elsewhere.With(1))
	require.ErrorIs(t, err, supervisor.ErrBadArgs, "a factory of another binary, which is not named")
	require.Empty(t, r.Sup.Snapshot().Children)
}
