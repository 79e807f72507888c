package archtest

import (
	"fmt"
	"go/types"
	"slices"
)

// Surface reports each exported name of a public package from which a user can reach a type of an internal package of the
// same module: through a parameter, a result, a field, a method, a type parameter, or an alias.
func Surface(p *Program) []Finding {
	w := walker{program: p, seen: make(map[types.Type]bool)}
	for _, pkg := range p.Packages {
		if !pkg.Public() {
			continue
		}
		scope := pkg.Types.Scope()
		for _, name := range scope.Names() {
			if obj := scope.Lookup(name); obj.Exported() {
				w.root = obj
				w.object(obj)
			}
		}
	}
	return w.found
}

// walker goes through everything that an exported name shows. A type is walked once: the first name that leads to an
// offence is the one that is reported.
type walker struct {
	program *Program
	root    types.Object
	seen    map[types.Type]bool
	found   []Finding
}

func (w *walker) object(obj types.Object) {
	if t, ok := obj.(*types.TypeName); ok && t.IsAlias() {
		w.typ(types.Unalias(t.Type()))
		return
	}
	w.typ(obj.Type())
}

func (w *walker) typ(t types.Type) {
	if w.seen[t] {
		return
	}
	w.seen[t] = true
	switch t := t.(type) {
	case *types.Alias:
		w.typ(types.Unalias(t))
	case *types.Named:
		w.named(t)
	case *types.Pointer:
		w.typ(t.Elem())
	case *types.Slice:
		w.typ(t.Elem())
	case *types.Array:
		w.typ(t.Elem())
	case *types.Chan:
		w.typ(t.Elem())
	case *types.Map:
		w.typ(t.Key())
		w.typ(t.Elem())
	case *types.Signature:
		w.signature(t)
	case *types.Tuple:
		for v := range t.Variables() {
			w.typ(v.Type())
		}
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() || f.Embedded() {
				w.typ(f.Type())
			}
		}
	case *types.Interface:
		w.iface(t)
	case *types.Union:
		for term := range t.Terms() {
			w.typ(term.Type())
		}
	case *types.TypeParam:
		w.typ(t.Constraint())
	}
}

func (w *walker) named(t *types.Named) {
	for arg := range t.TypeArgs().Types() {
		w.typ(arg)
	}
	pkg := t.Obj().Pkg()
	if pkg == nil || !within([]string{w.program.Module}, pkg.Path()) {
		return // of the language or of another module
	}
	if internal(pkg.Path()) {
		w.seen[t] = false // each name that shows it is an offence of its own
		w.found = append(w.found, w.offence(t))
		return
	}
	for p := range t.TypeParams().TypeParams() {
		w.typ(p)
	}
	for m := range t.Methods() {
		if m.Exported() {
			w.typ(m.Type())
		}
	}
	w.typ(t.Underlying())
}

func (w *walker) signature(t *types.Signature) {
	for p := range t.TypeParams().TypeParams() {
		w.typ(p)
	}
	w.typ(t.Params())
	w.typ(t.Results())
}

func (w *walker) iface(t *types.Interface) {
	for m := range t.ExplicitMethods() {
		if m.Exported() {
			w.typ(m.Type())
		}
	}
	for e := range t.EmbeddedTypes() {
		w.typ(e)
	}
}

func (w *walker) offence(t *types.Named) Finding {
	name := w.root.Pkg().Path() + "." + w.root.Name()
	return Finding{w.program.where(w.root.Pos()), name, fmt.Sprintf("%s shows %s, which users cannot name", name, t)}
}

// Linked reports each module whose code ends up in a program that imports a public package, although it is not of the
// library's.
func Linked(p *Program, m Modules) []Finding {
	allowed := slices.Concat(m.Library, m.LibraryNeed)
	var found []Finding
	for _, pkg := range p.Packages {
		for _, other := range pkg.Modules {
			if pkg.Public() && !slices.Contains(allowed, other) {
				path := pkg.Types.Path()
				found = append(found, Finding{path, other, "importing " + path + " pulls in " + other})
			}
		}
	}
	return found
}
