package gosource_test

import (
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/examples/internal/gosource"
)

// TestStandardLibrary counts the packages of go/... in a second way, token by token, and compares.
func TestStandardLibrary(t *testing.T) {
	root := filepath.Join(goroot(t), "src", "go")
	found, err := gosource.Walk(root)
	require.NoError(t, err, "walking %s", root)
	require.Empty(t, found.Problems, "folders that could not be read")
	require.Greater(t, len(found.Files), 200, "files found in %s", root)

	table := gosource.NewTable(root)
	var want gosource.Count
	broken := 0
	for _, path := range found.Files {
		f, err := gosource.Parse(path)
		require.NoError(t, err, "parsing %s", path)
		table.Add(f)
		if f.ParseErr != "" {
			broken++
			require.Contains(t, path, "testdata", "a broken file: %s", f.ParseErr)
		} else {
			want.Functions += functions(t, path)
		}
		want.Files++
	}
	got := table.Report()
	require.Equal(t, want.Files, got.Total.Files, "files")
	require.Equal(t, want.Functions, got.Total.Functions, "functions")
	require.Len(t, got.Problems, broken, "broken files that the table names")
	require.Greater(t, got.Total.Exported, 1000, "exported names")
}

// functions counts the func tokens that stand first on their line outside braces and parentheses.
func functions(t *testing.T, path string) (n int) {
	src, err := os.ReadFile(path)
	require.NoError(t, err, "reading %s", path)
	var s scanner.Scanner
	fset := token.NewFileSet()
	s.Init(fset.AddFile(path, -1, len(src)), src, nil, 0)
	depth, last := 0, token.SEMICOLON
	for {
		_, tok, _ := s.Scan()
		switch tok {
		case token.EOF:
			return n
		case token.LBRACE, token.LPAREN:
			depth++
		case token.RBRACE, token.RPAREN:
			depth--
		case token.FUNC:
			if depth == 0 && last == token.SEMICOLON {
				n++
			}
		}
		last = tok
	}
}

func goroot(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	require.NoError(t, err, "asking the go command for its root")
	return strings.TrimSpace(string(out))
}
