package gosource_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/examples/internal/gosource"
)

func TestWalk(t *testing.T) {
	root := t.TempDir()
	z := write(t, root, "z.go", "")
	a := write(t, root, "b/a.go", "")
	broken := write(t, root, "testdata/broken.go", "not go")
	write(t, root, "b/a.txt", "")
	require.NoError(t, os.MkdirAll(filepath.Join(root, "folder.go"), 0o755), "making a folder named like a file")

	got, err := gosource.Walk(root)
	require.NoError(t, err, "walking a tree")
	require.Equal(t, gosource.Listing{Files: []string{a, broken, z}}, got, "what the tree holds")
}

func TestWalkDoesNotFollowLinks(t *testing.T) {
	root, other := t.TempDir(), t.TempDir()
	a := write(t, root, "a.go", "")
	link(t, write(t, other, "c.go", ""), filepath.Join(root, "c.go"))
	link(t, other, filepath.Join(root, "other"))
	link(t, root, filepath.Join(root, "loop"))

	got, err := gosource.Walk(root)
	require.NoError(t, err, "walking a tree with links")
	require.Equal(t, []string{a}, got.Files, "files that are not behind a link")

	start := filepath.Join(t.TempDir(), "start")
	link(t, root, start)
	got, err = gosource.Walk(start)
	require.NoError(t, err, "walking from a link")
	require.Equal(t, []string{filepath.Join(start, "a.go")}, got.Files, "files of the tree that the root links to")
}

func link(t *testing.T, to, name string) {
	t.Helper()
	require.NoError(t, os.Symlink(to, name), "linking %s", name)
}

func TestWalkWithoutRoot(t *testing.T) {
	_, err := gosource.Walk(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, fs.ErrNotExist, "walking from nowhere")

	_, err = gosource.Walk(write(t, t.TempDir(), "a.go", ""))
	require.ErrorContains(t, err, "is not a folder", "walking from a file")
}

// closed is a file system with folders that may not be read.
type closed struct {
	fstest.MapFS
	folders map[string]bool
}

func (c closed) ReadDir(name string) ([]fs.DirEntry, error) {
	if c.folders[name] {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return c.MapFS.ReadDir(name)
}

func TestWalkListsWhatItCannotRead(t *testing.T) {
	fsys := closed{
		MapFS:   fstest.MapFS{"a/a.go": {}, "b/b.go": {}, "c/c.go": {}},
		folders: map[string]bool{"a": true, "c": true},
	}
	got := gosource.WalkFS(fsys)
	require.Equal(t, []string{"b/b.go"}, got.Files, "files outside the closed folders")
	require.Equal(t, []gosource.Problem{{Path: "a", Text: "permission denied"}, {Path: "c", Text: "permission denied"}}, got.Problems,
		"the closed folders")
}
