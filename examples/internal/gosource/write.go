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
	const row = "%d\t%d\t%d\t%d\t  %s\n" // the name stands last, where it needs no column
	fmt.Fprint(tw, "files\tlines\tfunctions\texported\t  folder\n")
	for _, c := range r.Folders {
		fmt.Fprintf(tw, row, c.Files, c.Lines, c.Functions, c.Exported, c.Folder)
	}
	c := r.Total
	fmt.Fprintf(tw, row, c.Files, c.Lines, c.Functions, c.Exported, "total")
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("gosource: writing the table: %w", err)
	}
	return r.writeProblems(w)
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
