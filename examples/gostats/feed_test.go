package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/examples/internal/gosource"
	"github.com/workerlink/supervisor/examples/internal/progress"
)

// fragile is a parser that some files are too much for.
type fragile struct{}

func (fragile) Parse(path string) (gosource.File, error) {
	switch filepath.Base(path) {
	case "poison.go":
		os.Exit(7)
	case "panic.go":
		panic("not this one")
	}
	return gosource.Parse(path)
}

// fragileParser makes its object only once for each child: it leaves a mark in the folder given.
var fragileParser = supervisor.DefineWith("gostats_test.fragile", func(ctx context.Context, marks string) (fragile, error) {
	if marks == "" {
		return fragile{}, nil
	}
	self, _ := supervisor.Self(ctx)
	mark, err := os.OpenFile(filepath.Join(marks, fmt.Sprint(self.ProcID)), os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fragile{}, errors.New("once is enough")
	}
	return fragile{}, mark.Close()
})

// parseWith has the files parsed by fragile parsers.
func parseWith(t *testing.T, c config, marks string, dir string, files []string) (gosource.Report, tally, error) {
	t.Helper()
	table := gosource.NewTable(dir)
	null, err := os.Open(os.DevNull)
	require.NoError(t, err, "opening the null device")
	defer func() { require.NoError(t, null.Close(), "closing it") }()
	got, err := parseAll(t.Context(), c, fragileParser.With(marks), files, table, progress.New(null, "", len(files)))
	return table.Report(), got, err
}

func TestFilesWithoutCounts(t *testing.T) {
	dir := t.TempDir()
	files := []string{filepath.Join(dir, "gone.go"), write(t, dir, "panic.go", "")}
	for i := range 10 {
		files = append(files, write(t, dir, fmt.Sprintf("%d.go", i), "package a\n"))
	}
	for _, kind := range []supervisor.ChildType{supervisor.Goroutine, supervisor.Process} {
		report, got, err := parseWith(t, config{workers: 2, kind: kind}, "", dir, files)
		require.NoError(t, err, "parsing by %v workers", kind)
		require.Equal(t, []gosource.Problem{
			{Path: "gone.go", Text: "no such file or directory"},
			{Path: "panic.go", Text: "supervisor: panic: not this one"},
		}, report.Problems, "problems that %v workers find", kind)
		require.Equal(t, 10, report.Total.Files, "files that %v workers count", kind)
		require.Equal(t, tally{files: 12}, got, "what %v workers did", kind)
	}
}

func TestFilesThatEndTheirWorker(t *testing.T) {
	dir := t.TempDir()
	var files []string
	for i := range 40 {
		files = append(files, write(t, dir, fmt.Sprintf("%d.go", i), "package a\n"))
	}
	files[20] = write(t, dir, "poison.go", "")
	report, got, err := parseWith(t, config{workers: 2, kind: supervisor.Process}, "", dir, files)
	require.NoError(t, err, "parsing with a file that ends its worker")
	require.Equal(t, []gosource.Problem{{Path: "poison.go", Text: "its worker died of it: exit code 7"}}, report.Problems, "problems")
	require.Equal(t, 39, report.Total.Files, "the files that it took with it are counted")
	require.Equal(t, 40, got.files, "files with their place in the table")
	require.Equal(t, got.repeated+1, got.lost, "the second loss of the file is its last: %+v", got)
}

func TestNoWorkerIsLeft(t *testing.T) {
	dir := t.TempDir()
	_, _, err := parseWith(t, config{workers: 1, kind: supervisor.Process}, t.TempDir(), dir,
		[]string{write(t, dir, "poison.go", ""), write(t, dir, "a.go", "package a\n")})
	var start *supervisor.StartError
	require.ErrorAs(t, err, &start, "the only worker does not start again")
	require.ErrorContains(t, err, "once is enough", "why it does not")
}

func TestOthersGoOn(t *testing.T) {
	sup, err := supervisor.New(supervisor.Process)
	require.NoError(t, err, "making a supervisor")
	for range 2 {
		_, err := sup.Register(t.Context(), fragileParser.With(t.TempDir()), supervisor.Restart{Type: supervisor.Temporary})
		require.NoError(t, err, "registering a worker")
	}
	require.NoError(t, sup.StartLink(t.Context()), "starting")
	defer func() { require.NoError(t, sup.Shutdown(context.Background()), "shutting down") }()
	_, err = supervisor.Call[gosource.File](t.Context(), sup, 0, "Parse", "poison.go")
	require.Error(t, err, "ending a worker")

	f := &feed{sup: sup, ids: []int{0, 1}}
	require.NoError(t, f.revive(t.Context(), 0, supervisor.ErrRestartLimit), "going on without the first worker")
	require.Equal(t, []int{1}, f.ids, "workers that are left")

	other := errors.New("something else")
	require.ErrorIs(t, f.revive(t.Context(), 1, other), other, "an error that is not about restarts")
}
