package executor_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What SEEDS.md must have: so many rows of loky's tests, and a section of what was measured.
const (
	lokyTests   = 159
	lokyDefects = 8
)

var (
	seedRow    = regexp.MustCompile(`^\| ([LD]\d+) \| (.*) \| (.*) \|$`)
	namedTests = regexp.MustCompile("`(Test[^`]+|Example[^`]+)`")
)

// TestSeeds holds the list of loky's tests against ours.
func TestSeeds(t *testing.T) {
	text, err := os.ReadFile("SEEDS.md")
	require.NoError(t, err, "read the list")
	tests := testTexts(t)
	listed := make(map[string]bool)
	for line := range strings.Lines(string(text)) {
		row := seedRow.FindStringSubmatch(strings.TrimSpace(line))
		if row == nil {
			continue
		}
		id, answer := row[1], row[3]
		require.False(t, listed[id], "%s stands in the list twice", id)
		listed[id] = true
		named := namedTests.FindAllStringSubmatch(answer, -1)
		for _, name := range named {
			require.NoError(t, isThere(tests, name[1]), "%s", id)
		}
		if len(named) == 0 {
			require.Regexp(t, `^(none: |choice: )\S.{15,}`, answer, "%s: neither a test nor a reason", id)
		}
	}
	for i := range lokyTests {
		id := fmt.Sprint("L", i+1)
		require.True(t, listed[id], "%s is missing", id)
		delete(listed, id)
	}
	for i := range lokyDefects {
		id := fmt.Sprint("D", i+1)
		require.True(t, listed[id], "%s is missing", id)
		delete(listed, id)
	}
	require.Empty(t, listed, "ids that there are not")
}

// isThere says what is missing of a test, which may be named with the names of subtests behind it.
func isThere(tests map[string][]string, name string) error {
	parts := strings.Split(name, "/")
	texts, ok := tests[parts[0]]
	if !ok {
		return fmt.Errorf("there is no %s", parts[0])
	}
	for _, part := range parts[1:] {
		found := false
		for _, text := range texts {
			found = found || text == part
		}
		if !found {
			return fmt.Errorf("%s has no %q", parts[0], part)
		}
	}
	return nil
}

// testTexts are the tests and examples of the module, each with the strings in its body and in the rows beside it.
func testTexts(t *testing.T) map[string][]string {
	t.Helper()
	tests := make(map[string][]string)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		var shared []string
		for _, decl := range file.Decls {
			if decl, ok := decl.(*ast.GenDecl); ok {
				shared = append(shared, stringsIn(decl)...)
			}
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
				tests[f.Name.Name] = append(stringsIn(f), shared...)
			}
		}
		return nil
	})
	require.NoError(t, err, "read the tests of the module")
	return tests
}

func stringsIn(node ast.Node) (all []string) {
	ast.Inspect(node, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				all = append(all, text)
			}
		}
		return true
	})
	return all
}
