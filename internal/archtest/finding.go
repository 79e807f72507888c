package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// Finding is one place that breaks a rule.
type Finding struct {
	Where string // file and line, or the package; for people
	Key   string // stays the same when lines move; what an exception names
	Text  string // what is wrong, and what to do instead
}

// String gives the place and the text on one line.
func (f Finding) String() string { return f.Where + ": " + f.Text }

// Exceptions maps the key of a finding to the reason why it is all right.
type Exceptions map[string]string

// Except returns the findings that no exception names, followed by a finding for each exception that has no reason or that
// nothing needs any more.
func Except(found []Finding, except Exceptions) []Finding {
	var left []Finding
	used := make(map[string]bool)
	for _, f := range found {
		if _, ok := except[f.Key]; ok {
			used[f.Key] = true
			continue
		}
		left = append(left, f)
	}
	for key, reason := range except {
		switch {
		case strings.TrimSpace(reason) == "":
			left = append(left, Finding{Where: key, Key: key, Text: "this exception gives no reason"})
		case !used[key]:
			left = append(left, Finding{Where: key, Key: key, Text: "nothing needs this exception any more; remove it"})
		}
	}
	slices.SortStableFunc(left, func(a, b Finding) int { return strings.Compare(a.Where, b.Where) })
	return left
}

// List joins findings for a failure message, one on each line, with the key that an exception would name.
func List(found []Finding) string {
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintf(&b, "\n  %s  [%s]", f, f.Key)
	}
	return b.String()
}
