package gosource

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// WriteText writes the report as a table with a row for each folder, the sum, and a list of problems if there are any.
func (r Report) WriteText(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(tw, "packages\tfiles\tlines\tfunctions\texported\tparse errors\t  folder\n")
	for _, c := range r.Folders {
		c.writeRow(tw, c.Folder)
	}
	r.Total.writeRow(tw, "total")
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("gosource: writing the table: %w", err)
	}
	return r.writeProblems(w)
}

// writeRow writes the name last, where it needs no column. A writer that fails keeps its error for Flush.
func (c Count) writeRow(tw *tabwriter.Writer, name string) {
	fmt.Fprintf(tw, "%d\t%d\t%d\t%d\t%d\t%d\t  %s\n", c.Packages, c.Files, c.Lines, c.Functions, c.Exported, c.ParseErrors, name)
}

func (r Report) writeProblems(w io.Writer) error {
	if len(r.Problems) == 0 {
		return nil
	}
	text := fmt.Appendf(nil, "\nproblems: %d\n", len(r.Problems))
	for _, p := range r.Problems {
		text = fmt.Appendf(text, "  %s: %s\n", p.Path, p.Text)
	}
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("gosource: writing the problems: %w", err)
	}
	return nil
}

// WriteJSON writes the report as one indented JSON object and a line end.
func (r Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("gosource: writing JSON: %w", err)
	}
	return nil
}
