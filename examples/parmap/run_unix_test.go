//go:build linux || darwin

package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/examples/internal/gosource"
)

func TestJobs(t *testing.T) {
	const one, two = "package one\n\n// Zwei Wörter.\n", "package two"
	dir := write(t, map[string]string{"a/one.go": one, "two.go": two, "empty.go": "", "no.txt": "not read"})
	packed := func(text string) int {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, err := z.Write([]byte(text))
		require.NoError(t, err, "compressing %q", text)
		require.NoError(t, z.Close(), "compressing %q", text)
		return b.Len()
	}
	wants := map[string]func(string) string{
		"hash":     func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) },
		"compress": func(text string) string { return fmt.Sprintf("%8d %8d", len(text), packed(text)) },
		"count": func(text string) string {
			return fmt.Sprintf("%7d %7d %8d", strings.Count(text, "\n"), len(strings.Fields(text)), len(text))
		},
	}
	for job, want := range wants {
		t.Run(job, func(t *testing.T) {
			got := parmapWith(t, "-dir", dir, "-job", job, "-ordered", "-list")
			require.Zero(t, got.status, "status: %s", got.stderr)
			lines := strings.Join([]string{want(one) + "  a/one.go", want("") + "  empty.go", want(two) + "  two.go", "parmap: " + job}, "\n")
			require.Equal(t, 2, strings.Count(got.stdout, lines), "times that both runs printed\n%s\nin\n%s", lines, got.stdout)
		})
	}
}

// The order is that of the files if it is asked for, and everything is there in either case.
func TestOrder(t *testing.T) {
	dir := smallTree(t)
	found, err := gosource.Walk(dir)
	require.NoError(t, err, "walking %s", dir)
	var want []string
	for _, path := range found.Files {
		b, err := os.ReadFile(path)
		require.NoError(t, err, "reading %s", path)
		short, err := filepath.Rel(dir, path)
		require.NoError(t, err, "shortening %s", path)
		want = append(want, fmt.Sprintf("%x  %s", sha256.Sum256(b), filepath.ToSlash(short)))
	}
	for _, args := range [][]string{{"-ordered"}, {}} {
		got := parmapWith(t, append(args, "-dir", dir, "-list")...)
		require.Zero(t, got.status, "status with %q: %s", args, got.stderr)
		lines, _, ok := strings.Cut(got.stdout, "parmap: ")
		require.True(t, ok, "a summary in %s", got.stdout)
		list := strings.Split(strings.TrimSpace(lines), "\n")
		if len(args) == 0 {
			slices.Sort(list)
			slices.Sort(want)
		}
		require.Equal(t, want, list, "results with %q", args)
	}
}

func TestPoison(t *testing.T) {
	dir := smallTree(t)
	for _, job := range jobNames() {
		got := parmapWith(t, "-dir", dir, "-job", job, "-poison", "ast/ast.go", "-poison", "token/token.go")
		require.Zero(t, got.status, "status of %s: %s", job, got.stderr)
		require.Regexp(t, `(?s)2 failed\n  ast/ast\.go: its worker was killed by signal 9 \(killed\)\n`+
			`  token/token\.go: its worker was killed by signal 9 \(killed\)\nparmap: .* 2 failed\n  ast`, got.stdout, "what %s prints", job)
		require.Contains(t, got.stdout, " workers started, 4 crashed, ", "what %s says of its workers", job)
	}
}

func TestDeadline(t *testing.T) {
	dir := write(t, map[string]string{"a.go": "package a\n", "b.go": "package b\n"})
	got := parmapWith(t, "-dir", dir, "-deadline", "1ns")
	require.Zero(t, got.status, "status: %s", got.stderr)
	require.Equal(t, 2, strings.Count(got.stdout, "2 failed\n  a.go: its time is over\n  b.go: its time is over\n"),
		"runs without time for a file in\n%s", got.stdout)
}

var staffLine = regexp.MustCompile(`(?m)^parmap: (\d+) workers started, 0 crashed, 0 replaced for their memory, (\d+) left after 20ms without work\n\z`)

// The second run has the workers of the first one, and at the end there are none.
func TestReuse(t *testing.T) {
	dir := smallTree(t)
	for size, reason := range map[string]string{"2": "reused", "1": "resized", "4": "resized"} {
		t.Run(size, func(t *testing.T) {
			got := parmapWith(t, "-dir", dir, "-workers", "2", "-resize", size, "-idle", "20ms")
			require.Zero(t, got.status, "status: %s", got.stderr)
			require.Contains(t, got.stdout, "at most 2 workers; 0 failed\n", "the first run")
			require.Contains(t, got.stdout, "; executor "+reason+", at most "+size+" workers; 0 failed\n", "the second run")
			numbers := staffLine.FindStringSubmatch(got.stdout)
			require.NotNil(t, numbers, "the last line of\n%s", got.stdout)
			if size != "1" { // else one may have left because there were too many
				require.Equal(t, numbers[1], numbers[2], "workers that started and left in\n%s", got.stdout)
			}
		})
	}
}

func TestNothingToDo(t *testing.T) {
	got := parmapWith(t, "-dir", t.TempDir())
	require.Zero(t, got.status, "status of an empty folder: %s", got.stderr)
	require.Contains(t, got.stdout, "hash of 0 files, 0.0 MB", "its summary")
	require.Contains(t, got.stdout, "parmap: 0 workers started", "no worker is started without work")
}
