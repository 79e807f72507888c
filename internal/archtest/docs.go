package archtest

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// Docs reports each package without a package comment and each exported name outside tests without a comment. The comment
// of a function, a method, a type, and a lone constant or variable starts with the name, that of a type perhaps with an
// article. In a group of constants or variables the comment of the group will do. What the members of structs and
// interfaces mean is often said by their names; they are left to the reader, and so are methods that the language or its
// library gives a meaning.
func Docs(t *Tree) []Finding {
	var found []Finding
	commented := make(map[string]bool)
	for _, f := range t.Files {
		if f.Test {
			continue
		}
		commented[f.Dir] = commented[f.Dir] || f.Syntax.Doc != nil
		d := docs{tree: t, file: f}
		for _, decl := range f.Syntax.Decls {
			d.decl(decl)
		}
		found = append(found, d.found...)
	}
	for dir, ok := range commented {
		if !ok {
			found = append(found, Finding{dir, dir, "no file of the package has a package comment"})
		}
	}
	slices.SortStableFunc(found, func(a, b Finding) int { return strings.Compare(a.Where, b.Where) })
	return found
}

// wellKnown are methods whose meaning is fixed elsewhere.
var wellKnown = map[string]bool{"Error": true, "Is": true, "String": true, "Unwrap": true}

type docs struct {
	tree  *Tree
	file  *File
	found []Finding
}

func (d *docs) report(at token.Pos, name, text string) {
	d.found = append(d.found, Finding{d.tree.where(at), d.file.Path + ": " + name, name + " " + text})
}

func (d *docs) decl(decl ast.Decl) {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		owner := receiver(decl)
		if owner != "" && (!ast.IsExported(owner) || wellKnown[decl.Name.Name]) {
			return
		}
		if decl.Name.IsExported() {
			d.named(decl.Pos(), declName(decl), decl.Name.Name, decl.Doc)
		}
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				d.typeSpec(decl, spec)
			case *ast.ValueSpec:
				d.valueSpec(decl, spec)
			}
		}
	}
}

// named wants a comment that starts with name, or with one of articles and name.
func (d *docs) named(at token.Pos, full, name string, doc *ast.CommentGroup, articles ...string) {
	if doc == nil {
		d.report(at, full, "has no comment")
		return
	}
	words := strings.Fields(doc.Text())
	if len(words) > 1 && words[0] != name && slices.Contains(articles, words[0]) {
		words = words[1:]
	}
	if len(words) == 0 || strings.TrimRight(words[0], ",:;") != name {
		d.report(at, full, "has a comment that does not start with the name")
	}
}

func (d *docs) typeSpec(decl *ast.GenDecl, spec *ast.TypeSpec) {
	if !spec.Name.IsExported() {
		return
	}
	doc := spec.Doc
	if doc == nil && !decl.Lparen.IsValid() {
		doc = decl.Doc
	}
	d.named(spec.Pos(), spec.Name.Name, spec.Name.Name, doc, "A", "An", "The")
}

func (d *docs) valueSpec(decl *ast.GenDecl, spec *ast.ValueSpec) {
	for _, name := range spec.Names {
		switch {
		case !name.IsExported():
		case !decl.Lparen.IsValid():
			d.named(spec.Pos(), name.Name, name.Name, decl.Doc)
		case spec.Doc == nil && spec.Comment == nil && decl.Doc == nil:
			d.report(spec.Pos(), name.Name, "has no comment, nor has its group")
		}
	}
}
