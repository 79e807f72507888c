package gosource

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// Table adds files up. What it writes depends on the files alone, not on the order in which they came: a file that is added
// again replaces itself. The zero value is not ready, NewTable is the only way; one goroutine at a time may use a table.
type Table struct {
	root     string
	files    map[string]File
	problems map[string]Problem
}

// NewTable makes an empty table that writes paths relative to root, the folder given to [Walk].
func NewTable(root string) *Table {
	return &Table{root: root, files: make(map[string]File), problems: make(map[string]Problem)}
}

// Add takes the counts of one file. A file with a syntax error is counted with its lines and also listed among the problems.
func (t *Table) Add(f File) {
	path := t.relative(f.Path)
	t.files[path] = f
	delete(t.problems, path)
	if f.ParseErr != "" {
		t.problems[path] = Problem{path, f.ParseErr}
	}
}

// AddError takes note of a file or folder that could not be read.
func (t *Table) AddError(path string, err error) {
	t.AddProblem(Problem{path, reason(err)})
}

// AddProblem takes note of a problem, for example one of a [Listing].
func (t *Table) AddProblem(p Problem) {
	p.Path = t.relative(p.Path)
	delete(t.files, p.Path)
	t.problems[p.Path] = p
}

// Count is a row of the table: one folder, or the sum of all.
type Count struct {
	Folder      string `json:"folder,omitempty"`
	Packages    int    `json:"packages"` // names in package clauses, so p and p_test of one folder are two
	Files       int    `json:"files"`
	Lines       int    `json:"lines"`
	Functions   int    `json:"functions"`
	Exported    int    `json:"exported"`
	ParseErrors int    `json:"parse_errors"` // files with a syntax error
}

func (c *Count) add(f File) {
	c.Files++
	c.Lines += f.Lines
	c.Functions += f.Functions
	c.Exported += f.Exported
	if f.ParseErr != "" {
		c.ParseErrors++
	}
}

// Report is a finished table.
type Report struct {
	Folders  []Count   `json:"folders"` // sorted by folder
	Total    Count     `json:"total"`
	Problems []Problem `json:"problems"` // sorted by path
}

// Report gives what has been added so far.
func (t *Table) Report() Report {
	r := Report{Folders: []Count{}, Problems: []Problem{}}
	folders := make(map[string]*Count)
	type pkg struct{ dir, name string }
	packages := make(map[pkg]bool)
	for path, f := range t.files {
		dir := "."
		if i := strings.LastIndexByte(path, '/'); i >= 0 {
			dir = path[:i]
		}
		if folders[dir] == nil {
			folders[dir] = &Count{Folder: dir}
		}
		folders[dir].add(f)
		r.Total.add(f)
		if p := (pkg{dir, f.Package}); p.name != "" && !packages[p] {
			packages[p] = true
			folders[dir].Packages++
			r.Total.Packages++
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(folders)) {
		r.Folders = append(r.Folders, *folders[dir])
	}
	for _, path := range slices.Sorted(maps.Keys(t.problems)) {
		r.Problems = append(r.Problems, t.problems[path])
	}
	return r
}

// relative writes path with slashes and as seen from the root, if it lies below it.
func (t *Table) relative(path string) string {
	if rel, err := filepath.Rel(t.root, path); err == nil && filepath.IsLocal(rel) {
		path = rel
	}
	return filepath.ToSlash(path)
}

// reason gives what err says without the path, which stands beside it.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}
