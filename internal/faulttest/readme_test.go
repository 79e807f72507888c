package faulttest_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/testkit"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// imports are the packages that a page uses without saying so in each block.
var imports = map[string]string{
	"context": "context", "fmt": "fmt", "log": "log", "os": "os", "sha256": "crypto/sha256", "signal": "os/signal", "slices": "slices",
	"testing": "testing", "time": "time", "unsafe": "unsafe",
	"supervisor": "github.com/workerlink/supervisor", "executor": "github.com/workerlink/supervisor/executor",
}

// heldElsewhere is in a block that is compiled, run and compared with the page where it belongs: in examples/vecenv/vecenv.
const heldElsewhere = "func train("

// TestProgramsInPages compiles the Go code in the README that is a whole program or a whole function. What does not parse as
// such is a few statements, for which a reader has to put in the rest.
func TestProgramsInPages(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err, "find the module")
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err, "read the page")
	home := t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}} // what the go command is to see in the module
	args := []string{"build", "-buildvcs=false", "-o", home + string(filepath.Separator), "-overlay", filepath.Join(home, "overlay.json")}
	for i, m := range goBlock.FindAllStringSubmatch(strings.ReplaceAll(string(text), "\r", ""), -1) {
		source, whole := completed(m[1])
		if !whole || strings.Contains(m[1], heldElsewhere) {
			continue
		}
		name := fmt.Sprintf("block%d.go", i)
		require.NoError(t, os.WriteFile(filepath.Join(home, name), []byte(source), 0o600), "write %s", name)
		folder := filepath.Join("internal", fmt.Sprintf("block%d", i))
		overlay.Replace[filepath.Join(root, folder, name)] = filepath.Join(home, name)
		args = append(args, "./"+filepath.ToSlash(folder))
	}
	require.GreaterOrEqual(t, len(overlay.Replace), 2, "programs and functions in the page: at least the first one, and TestMain")
	b, err := json.Marshal(overlay)
	require.NoError(t, err, "the overlay as JSON")
	require.NoError(t, os.WriteFile(filepath.Join(home, "overlay.json"), b, 0o600), "write the overlay")
	cmd := exec.CommandContext(testkit.Context(t), "go", args...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "go %s says\n%s", strings.Join(args, " "), out)
}

// completed is a block as a file, if it holds whole declarations.
func completed(block string) (source string, whole bool) {
	file, err := parser.ParseFile(token.NewFileSet(), "", "package main\n"+block, parser.SkipObjectResolution)
	if err != nil {
		return "", false
	}
	missing := make(map[string]bool)
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && imports[x.Name] != "" && !strings.Contains(block, `import "`+imports[x.Name]+`"`) {
				missing[imports[x.Name]] = true
			}
		}
		return true
	})
	source = "package main\n"
	for path := range missing {
		source += fmt.Sprintf("import %q\n", path)
	}
	source += block
	if !strings.Contains(block, "func main(") {
		source += "\nfunc main() {}\n" // what is no program is not built into the folder of -o
	}
	return source, true
}
