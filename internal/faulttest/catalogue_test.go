package faulttest_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// catalogue is the list of faults and of what answers each.
const catalogue = "../childtest/FAULTS.md"

// The faults that the list must have: a letter and ranges of numbers.
var faults = map[string][][2]int{
	"P": {{1, 20}}, "F": {{1, 26}}, "R": {{1, 18}}, "T": {{1, 8}}, "S": {{1, 11}}, "X": {{1, 11}}, "G": {{1, 6}}, "O": {{1, 15}},
	"E": {{1, 14}}, "H": {{1, 13}}, "L": {{1, 7}}, "Z": {{1, 15}},
	"C": {{1, 42}, {44, 55}, {57, 60}, {62, 72}, {74, 78}, {80, 80}, {82, 116}},
}

// parts are what a fault may wait for.
var parts = []string{"shared memory", "sockets and mailbox"}

var (
	faultRow   = regexp.MustCompile(`^\| ([A-Z]\d\d\d?) \| (.*) \|$`)
	namedTests = regexp.MustCompile("`([^`]+)`")
	inSuite    = regexp.MustCompile(`^childtest: (.+)/(.+)$`)
)

// TestCatalogue holds the list of faults against the tests that there are.
func TestCatalogue(t *testing.T) {
	text, err := os.ReadFile(catalogue)
	require.NoError(t, err, "read the list of faults")
	tests := testNames(t)
	listed := make(map[string]bool)
	for line := range strings.Lines(string(text)) {
		named := namedTestsIn(t, tests, line)
		row := faultRow.FindStringSubmatch(strings.TrimSpace(line))
		if row == nil {
			continue
		}
		id, answer := row[1], row[2]
		require.False(t, listed[id], "%s stands in the list twice", id)
		listed[id] = true
		if !reasoned(t, id, answer) {
			require.Positive(t, named, "%s: neither a test nor a reason: %s", id, answer)
		}
	}
	for _, id := range wantedFaults() {
		require.True(t, listed[id], "%s is missing in %s", id, catalogue)
		delete(listed, id)
	}
	require.Empty(t, listed, "ids in the list that the catalogue of faults does not have")
}

// reasoned reports whether a row says why there is no test.
func reasoned(t *testing.T, id, answer string) bool {
	t.Helper()
	if part, waits := strings.CutPrefix(answer, "arrives with: "); waits {
		require.True(t, slices.ContainsFunc(parts, func(p string) bool { return strings.HasPrefix(part, p) }),
			"%s waits for a part that nobody brings: %s", id, part)
		return true
	}
	return strings.HasPrefix(answer, "by construction: ") || strings.HasPrefix(answer, "choice: ")
}

// namedTestsIn returns how many tests a line names, which must exist.
func namedTestsIn(t *testing.T, tests map[string]bool, line string) (n int) {
	t.Helper()
	for _, quoted := range namedTests.FindAllStringSubmatch(line, -1) {
		name := quoted[1]
		if rule := inSuite.FindStringSubmatch(name); rule != nil {
			if rule[1] == "section" { // how they are written
				continue
			}
			require.True(t, tests[rule[1]+"/"+rule[2]], "the suite has no rule %q, which %s names", name, line)
			n++
		} else if strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") {
			function, _, _ := strings.Cut(name, "/")
			require.True(t, tests[function], "there is no test %s, which %s names", function, line)
			n++
		}
	}
	return n
}

func wantedFaults() (ids []string) {
	for letter, ranges := range faults {
		for _, r := range ranges {
			for n := r[0]; n <= r[1]; n++ {
				ids = append(ids, fmt.Sprintf("%s%02d", letter, n))
			}
		}
	}
	return ids
}

// testNames are the test and fuzz functions of the module, and the rules of the suite as "section/rule".
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := make(map[string]bool)
	rules := make(map[string][]string) // by the variable that holds them
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		inSuite := filepath.Base(filepath.Dir(path)) == "childtest"
		if !inSuite && !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Recv == nil {
					names[decl.Name.Name] = true
				}
			case *ast.GenDecl:
				if inSuite {
					collectRules(decl, rules)
				}
			}
		}
		return nil
	})
	require.NoError(t, err, "read the tests of the module")
	for _, section := range rules["sections"] {
		title, variable, _ := strings.Cut(section, "\n")
		addRules(names, rules, title, variable)
	}
	return names
}

// addRules adds the rules of one list, and of those that it is put together from.
func addRules(names map[string]bool, rules map[string][]string, title, list string) {
	for _, rule := range rules[list] {
		if name, other, _ := strings.Cut(rule, "\n"); name != "" {
			names[title+"/"+name] = true
		} else {
			addRules(names, rules, title, other)
		}
	}
}

// collectRules reads the lists of pairs {"name", identifier} that a declaration has, as the suite's are, each pair as
// "name\nidentifier". A list that is put together from others has theirs too.
func collectRules(decl *ast.GenDecl, rules map[string][]string) {
	for _, spec := range decl.Specs {
		v, ok := spec.(*ast.ValueSpec)
		if !ok || len(v.Values) != 1 {
			continue
		}
		name := v.Names[0].Name
		ast.Inspect(v.Values[0], func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if pair := rulePair(n); pair != "" {
					rules[name] = append(rules[name], pair)
					return false
				}
			case *ast.Ident:
				if strings.HasSuffix(n.Name, "Rules") {
					rules[name] = append(rules[name], "\n"+n.Name)
				}
			}
			return true
		})
	}
}

// rulePair is a composite literal of a string and an identifier, or "".
func rulePair(lit *ast.CompositeLit) string {
	if len(lit.Elts) != 2 {
		return ""
	}
	name, ok := lit.Elts[0].(*ast.BasicLit)
	if !ok || name.Kind != token.STRING {
		return ""
	}
	text, err := strconv.Unquote(name.Value)
	if err != nil {
		return ""
	}
	identifier, ok := lit.Elts[1].(*ast.Ident)
	if !ok {
		return ""
	}
	return text + "\n" + identifier.Name
}
