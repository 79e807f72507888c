package gosource_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/examples/internal/gosource"
)

const wantText = "" +
	"  packages  files  lines  functions  exported  parse errors  folder\n" +
	"         1      1     10          2         1             0  .\n" +
	"         1      2      7          0         5             1  a/<b>\n" +
	"         2      3    350         22         0             0  z\n" +
	"         4      6    367         24         6             1  total\n" +
	"\n" +
	"problems: 2\n" +
	"  a/<b>/broken.go: 1:1: wrong\n" +
	"  gone: file does not exist\n"

const wantJSON = `{
  "folders": [
    {
      "folder": ".",
      "packages": 1,
      "files": 1,
      "lines": 10,
      "functions": 2,
      "exported": 1,
      "parse_errors": 0
    },
    {
      "folder": "a/<b>",
      "packages": 1,
      "files": 2,
      "lines": 7,
      "functions": 0,
      "exported": 5,
      "parse_errors": 1
    },
    {
      "folder": "z",
      "packages": 2,
      "files": 3,
      "lines": 350,
      "functions": 22,
      "exported": 0,
      "parse_errors": 0
    }
  ],
  "total": {
    "packages": 4,
    "files": 6,
    "lines": 367,
    "functions": 24,
    "exported": 6,
    "parse_errors": 1
  },
  "problems": [
    {
      "path": "a/<b>/broken.go",
      "error": "1:1: wrong"
    },
    {
      "path": "gone",
      "error": "file does not exist"
    }
  ]
}
`

func TestTableWritesTheSameInAnyOrder(t *testing.T) {
	root := filepath.FromSlash("some/where")
	at := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
	steps := []func(*gosource.Table){
		func(t *gosource.Table) {
			t.Add(gosource.File{Path: at("top.go"), Package: "top", Lines: 10, Functions: 2, Exported: 1})
		},
		func(t *gosource.Table) {
			t.Add(gosource.File{Path: at("a/<b>/b.go"), Package: "b", Lines: 4, Exported: 5})
		},
		func(t *gosource.Table) {
			t.Add(gosource.File{Path: at("a/<b>/broken.go"), Lines: 3, ParseErr: "1:1: wrong"})
		},
		func(t *gosource.Table) {
			t.Add(gosource.File{Path: at("z/z.go"), Package: "z", Lines: 300, Functions: 20})
		},
		func(t *gosource.Table) {
			t.Add(gosource.File{Path: at("z/y.go"), Package: "z", Lines: 30, Functions: 1})
		},
		func(t *gosource.Table) {
			t.Add(gosource.File{Path: at("z/z_test.go"), Package: "z_test", Lines: 20, Functions: 1})
		},
		func(t *gosource.Table) {
			t.AddError(at("gone"), fmt.Errorf("wrapped: %w", &fs.PathError{Op: "open", Path: "elsewhere", Err: fs.ErrNotExist}))
		},
	}
	for range 50 {
		rand.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
		table := gosource.NewTable(root)
		for _, step := range steps {
			step(table)
		}
		steps[0](table) // once more, as after a retry
		var text, object bytes.Buffer
		require.NoError(t, table.Report().WriteText(&text), "writing the table")
		require.Equal(t, wantText, text.String(), "the table")
		require.NoError(t, table.Report().WriteJSON(&object), "writing JSON")
		require.Equal(t, wantJSON, object.String(), "the JSON")
	}
}

func TestTableWithoutFiles(t *testing.T) {
	var text, object bytes.Buffer
	r := gosource.NewTable(".").Report()
	require.NoError(t, r.WriteText(&text), "writing the table")
	require.Equal(t, ""+
		"  packages  files  lines  functions  exported  parse errors  folder\n"+
		"         0      0      0          0         0             0  total\n", text.String(), "an empty table")
	require.NoError(t, r.WriteJSON(&object), "writing JSON")
	require.Contains(t, object.String(), `"problems": []`, "an empty list is a list")
	require.True(t, json.Valid(object.Bytes()), "JSON: %s", &object)
}

func TestTableOfARetry(t *testing.T) {
	table := gosource.NewTable("root")
	path := filepath.Join("root", "a.go")
	table.AddError(path, errors.New("crashed"))
	require.Equal(t, []gosource.Problem{{Path: "a.go", Text: "crashed"}}, table.Report().Problems, "problems after a failure")
	table.Add(gosource.File{Path: path, Lines: 2})
	require.Empty(t, table.Report().Problems, "problems after the second try")
	require.Equal(t, 1, table.Report().Total.Files, "files after the second try")
	table.AddProblem(gosource.Problem{Path: path, Text: "gone"})
	require.Zero(t, table.Report().Total, "the sum when the file has gone")
}

func TestTableKeepsPathsOutsideItsRoot(t *testing.T) {
	table := gosource.NewTable(filepath.Join("some", "where"))
	table.Add(gosource.File{Path: filepath.Join("some", "other", "a.go")})
	require.Equal(t, "some/other", table.Report().Folders[0].Folder, "folder of a file that is not below the root")
}

// fullDisk refuses to be written to after some bytes.
type fullDisk int

func (d *fullDisk) Write(p []byte) (int, error) {
	if *d -= fullDisk(len(p)); *d < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}

func TestWritingReportsFailure(t *testing.T) {
	table := gosource.NewTable(".")
	table.AddProblem(gosource.Problem{Path: "a.go", Text: "gone"})
	for name, write := range map[string]func(room fullDisk) error{
		"table":    func(room fullDisk) error { room = 0; return table.Report().WriteText(&room) },
		"problems": func(room fullDisk) error { return table.Report().WriteText(&room) },
		"JSON":     func(room fullDisk) error { room = 0; return table.Report().WriteJSON(&room) },
	} {
		require.ErrorContains(t, write(100), "disk full", "writing the %s to a full disk", name)
	}
}
