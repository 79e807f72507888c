package archtest

import (
	"fmt"
	"go/ast"
)

// Limits bounds what a file and a struct may hold.
type Limits struct {
	Lines  int // of a file that is not a test
	Fields int // of a named struct that is not in a test; an embedded field counts as one
}

// Sizes reports each file and each struct outside tests that is larger than l allows. A thing that outgrows it usually
// hides a second idea.
func Sizes(t *Tree, l Limits) []Finding {
	var found []Finding
	for _, f := range t.Files {
		if f.Test {
			continue
		}
		if f.Lines > l.Lines {
			found = append(found, Finding{f.Path, f.Path, fmt.Sprintf("%d lines, more than %d", f.Lines, l.Lines)})
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			s, ok := spec.Type.(*ast.StructType)
			if n := fields(s); ok && n > l.Fields {
				found = append(found, Finding{
					Where: t.where(spec.Pos()),
					Key:   f.Path + ": " + spec.Name.Name,
					Text:  fmt.Sprintf("struct %s has %d fields, more than %d", spec.Name.Name, n, l.Fields),
				})
			}
			return true
		})
	}
	return found
}

func fields(s *ast.StructType) int {
	if s == nil {
		return 0
	}
	return s.Fields.NumFields()
}
