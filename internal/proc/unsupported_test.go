//go:build !linux && !darwin

package proc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/proc"
)

func TestUnsupported(t *testing.T) {
	p, err := new(proc.Starter).Start(proc.Config{})
	require.ErrorIs(t, err, proc.ErrUnsupported, "Start")
	require.Nil(t, p, "Process")
	_, ok := proc.Inherited()
	require.False(t, ok, "Inherited")
}
