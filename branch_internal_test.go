package supervisor

// A circle is made from inside: RegisterChild refuses it.

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSnapshotOfACircle(t *testing.T) {
	ring := make([]*Supervisor, 3)
	for i := range ring {
		s, err := New(Goroutine)
		require.NoError(t, err, "New")
		ring[i] = s
	}
	for i, s := range ring {
		cfg, err := newChildConfig(Goroutine, true, nil, nil)
		require.NoError(t, err, "newChildConfig")
		_, err = s.add(context.Background(), cfg, func(*slot) (Child, error) { return ring[(i+1)%len(ring)].AsChild(), nil })
		require.NoError(t, err, "add")
	}
	require.Equal(t, `supervisor, stopped, one-for-one
└─ 0 supervisor, idle, one-for-one
   └─ 0 supervisor, idle, one-for-one
      └─ 0 supervisor, idle
`, ring[0].Snapshot().String(), "the tree, which has an end")
	require.True(t, ring[0].reaches(ring[2], make(map[*Supervisor]bool)), "a search in the circle ends")
	other, err := New(Goroutine)
	require.NoError(t, err, "New")
	require.False(t, ring[0].reaches(other, make(map[*Supervisor]bool)), "a search in the circle for what is not in it ends")
}
