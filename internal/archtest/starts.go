package archtest

import (
	"go/ast"
	"strings"
)

// Goroutines reports each go statement outside tests. The key names file and function, so one exception covers one owner.
func Goroutines(t *Tree) []Finding {
	var found []Finding
	for _, f := range t.Files {
		if f.Test {
			continue
		}
		for _, decl := range f.Syntax.Decls {
			ast.Inspect(decl, func(n ast.Node) bool {
				if _, ok := n.(*ast.GoStmt); ok {
					found = append(found, Finding{t.where(n.Pos()), f.Path + ": " + declName(decl), "starts a goroutine; internal/task does, and owns it"})
				}
				return true
			})
		}
	}
	return found
}

// WaitGroupStarts reports each use of the method Go of sync.WaitGroup, which starts a goroutine without a go statement.
func WaitGroupStarts(p *Program) []Finding {
	return p.uses(func(name string) string {
		if name == "(*sync.WaitGroup).Go" {
			return "starts a goroutine; internal/task does, and owns it"
		}
		return ""
	})
}

// Sleeps reports each use of time.Sleep, in tests too.
func Sleeps(t *Tree) []Finding {
	var found []Finding
	for _, f := range t.Files {
		name := importedAs(f.Syntax, "time")
		if name == "" {
			continue
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			var sleeps bool
			switch n := n.(type) {
			case *ast.SelectorExpr:
				x, ok := n.X.(*ast.Ident)
				sleeps = ok && x.Name == name && n.Sel.Name == "Sleep"
			case *ast.Ident:
				sleeps = name == "." && n.Name == "Sleep"
			}
			if sleeps {
				found = append(found, Finding{t.where(n.Pos()), f.Path, "sleeps; wait for the event"})
			}
			return true
		})
	}
	return found
}

// declName names a declaration as Type.Method, Function, or "var" for anything else.
func declName(decl ast.Decl) string {
	fn, ok := decl.(*ast.FuncDecl)
	if !ok {
		return "var"
	}
	return strings.TrimPrefix(receiver(fn)+"."+fn.Name.Name, ".")
}

// receiver names the type that fn is a method of, "" for a function.
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return ""
	}
	expr := fn.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.IndexListExpr:
			expr = e.X
		case *ast.ParenExpr:
			expr = e.X
		case *ast.Ident:
			return e.Name
		default:
			return "?"
		}
	}
}
