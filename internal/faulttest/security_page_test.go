package faulttest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	securityRow  = regexp.MustCompile(`^\| (\d+) \| .+ \| (.+) \|$`)
	securityFile = regexp.MustCompile("`([a-z_/]+\\.(?:go|md))`")
)

// TestSecurityPage holds SECURITY.md to what there is: each question has an answer, and each test and file that an answer
// names exists.
func TestSecurityPage(t *testing.T) {
	const questions = 35
	text, err := os.ReadFile("../../SECURITY.md")
	require.NoError(t, err, "read the page")
	tests := testNames(t)
	next := 1
	for line := range strings.Lines(string(text)) {
		for _, name := range namedTests.FindAllStringSubmatch(line, -1) {
			if strings.HasPrefix(name[1], "Test") || strings.HasPrefix(name[1], "Fuzz") {
				require.True(t, tests[name[1]], "there is no test %s, which is named in: %s", name[1], line)
			}
		}
		for _, name := range securityFile.FindAllStringSubmatch(line, -1) {
			require.FileExists(t, filepath.Join("../..", name[1]), "a file that is named in: %s", line)
		}
		row := securityRow.FindStringSubmatch(strings.TrimSpace(line))
		if row == nil {
			continue
		}
		require.Equal(t, strconv.Itoa(next), row[1], "number of the next question")
		next++
		require.Regexp(t, `^(Done|Not applicable|Choice)\b`, row[2], "answer to question %s", row[1])
	}
	require.Equal(t, questions, next-1, "questions that have an answer")
}
