package archtest

import (
	"cmp"
	"go/ast"
	"go/parser"
)

// Source is one package of one file, named file.go unless File says otherwise.
type Source struct{ Path, File, Text string }

// CheckSource makes a Program of packages given as text, each after those it imports. It lets a test show a rule an offence
// that the real source does not have.
func CheckSource(module string, sources ...Source) (*Program, error) {
	b := newBuilder(module, nil)
	for _, s := range sources {
		f, err := parser.ParseFile(b.program.fset, s.Path+"/"+cmp.Or(s.File, "file.go"), s.Text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		if err := b.check(s.Path, []*ast.File{f}); err != nil {
			return nil, err
		}
	}
	return b.program, nil
}
