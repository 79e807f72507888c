package archtest_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/archtest"
)

// root is the module's folder, seen from this package's.
var root = filepath.Join("..", "..")

// What the rules read is read once, however often they run.
var (
	tree    = sync.OnceValues(func() (*archtest.Tree, error) { return archtest.Load(os.DirFS(root)) })
	program = sync.OnceValues(loadProgram)
)

// rule holds the source to one check, and shows that the check holds anything: it must see each offence.
type rule struct {
	name     string
	source   func(t *testing.T) []archtest.Finding
	offences []offence
}

// offence is made-up source that breaks a rule in one place.
type offence struct {
	name  string
	key   string // of the one finding
	found func(t *testing.T) []archtest.Finding
}

func TestSource(t *testing.T) {
	for _, r := range append(treeRules(), programRules()...) {
		t.Run(r.name, func(t *testing.T) {
			require.NotEmpty(t, r.offences, "a rule must be shown an offence")
			for _, o := range r.offences {
				t.Run("sees "+o.name, func(t *testing.T) {
					found := o.found(t)
					require.Len(t, found, 1, "findings in source with one offence: %s", archtest.List(found))
					require.Equal(t, o.key, found[0].Key, "what the finding is about")
				})
			}
			if found := r.source(t); len(found) > 0 {
				require.Fail(t, "the source breaks the rule", "in %d places: %s", len(found), archtest.List(found))
			}
		})
	}
}

func TestExcept(t *testing.T) {
	found := []archtest.Finding{{Where: "a.go:1", Key: "a"}, {Where: "b.go:2", Key: "b"}}

	left := archtest.Except(found, archtest.Exceptions{"a": "it must be so"})
	require.Equal(t, found[1:], left, "an exception takes away the finding it names, and no other")

	left = archtest.Except(found[:1], archtest.Exceptions{"a": " "})
	require.Len(t, left, 1, "an exception without a reason is a finding: %s", archtest.List(left))

	left = archtest.Except(nil, archtest.Exceptions{"a": "it was so"})
	require.Len(t, left, 1, "an exception that nothing needs is a finding: %s", archtest.List(left))
}

func TestLoadLeavesOut(t *testing.T) {
	got := parse(t, map[string]string{
		"a.go":               "package a",
		"a_windows.go":       "package a",
		"testdata/broken.go": "not go",
		"_old/a.go":          "package old",
		".hidden/a.go":       "package hidden",
		"vendor/x/x.go":      "package x",
		"nested/go.mod":      "module nested",
		"nested/n.go":        "package n",
	})
	var paths []string
	for _, f := range got.Files {
		paths = append(paths, f.Path)
	}
	require.Equal(t, []string{"a.go", "a_windows.go"}, paths, "files that belong to the module, for whatever system")
}

// parse makes a tree of a module example.com/m with the given files.
func parse(t *testing.T, files map[string]string) *archtest.Tree {
	t.Helper()
	got, err := archtest.Load(mapFS(files))
	require.NoError(t, err, "loading a made-up module")
	return got
}

func mapFS(files map[string]string) fs.FS {
	fsys := fstest.MapFS{"go.mod": {Data: []byte("module example.com/m\n")}}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

// loaded gives what load read.
func loaded[T any](t *testing.T, load func() (T, error)) T {
	t.Helper()
	got, err := load()
	require.NoError(t, err, "reading the module's source")
	return got
}
