package archtest

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Layer says what the packages it names may import of their own module. Packages are written relative to the module: "."
// is its root, "a/..." is a and everything below it, "..." is everything.
type Layer struct {
	Package  string
	Imports  []string // for all files
	Tests    []string // for test files on top, besides the package itself and the layers that are for tests
	ForTests bool     // only test files and other layers that are ForTests may import it
}

// Imports reports each import of the tree's own packages that layers does not allow, and each package without a layer. Of
// several layers that match a package, the longest counts.
func Imports(t *Tree, layers []Layer) []Finding {
	var found []Finding
	for _, f := range t.Files {
		own, ok := layerOf(layers, f.Dir)
		if !ok {
			found = append(found, Finding{f.Path, f.Dir, "package " + f.Dir + " has no row in the import table; decide what it may import"})
			continue
		}
		for _, spec := range f.Syntax.Imports {
			target, ok := t.own(spec.Path.Value)
			if !ok || allowed(f, own, target, layers) {
				continue
			}
			found = append(found, Finding{
				Where: t.where(spec.Pos()),
				Key:   f.Dir + " -> " + target,
				Text:  fmt.Sprintf("package %s may not import %s", f.Dir, target),
			})
		}
	}
	return found
}

func allowed(f *File, own Layer, target string, layers []Layer) bool {
	layer, _ := layerOf(layers, target)
	if layer.ForTests {
		return f.Test || own.ForTests
	}
	if matchAny(own.Imports, target) {
		return true
	}
	return f.Test && (target == f.Dir || matchAny(own.Tests, target))
}

// own turns a quoted import path into a package of the tree's module.
func (t *Tree) own(quoted string) (string, bool) {
	importPath, err := strconv.Unquote(quoted)
	if err != nil {
		return "", false
	}
	if importPath == t.Module {
		return ".", true
	}
	return strings.CutPrefix(importPath, t.Module+"/")
}

func layerOf(layers []Layer, dir string) (best Layer, ok bool) {
	for _, l := range layers {
		if match(l.Package, dir) && (!ok || len(l.Package) > len(best.Package)) {
			best, ok = l, true
		}
	}
	return best, ok
}

func matchAny(patterns []string, dir string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return match(p, dir) })
}

func match(pattern, dir string) bool {
	if pattern == "..." {
		return true
	}
	if above, ok := strings.CutSuffix(pattern, "/..."); ok {
		return dir == above || strings.HasPrefix(dir, above+"/")
	}
	return path.Clean(pattern) == dir
}

// Modules names the modules that others' code may come from.
type Modules struct {
	Library     []string // any file may import them
	LibraryNeed []string // those of Library need them
	Tests       []string // test files and packages that are ForTests may import them
	TestsNeed   []string // those of Tests need them
}

// Externals reports each import from a module that m does not allow.
func Externals(t *Tree, layers []Layer, m Modules) []Finding {
	var found []Finding
	for _, f := range t.Files {
		own, _ := layerOf(layers, f.Dir)
		for _, spec := range f.Syntax.Imports {
			importPath, err := strconv.Unquote(spec.Path.Value)
			if _, ours := t.own(spec.Path.Value); ours || err != nil || standard(importPath) {
				continue
			}
			if within(m.Library, importPath) || (f.Test || own.ForTests) && within(m.Tests, importPath) {
				continue
			}
			found = append(found, Finding{t.where(spec.Pos()), importPath, importPath + " is not among the modules that this file may use"})
		}
	}
	return found
}

var requireLine = regexp.MustCompile(`(?m)^(?:require)?\s+([^\s()]+\.[^\s()]+)\s+v\S+`)

// Requirements reports each module that go.mod requires and m does not name.
func Requirements(t *Tree, m Modules) []Finding {
	var found []Finding
	for _, hit := range requireLine.FindAllStringSubmatch(t.GoMod, -1) {
		if !slices.Contains(slices.Concat(m.Library, m.LibraryNeed, m.Tests, m.TestsNeed), hit[1]) {
			found = append(found, Finding{"go.mod", hit[1], hit[1] + " is not among the modules that this one may require"})
		}
	}
	return found
}

// standard says whether importPath is of the standard library, whose first element has no dot.
func standard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

func within(modules []string, importPath string) bool {
	return slices.ContainsFunc(modules, func(m string) bool { return importPath == m || strings.HasPrefix(importPath, m+"/") })
}
