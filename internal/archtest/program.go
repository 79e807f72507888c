package archtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Program is one module with its types, tests left out, as it is built for this system.
type Program struct {
	Module   string
	Packages []*Package // a package follows those it imports

	fset *token.FileSet
	dir  string // of the module, "" if it is made up
}

// Package is one package of a [Program].
type Package struct {
	Types   *types.Package
	Files   []*ast.File
	Info    *types.Info
	Modules []string // modules whose packages end up in a program that imports this one
}

// Public says whether other modules can import p.
func (p *Package) Public() bool {
	return p.Types.Name() != "main" && !internal(p.Types.Path())
}

func internal(importPath string) bool {
	return strings.Contains("/"+importPath+"/", "/internal/")
}

// listed is what the go command says about a package.
type listed struct {
	Dir, ImportPath, Export string
	GoFiles, Deps           []string
	Module                  *struct{ Path string }
}

// LoadProgram type-checks the module in dir. It asks the go command, which compiles what it has not compiled yet, for the
// export data of everything that is imported; only the module's own packages are read as source.
func LoadProgram(ctx context.Context, dir string) (*Program, error) {
	all, err := list(ctx, dir)
	if err != nil {
		return nil, err
	}
	out, err := goCommand(ctx, dir, "list", "-m", "-f", "{{.Path}}\n{{.Dir}}")
	if err != nil {
		return nil, err
	}
	module, home, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	b := newBuilder(module, all)
	b.program.dir = home
	for _, l := range all {
		if l.Module == nil || l.Module.Path != b.program.Module {
			continue
		}
		var files []*ast.File
		for _, name := range l.GoFiles {
			f, err := parser.ParseFile(b.program.fset, filepath.Join(l.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, fmt.Errorf("archtest: %w", err)
			}
			files = append(files, f)
		}
		if err := b.check(l.ImportPath, files); err != nil {
			return nil, err
		}
	}
	return b.program, nil
}

func list(ctx context.Context, dir string) ([]listed, error) {
	out, err := goCommand(ctx, dir, "list", "-deps", "-export", "-json=Dir,ImportPath,Export,GoFiles,Deps,Module", "./...")
	if err != nil {
		return nil, err
	}
	var all []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		switch err := dec.Decode(&l); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("archtest: reading go list: %w", err)
		}
		all = append(all, l)
	}
}

func goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("archtest: go %s: %w\n%s", args[0], err, &said)
	}
	return out, nil
}

// builder checks packages one after another. Its own importer hands out the packages already checked, so that one type has
// one identity, and export data for all others.
type builder struct {
	program *Program
	checked map[string]*types.Package
	others  types.Importer
	modules map[string][]string
}

func newBuilder(module string, all []listed) *builder {
	b := &builder{
		program: &Program{Module: module, fset: token.NewFileSet()},
		checked: make(map[string]*types.Package),
		modules: make(map[string][]string),
	}
	byPath := make(map[string]listed)
	for _, l := range all {
		byPath[l.ImportPath] = l
	}
	for _, l := range all {
		seen := make(map[string]bool)
		for _, dep := range l.Deps {
			if m := byPath[dep].Module; m != nil && m.Path != module && !seen[m.Path] {
				seen[m.Path] = true
				b.modules[l.ImportPath] = append(b.modules[l.ImportPath], m.Path)
			}
		}
	}
	b.others = importer.ForCompiler(b.program.fset, "gc", func(importPath string) (io.ReadCloser, error) {
		return os.Open(byPath[importPath].Export)
	})
	return b
}

func (b *builder) Import(importPath string) (*types.Package, error) {
	if p := b.checked[importPath]; p != nil {
		return p, nil
	}
	return b.others.Import(importPath)
}

func (b *builder) check(importPath string, files []*ast.File) error {
	info := &types.Info{Uses: make(map[*ast.Ident]types.Object), Types: make(map[ast.Expr]types.TypeAndValue)}
	conf := types.Config{Importer: b}
	pkg, err := conf.Check(importPath, b.program.fset, files, info)
	if err != nil {
		return fmt.Errorf("archtest: %w", err)
	}
	b.checked[importPath] = pkg
	b.program.Packages = append(b.program.Packages, &Package{Types: pkg, Files: files, Info: info, Modules: b.modules[importPath]})
	return nil
}

// where names the line of a node of this program.
func (p *Program) where(pos token.Pos) string {
	at := p.fset.Position(pos)
	if rel, err := filepath.Rel(p.dir, at.Filename); err == nil {
		at.Filename = rel
	}
	return fmt.Sprintf("%s:%d", filepath.ToSlash(at.Filename), at.Line)
}

// uses reports each use of a function or method for which fault, given its full name, says what is wrong.
func (p *Program) uses(fault func(fullName string) string) []Finding {
	var found []Finding
	for _, pkg := range p.Packages {
		for _, f := range pkg.Files {
			file := p.file(pkg, f)
			for _, decl := range f.Decls {
				ast.Inspect(decl, func(n ast.Node) bool {
					id, ok := n.(*ast.Ident)
					if !ok {
						return true
					}
					if fn, ok := pkg.Info.Uses[id].(*types.Func); ok {
						if text := fault(fn.FullName()); text != "" {
							found = append(found, Finding{p.where(id.Pos()), file + ": " + declName(decl), text})
						}
					}
					return true
				})
			}
		}
	}
	return found
}

// file names a file of pkg relative to the module, as a [Tree] does.
func (p *Program) file(pkg *Package, f *ast.File) string {
	base := filepath.Base(p.fset.Position(f.FileStart).Filename)
	dir := strings.TrimPrefix(strings.TrimPrefix(pkg.Types.Path(), p.Module), "/")
	return strings.TrimPrefix(dir+"/"+base, "/")
}
