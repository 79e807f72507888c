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
const asProgram = "GOSTATS_EXAMPLE"

func TestMain(m *testing.M) {
	supervisor.Init()
	if os.Getenv(asProgram) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

// result is what a run of the program left.
type result struct {
	status         int
	stdout, stderr string
}

// gostatsWith runs the program in this process.
func gostatsWith(t *testing.T, args ...string) result {
	t.Helper()
	stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	require.NoError(t, err, "making a file for standard error")
	defer func() { require.NoError(t, stderr.Close(), "closing it") }()
	var stdout bytes.Buffer
	status := run(t.Context(), args, &stdout, stderr)
	text, err := os.ReadFile(stderr.Name())
	require.NoError(t, err, "reading standard error")
	return result{status, stdout.String(), string(text)}
}

// smallTree is a part of the Go installation's source that has a few hundred files, some of them broken.
func smallTree(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	require.NoError(t, err, "asking the go command for its root")
	return filepath.Join(strings.TrimSpace(string(out)), "src", "go")
}

// write makes a file below dir.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644), "writing %s", name)
	return path
}
