package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/workerlink/supervisor"
)

// asProgram makes the test binary behave as the program.
const asProgram = "PARMAP_EXAMPLE"

func TestMain(m *testing.M) {
	supervisor.Init()
	if os.Getenv(asProgram) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

// printed is what a run of the program left.
type printed struct {
	status         int
	stdout, stderr string
}

// parmapWith runs the program in this process.
func parmapWith(t *testing.T, args ...string) printed {
	t.Helper()
	stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	require.NoError(t, err, "making a file for standard error")
	defer func() { require.NoError(t, stderr.Close(), "closing it") }()
	var stdout bytes.Buffer
	status := run(t.Context(), args, &stdout, stderr)
	text, err := os.ReadFile(stderr.Name())
	require.NoError(t, err, "reading standard error")
	return printed{status, stdout.String(), string(text)}
}

// smallTree is a part of the Go installation's source that has a few hundred files.
func smallTree(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	require.NoError(t, err, "asking the go command for its root")
	return filepath.Join(strings.TrimSpace(string(out)), "src", "go")
}

// write makes files below a new folder.
func write(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755), "making the folder of %s", name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644), "writing %s", name)
	}
	return dir
}

func TestWhatCannotBe(t *testing.T) {
	dir := write(t, map[string]string{"a.go": "package a\n"})
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"no folder", []string{"-dir", filepath.Join(dir, "none")}, "parmap: gosource: stat "},
		{"no such file to poison", []string{"-dir", dir, "-poison", "b.go"}, "parmap: -poison: no file "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := parmapWith(t, tt.args...)
			require.Equal(t, exitFailure, got.status, "status of parmap %q", tt.args)
			require.Contains(t, got.stderr, tt.want, "standard error")
			require.Empty(t, got.stdout, "standard output")
		})
	}
}
