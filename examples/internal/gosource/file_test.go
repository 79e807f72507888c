package gosource_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/examples/internal/gosource"
)

func TestParse(t *testing.T) {
	tests := []struct {
		name, src string
		want      gosource.File
	}{
		{"empty file", "", gosource.File{ParseErr: "1:1: expected 'package', found 'EOF'"}},
		{"package clause alone", "package a", gosource.File{Package: "a", Lines: 1}},
		{"blank lines count", "\n\npackage a\n\n", gosource.File{Package: "a", Lines: 4}},
		{"last line without an end", "package a\n// end", gosource.File{Package: "a", Lines: 2}},
		{
			"functions and methods", "package a\nfunc F() { _ = func() {} }\nfunc f()\ntype t int\nfunc (t) M() {}\nfunc (t) m() {}\n",
			gosource.File{Package: "a", Lines: 6, Functions: 4, Exported: 2},
		},
		{
			"types, constants, variables", "package a\nimport \"os\"\ntype ( T struct{ Field int }; u int )\nconst A, b = 1, 2\nvar ( C, D = 1, 2; e = os.Args )\n",
			gosource.File{Package: "a", Lines: 5, Exported: 4},
		},
		{"an exported name inside a function", "package a\nfunc f() { const A = 1 }\n", gosource.File{Package: "a", Lines: 2, Functions: 1}},
		{
			"broken after the package clause", "package a\nfunc F() {}\nvar = 1\nvar = 2\n",
			gosource.File{Package: "a", Lines: 4, ParseErr: "3:5: expected 'IDENT', found '=' (and 1 more)"},
		},
		{"not Go", "hello\n", gosource.File{Lines: 1, ParseErr: "1:1: expected 'package', found hello"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, t.TempDir(), "a.go", tt.src)
			tt.want.Path = path
			got, err := gosource.Parse(path)
			require.NoError(t, err, "parsing %q", tt.src)
			require.Equal(t, tt.want, got, "counts of %q", tt.src)
		})
	}
}

func TestParseOfWhatCannotBeRead(t *testing.T) {
	_, err := gosource.Parse(filepath.Join(t.TempDir(), "none.go"))
	require.ErrorIs(t, err, fs.ErrNotExist, "parsing a file that is not there")

	_, err = gosource.Parse(t.TempDir())
	require.Error(t, err, "parsing a folder")
}

// write makes a file below dir, with the folders on its way.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755), "making the folder of %s", name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644), "writing %s", name)
	return path
}
