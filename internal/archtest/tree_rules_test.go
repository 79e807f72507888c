package archtest_test

import (
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/archtest"
)

type treeCheck func(*archtest.Tree) []archtest.Finding

// in makes an offence of the files of a made-up module.
func (c treeCheck) in(name, key string, files map[string]string) offence {
	return offence{name, key, func(t *testing.T) []archtest.Finding { return c(parse(t, files)) }}
}

func (c treeCheck) rule(name string, except archtest.Exceptions, offences ...offence) rule {
	source := func(t *testing.T) []archtest.Finding { return archtest.Except(c(loaded(t, tree)), except) }
	return rule{name, source, offences}
}

// treeRules are the rules that look at the shape of the code.
func treeRules() []rule {
	return []rule{
		importRule(), externalRule(), requirementRule(), docRule(), sizeRule(), goroutineRule(), sleepRule(), wordRule(),
	}
}

func importRule() rule {
	c := treeCheck(func(t *archtest.Tree) []archtest.Finding { return archtest.Imports(t, layers) })
	return c.rule("imports", nil,
		c.in("an import from above", "internal/wire -> .", map[string]string{
			"internal/wire/a.go": `package wire; import _ "example.com/m"`,
			"executor/a.go":      `package executor; import _ "example.com/m"; import _ "example.com/m/future"`,
		}),
		c.in("an import for another system", "internal/restart -> internal/task", map[string]string{
			"internal/restart/a_plan9.go": `package restart; import _ "example.com/m/internal/task"`,
		}),
		c.in("a sibling", "mailbox -> executor", map[string]string{
			"mailbox/a.go":      `package mailbox; import _ "example.com/m/executor"`,
			"mailbox/a_test.go": `package mailbox_test; import _ "example.com/m/executor"`,
		}),
		c.in("test support in the library", "executor -> internal/testkit", map[string]string{
			"executor/a.go":           `package executor; import _ "example.com/m/internal/testkit"`,
			"executor/a_test.go":      `package executor_test; import _ "example.com/m/internal/testkit"`,
			"internal/childtest/a.go": `package childtest; import _ "example.com/m/internal/testkit"`,
		}),
		c.in("a test that looks up", "internal/wire -> .", map[string]string{
			"internal/wire/a_test.go": `package wire_test; import _ "example.com/m/internal/wire"; import _ "example.com/m"`,
		}),
		c.in("a package without a row", "other", map[string]string{"other/a.go": "package other"}),
	)
}

func externalRule() rule {
	c := treeCheck(func(t *archtest.Tree) []archtest.Finding { return archtest.Externals(t, layers, modules) })
	return c.rule("modules imported", nil,
		c.in("a test module in the library", "github.com/stretchr/testify/require", map[string]string{
			"a.go":      `package m; import _ "github.com/stretchr/testify/require"; import _ "go.uber.org/zap/zapcore"`,
			"a_test.go": `package m_test; import _ "github.com/stretchr/testify/require"; import _ "net/http"`,
		}),
		c.in("an unknown module in a test", "example.com/other", map[string]string{
			"a_test.go": `package m_test; import _ "example.com/other"`,
		}),
	)
}

func requirementRule() rule {
	c := treeCheck(func(t *archtest.Tree) []archtest.Finding { return archtest.Requirements(t, modules) })
	return c.rule("modules required", nil,
		c.in("a line", "example.com/other", map[string]string{
			"go.mod": "module example.com/m\n\ngo 1.26.0\n\nrequire example.com/other v1.0.0\n\nrequire (\n\tgo.uber.org/zap v1.28.0\n)\n",
		}),
		c.in("a line of a block", "example.com/other", map[string]string{
			"go.mod": "module example.com/m\n\nrequire (\n\tgo.uber.org/zap v1.28.0\n\texample.com/other v1.0.0 // indirect\n)\n",
		}),
	)
}

