package archtest

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// Tree is the parsed source of one module, without the modules nested in it.
type Tree struct {
	Module string // module path
	GoMod  string // text of go.mod
	Files  []*File

	fset *token.FileSet
}

// File is one source file of a [Tree], whatever system it is built for.
type File struct {
	Path   string // slash-separated, relative to the module
	Dir    string // folder of Path; "." for the module's root
	Test   bool   // named _test.go
	Lines  int    // line ends
	Syntax *ast.File
}

var moduleLine = regexp.MustCompile(`(?m)^module\s+(\S+)`)

// Load parses the module whose go.mod lies at the root of fsys. It leaves out what the go command leaves out: testdata,
// vendor, folders that start with a dot or an underscore, and folders with a go.mod of their own.
func Load(fsys fs.FS) (*Tree, error) {
	gomod, err := fs.ReadFile(fsys, "go.mod")
	if err != nil {
		return nil, fmt.Errorf("archtest: no module: %w", err)
	}
	module := moduleLine.FindSubmatch(gomod)
	if module == nil {
		return nil, errors.New("archtest: go.mod names no module")
	}
	t := &Tree{Module: string(module[1]), GoMod: string(gomod), fset: token.NewFileSet()}
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && foreign(fsys, name):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		return t.add(fsys, name)
	})
	if err != nil {
		return nil, fmt.Errorf("archtest: reading the module: %w", err)
	}
	return t, nil
}

func foreign(fsys fs.FS, dir string) bool {
	base := path.Base(dir)
	if base == "testdata" || base == "vendor" || base[0] == '.' || base[0] == '_' {
		return true
	}
	_, err := fs.Stat(fsys, path.Join(dir, "go.mod"))
	return err == nil
}

func (t *Tree) add(fsys fs.FS, name string) error {
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	syntax, err := parser.ParseFile(t.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	t.Files = append(t.Files, &File{
		Path:   name,
		Dir:    path.Dir(name),
		Test:   strings.HasSuffix(name, "_test.go"),
		Lines:  bytes.Count(src, []byte("\n")),
		Syntax: syntax,
	})
	return nil
}

// where names the line of a node of this tree.
func (t *Tree) where(pos token.Pos) string {
	p := t.fset.Position(pos)
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}

// importedAs returns the name under which f knows the package at importPath, "" if it does not import it.
func importedAs(f *ast.File, importPath string) string {
	for _, spec := range f.Imports {
		if strings.Trim(spec.Path.Value, `"`+"`") != importPath {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(importPath)
	}
	return ""
}
