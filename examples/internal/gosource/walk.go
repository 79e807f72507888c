package gosource

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Listing is what [Walk] found.
type Listing struct {
	Files    []string  // sorted
	Problems []Problem // folders that could not be read, sorted
}

// Problem is a file or folder that could not be used, and why.
type Problem struct {
	Path string `json:"path"`
	Text string `json:"error"`
}

// Walk lists each regular file below root whose name ends in .go, as root joined with the rest of its path. Symbolic links
// below root are not followed; root itself may be one. A folder that cannot be read becomes a problem of the listing; the
// error is for a root that cannot be used at all.
func Walk(root string) (Listing, error) {
	info, err := os.Stat(root)
	if err != nil {
		return Listing{}, fmt.Errorf("gosource: %w", err)
	}
	if !info.IsDir() {
		return Listing{}, fmt.Errorf("gosource: %s is not a folder", root)
	}
	found := WalkFS(os.DirFS(root))
	for i, name := range found.Files {
		found.Files[i] = filepath.Join(root, filepath.FromSlash(name))
	}
	for i, p := range found.Problems {
		found.Problems[i].Path = filepath.Join(root, filepath.FromSlash(p.Path))
	}
	return found, nil
}

// WalkFS lists the files of fsys as [Walk] does, with the paths of fsys.
func WalkFS(fsys fs.FS) Listing {
	var found Listing
	// The function keeps every error to itself, so the walk has none to return.
	_ = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			found.Problems = append(found.Problems, Problem{name, reason(err)})
		case d.Type().IsRegular() && strings.HasSuffix(name, ".go"):
			found.Files = append(found.Files, name)
		}
		return nil
	})
	slices.Sort(found.Files)
	slices.SortFunc(found.Problems, comparePaths)
	return found
}

func comparePaths(a, b Problem) int { return strings.Compare(a.Path, b.Path) }
