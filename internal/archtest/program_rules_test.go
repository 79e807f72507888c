package archtest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/archtest"
)

// loadProgram outlives the test that happens to need it first, and so has no test's context.
func loadProgram() (*archtest.Program, error) {
	return archtest.LoadProgram(context.Background(), root)
}

type programCheck func(*archtest.Program) []archtest.Finding

// in makes an offence of made-up packages, of which m is the module's root.
func (c programCheck) in(name, key string, sources ...archtest.Source) offence {
	return offence{name, key, func(t *testing.T) []archtest.Finding { return c(checked(t, sources...)) }}
}

func (c programCheck) rule(name string, except archtest.Exceptions, offences ...offence) rule {
	source := func(t *testing.T) []archtest.Finding { return archtest.Except(c(loaded(t, program)), except) }
	return rule{name, source, offences}
}

func checked(t *testing.T, sources ...archtest.Source) *archtest.Program {
	t.Helper()
	p, err := archtest.CheckSource("m", sources...)
	require.NoError(t, err, "checking made-up packages")
	return p
}

// programRules are the rules that need types.
func programRules() []rule {
	return []rule{surfaceRule(), linkedRule(), waitGroupRule(), logRule(), startRule(), clockRule(), ownerRule()}
}

func surfaceRule() rule {
	c := programCheck(archtest.Surface)
	hidden := archtest.Source{Path: "m/internal/wire", Text: "package wire; type T struct{}"}
	shows := func(name, text string) offence {
		public := archtest.Source{Path: "m", Text: `package m; import "m/internal/wire"; var hidden wire.T; ` + text}
		return c.in(name, "m.F", hidden, public)
	}
	return c.rule("public surface", nil,
		shows("a variable", "var F wire.T"),
		shows("a parameter", "func F(...wire.T) {}"),
		shows("a result", "func F() (int, map[string]*wire.T) { return 0, nil }"),
		shows("a field", "type F struct { A chan wire.T; b wire.T }"),
		shows("an embedded type", "type F struct { *wire.T }"),
		shows("an alias", "type F = wire.T"),
		shows("a method", "type F struct{ b wire.T }; func (*F) M() func([2]wire.T) { return nil }; func (*F) m(wire.T) {}"),
		shows("an interface", "type F interface{ m(wire.T); M(wire.T) }"),
		shows("a hidden type in between", "type f struct{}; func (f) M(wire.T) {}; func F() f { return f{} }"),
		shows("a constraint", "func F[T wire.T | int](T) {}"),
		shows("a type argument", "type f[T any] struct{}; var F f[wire.T]"),
	)
}

func linkedRule() rule {
	c := programCheck(func(p *archtest.Program) []archtest.Finding { return archtest.Linked(p, modules) })
	return c.rule("modules linked", nil, offence{"a module", "example.com/other", func(t *testing.T) []archtest.Finding {
		p := checked(t, archtest.Source{Path: "m", Text: "package m"}, archtest.Source{Path: "m/internal/testkit", Text: "package testkit"})
		for _, pkg := range p.Packages {
			pkg.Modules = []string{"go.uber.org/zap", "example.com/other"}
		}
		return c(p)
	}})
}

func waitGroupRule() rule {
	c := programCheck(func(p *archtest.Program) []archtest.Finding { return library(archtest.WaitGroupStarts(p)) })
	group := archtest.Source{Path: "sync", Text: "package sync; type WaitGroup struct{}; func (*WaitGroup) Go(func()) {}; func (*WaitGroup) Wait() {}"}
	return c.rule("wait groups", groupStarters,
		c.in("a start", "file.go: run", group,
			archtest.Source{Path: "m", Text: `package m; import "sync"; func run() { var g sync.WaitGroup; g.Go(nil); g.Wait() }`}))
}

func logRule() rule {
	c := programCheck(func(p *archtest.Program) []archtest.Finding { return archtest.Logging(p, logFile) })
	zap := archtest.Source{Path: "go.uber.org/zap", Text: `package zap; type Logger struct{}; func (*Logger) Info(string) {}; func (*Logger) Sync() {}`}
	return c.rule("logging", nil,
		c.in("a promoted method value", "file.go: T.run", zap,
			archtest.Source{Path: "m", Text: `package m; import "go.uber.org/zap"; type T struct{ *zap.Logger }; func (t T) run() { t.Sync(); log := t.Info; log("") }`}),
		c.in("the same file name elsewhere", "sub/"+logFile+": run", zap,
			archtest.Source{Path: "m", File: logFile, Text: `package m; import "go.uber.org/zap"; func run(l *zap.Logger) { l.Info("") }`},
			archtest.Source{Path: "m/sub", File: logFile, Text: `package sub; import "go.uber.org/zap"; func run(l *zap.Logger) { l.Info("") }`}),
	)
}
