package gosource

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
)

// File is what one source file holds. It is plain data, so that it can travel from a worker.
type File struct {
	Path      string
	Package   string // "" if the file does not get as far as its package clause
	Lines     int    // a last line without a line end counts
	Functions int    // functions and methods declared; literals do not count
	Exported  int    // exported names declared at the top level, and exported methods
	ParseErr  string // the first syntax error and the number of others; "" for a sound file
}

// Parse reads and counts the file at path. A file with syntax errors is a result with ParseErr set, and only its lines are
// counted; the error is for a file that cannot be read.
func Parse(path string) (File, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return File{}, fmt.Errorf("gosource: %w", err)
	}
	return parse(path, src), nil
}

func parse(path string, src []byte) File {
	f := File{Path: path, Lines: lines(src)}
	syntax, err := parser.ParseFile(token.NewFileSet(), "", src, parser.SkipObjectResolution)
	if syntax != nil && syntax.Name != nil {
		f.Package = syntax.Name.Name
	}
	if err != nil {
		f.ParseErr = parseError(err)
		return f
	}
	for _, decl := range syntax.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			f.Functions++
			f.Exported += exported(decl.Name)
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				f.Exported += exported(declared(spec)...)
			}
		}
	}
	return f
}

func lines(src []byte) int {
	n := bytes.Count(src, []byte("\n"))
	if len(src) > 0 && src[len(src)-1] != '\n' {
		n++
	}
	return n
}

// parseError gives the place within the file, without the path, which a table shows in its own way.
func parseError(err error) string {
	var list scanner.ErrorList
	if !errors.As(err, &list) || len(list) == 0 {
		return err.Error()
	}
	first := fmt.Sprintf("%d:%d: %s", list[0].Pos.Line, list[0].Pos.Column, list[0].Msg)
	if len(list) > 1 {
		first += fmt.Sprintf(" (and %d more)", len(list)-1)
	}
	return first
}

func declared(spec ast.Spec) []*ast.Ident {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		return []*ast.Ident{spec.Name}
	case *ast.ValueSpec:
		return spec.Names
	}
	return nil // an import
}

func exported(names ...*ast.Ident) (n int) {
	for _, name := range names {
		if name.IsExported() {
			n++
		}
	}
	return n
}
