package faulttest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// codeInMarkdown is no text, and may look like a link.
var codeInMarkdown = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")

var markdownLink = regexp.MustCompile(`\]\(([^)#\s]+)`)

// TestLinks follows the links of the module's pages to its own files.
func TestLinks(t *testing.T) {
	pages, err := filepath.Glob("../../*.md")
	require.NoError(t, err, "find the pages")
	pages = append(pages, catalogue, "../wire/PROTOCOL.md")
	links := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err, "read a page")
		for _, m := range markdownLink.FindAllStringSubmatch(codeInMarkdown.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			_, err := os.Stat(filepath.Join(filepath.Dir(page), m[1]))
			require.NoError(t, err, "link in %s", page)
		}
	}
	require.Positive(t, links, "links that were followed")
}
