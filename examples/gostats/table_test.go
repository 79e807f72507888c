package main

import (
	"encoding/json"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/examples/internal/gosource"
)

func TestTableIsTheSame(t *testing.T) {
	dir := smallTree(t)
	want := gostatsWith(t, "-dir", dir, "-type", "goroutine", "-workers", "1")
	require.Zero(t, want.status, "status with one goroutine: %s", want.stderr)
	require.Contains(t, want.stdout, "  total\n", "the table")

	tests := []struct {
		name string
		args []string
	}{
		{"8 goroutines", []string{"-type", "goroutine", "-workers", "8"}},
		{"1 process", []string{"-type", "process", "-workers", "1"}},
		{"8 processes", []string{"-type", "process", "-workers", "8"}},
		{"8 processes, 5 killed", []string{"-workers", "8", "-chaos", "5"}},
		{"2 processes, 5 killed", []string{"-workers", "2", "-chaos", "5"}},
		// The sixth kill within ten seconds is one more than the restart policy forgives.
		{"1 process, 8 killed", []string{"-workers", "1", "-chaos", "8"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := gostatsWith(t, append([]string{"-dir", dir}, tt.args...)...)
			require.Zero(t, got.status, "status of %q: %s", tt.args, got.stderr)
			require.Equal(t, want.stdout, got.stdout, "table of %q; %s", tt.args, got.stderr)
			chaos := chaosOf(t, got.stderr)
			require.Equal(t, chaos.planned, chaos.killed, "workers killed: %s", got.stderr)
			if chaos.planned > 0 {
				require.Positive(t, chaos.restarts, "restarts: %s", got.stderr)
				require.GreaterOrEqual(t, chaos.lost, chaos.killed, "calls lost, for each kill hits a worker at work: %s", got.stderr)
			} else {
				require.Zero(t, chaos.restarts+chaos.lost, "restarts and lost calls without chaos: %s", got.stderr)
			}
			require.Equal(t, chaos.lost, chaos.repeated, "calls repeated: %s", got.stderr)
		})
	}
}

// numbers are those of the summary.
type numbers struct{ killed, planned, restarts, lost, repeated int }

var summary = regexp.MustCompile(
	`^gostats: \d+ files in \d+\.\d\d s, \d+ \w+ workers(?:, (\d+) of (\d+) killed \(seed \d+\))?, (\d+) restarts, (\d+) calls lost, (\d+) repeated\n$`)

func chaosOf(t *testing.T, stderr string) (n numbers) {
	t.Helper()
	found := summary.FindStringSubmatch(stderr)
	require.NotNil(t, found, "no summary in %q", stderr)
	for i, to := range []*int{&n.killed, &n.planned, &n.restarts, &n.lost, &n.repeated} {
		if found[i+1] != "" {
			var err error
			*to, err = strconv.Atoi(found[i+1])
			require.NoError(t, err, "a number of the summary %q", stderr)
		}
	}
	return n
}

func TestJSON(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.go", "package a\n\nfunc F() {}\n")
	write(t, dir, "b.go", "broken\n")
	for _, kind := range []string{"goroutine", "process"} {
		got := gostatsWith(t, "-dir", dir, "-type", kind, "-workers", "2", "-json")
		require.Zero(t, got.status, "status of %s workers: %s", kind, got.stderr)
		var report gosource.Report
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &report), "standard output is one JSON value: %s", got.stdout)
		require.Equal(t, gosource.Report{
			Folders:  []gosource.Count{{Folder: ".", Packages: 1, Files: 2, Lines: 4, Functions: 1, Exported: 1, ParseErrors: 1}},
			Total:    gosource.Count{Packages: 1, Files: 2, Lines: 4, Functions: 1, Exported: 1, ParseErrors: 1},
			Problems: []gosource.Problem{{Path: "b.go", Text: "1:1: expected 'package', found broken"}},
		}, report, "report of %s workers", kind)
	}
}

func TestEmptyFolder(t *testing.T) {
	got := gostatsWith(t, "-dir", t.TempDir(), "-chaos", "3")
	require.Zero(t, got.status, "status: %s", got.stderr)
	require.Contains(t, got.stderr, "gostats: 0 files in ", "the summary")
	require.Contains(t, got.stderr, "0 of 3 killed", "nobody is killed without work")
}

func TestNoFolder(t *testing.T) {
	got := gostatsWith(t, "-dir", t.TempDir()+"/none")
	require.Equal(t, result{exitFailure, "", got.stderr}, got, "a folder that is not there")
	require.Contains(t, got.stderr, "gostats: gosource: stat ", "the error")
}
