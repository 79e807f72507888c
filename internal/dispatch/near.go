package dispatch

import (
	"slices"
	"strings"
)

// near returns those of names that name may be a slip or another spelling of, at most three, the likeliest first.
func near(name string, names []string) []string {
	type candidate struct {
		name     string
		distance int
	}
	wanted := plain(name)
	var found []candidate
	for _, n := range names {
		// A third of the letters wrong is a slip; more is another word.
		if d := distance(wanted, plain(n)); d <= max(1, min(len(wanted), len(n))/3) {
			found = append(found, candidate{n, d})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return a.distance - b.distance })
	var result []string
	for _, c := range found[:min(3, len(found))] {
		result = append(result, c.name)
	}
	return result
}

// plain drops what differs between load_model, loadModel and LoadModel. Names are cut, so that a hostile or mistaken
// one costs nothing to speak of.
func plain(name string) string {
	return strings.ToLower(strings.ReplaceAll(name[:min(len(name), 64)], "_", ""))
}

// distance is how many bytes must be changed, put in or left out to make one string the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // row[j]: from a[:i] to b[:j]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
