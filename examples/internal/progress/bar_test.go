package progress_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/examples/internal/progress"
)

func TestNothingIsDrawnIntoAFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err, "making a file")
	defer func() { require.NoError(t, f.Close(), "closing the file") }()

	b := progress.New(f, "parsing", 2)
	b.Step(1)
	b.Step(1)
	b.Close()

	info, err := f.Stat()
	require.NoError(t, err, "looking at the file")
	require.Zero(t, info.Size(), "bytes written to what is not a terminal")
}