func docRule() rule {
	c := treeCheck(archtest.Docs)
	const pkg = "// Package m is.\npackage m\n\n"
	return c.rule("docs", unnamed,
		c.in("a method without a comment", "a.go: T.M", map[string]string{
			"a.go": pkg + "// A T is.\ntype T[K any] struct{}\n\nfunc (t *T[K]) M() {}\n\nfunc (t *T[K]) m() {}\n\n" +
				"func (T[K]) Error() string { return \"\" }\n\ntype u int\n\nfunc (u) M() {}\n",
			"a_test.go": "package m_test\n\nfunc Helper() {}\n",
		}),
		c.in("a comment on something else", "a.go: F", map[string]string{
			"a.go": pkg + "// A F does it.\nfunc F() {}\n\n// G: does.\nfunc G() {}\n",
		}),
		c.in("a type of a group", "a.go: B", map[string]string{
			"a.go": pkg + "// A and B are.\ntype (\n\t// A is.\n\tA int\n\tB int\n)\n",
		}),
		c.in("a group without a comment", "a.go: One", map[string]string{
			"a.go": pkg + "var (\n\tOne = 1\n\tTwo = 2 // is\n)\n\n// States.\nconst (\n\tThree = 3\n)\n",
		}),
		c.in("a package without a comment", "sub", map[string]string{"sub/a.go": "package sub", "sub/b.go": "package sub"}),
	)
}

func sizeRule() rule {
	c := treeCheck(func(t *archtest.Tree) []archtest.Finding { return archtest.Sizes(t, limits) })
	return c.rule("sizes", large,
		c.in("a file", "a.go", map[string]string{
			"a.go":      "package m\n" + strings.Repeat("\n", limits.Lines),
			"b.go":      "package m\n" + strings.Repeat("\n", limits.Lines-1),
			"a_test.go": "package m\n" + strings.Repeat("\n", 2*limits.Lines),
		}),
		c.in("a struct", "a.go: T", map[string]string{
			"a.go": "package m\n\ntype T struct {\n\ta, b, c, d, e, f, g, h, i, j, k, l int\n\tU\n}\n\n" +
				"type U struct{ a, b, c, d, e, f, g, h, i, j, k, l int }\n",
		}),
	)
}

func goroutineRule() rule {
	c := treeCheck(func(t *archtest.Tree) []archtest.Finding { return library(archtest.Goroutines(t)) })
	return c.rule("goroutines", starters,
		c.in("a statement", "a.go: T.run", map[string]string{
			"a.go":               "package m\n\ntype T struct{}\n\nfunc (T) run() { func() { go println() }() }\n",
			"a_test.go":          "package m\n\nfunc run() { go println() }\n",
			"internal/task/a.go": "package task\n\nfunc run() { go println() }\n",
		}),
		c.in("a statement in a variable", "a.go: var", map[string]string{
			"a.go": "package m\n\nvar run = func() { go println() }\n",
		}),
	)
}

// library leaves out what internal/task does, because it is there for that, and what serves tests.
func library(found []archtest.Finding) (kept []archtest.Finding) {
	for _, f := range found {
		if !slices.Contains(startersByTrade, path.Dir(f.Key[:strings.Index(f.Key, ":")])) {
			kept = append(kept, f)
		}
	}
	return kept
}

func sleepRule() rule {
	c := treeCheck(archtest.Sleeps)
	return c.rule("sleeps", nil,
		c.in("a call under another name", "a_test.go", map[string]string{
			"a_test.go": "package m\n\nimport wait \"time\"\n\nvar time struct{ Sleep int }\n\nfunc run() { wait.Sleep(1); _ = time.Sleep }\n",
		}),
		c.in("a value", "a.go", map[string]string{"a.go": "package m\n\nimport \"time\"\n\nvar pause = time.Sleep\n"}),
		c.in("a dot import", "a.go", map[string]string{"a.go": "package m\n\nimport . \"time\"\n\nfunc run() { Sleep(1) }\n"}),
	)
}

func wordRule() rule {
	search := func(t *testing.T, files map[string]string, words []string) []archtest.Finding {
		found, err := archtest.Words(mapFS(files), words)
		require.NoError(t, err, "reading made-up files")
		return found
	}
	return rule{
		name: "words",
		source: func(t *testing.T) []archtest.Finding {
			found, err := archtest.Words(os.DirFS(root), words)
			require.NoError(t, err, "reading the project's files")
			return found
		},
		offences: []offence{
			{"a word", "docs/a.md: secret", func(t *testing.T) []archtest.Finding {
				files := map[string]string{"docs/a.md": "no\nthe topsecret secret\n", ".git/config": "secret", "image.png": "\x00 secret"}
				return search(t, files, []string{"secret"})
			}},
			{"a path", ".ci/run: /home/", func(t *testing.T) []archtest.Finding {
				files := map[string]string{".ci/run": "cd /home/me\n", "a.md": "example.com/home/page\n"}
				return search(t, files, []string{"/home/"})
			}},
		},
	}
}
