package childtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
)

var environmentRules = []rule{
	{"the environment is the host's, without what is the host's alone", environmentInherited},
	{"CleanEnv starts from a few variables", environmentClean},
	{"extra files become descriptors 6 and up, in every life", extraFiles},
	{"directory, arguments and standard input are as told", commandLine},
}

// environ is the environment of a child as a map.
func (r *Rig) environ(t *testing.T, id int) map[string]string {
	t.Helper()
	env := make(map[string]string)
	for _, kv := range CallOf[[]string](t, r, id, "Environ") {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	return env
}

func environmentInherited(t *testing.T, k Kind) {
	if !hasProcesses(t, k) {
		return
	}
	t.Setenv("CHILDTEST_HOST", "from the host")
	dropped := []string{"NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"}
	for _, name := range dropped {
		t.Setenv(name, "1")
	}
	r := Start(t, k, supervisor.Proc{Env: []string{"CHILDTEST_CHILD=from the option", "CHILDTEST_HOST=overridden"}})
	env := r.environ(t, r.ID)
	require.Equal(t, "from the option", env["CHILDTEST_CHILD"])
	require.Equal(t, "overridden", env["CHILDTEST_HOST"], "the option wins")
	require.Equal(t, os.Getenv("PATH"), env["PATH"])
	for name := range env {
		require.NotContains(t, name, "SUPERVISOR", "the marker is gone")
	}
	for _, name := range dropped {
		require.NotContains(t, env, name)
		require.Equal(t, "1", os.Getenv(name), "the host's own %s", name)
	}
}

func environmentClean(t *testing.T, k Kind) {
	if !hasProcesses(t, k) {
		return
	}
	t.Setenv("CHILDTEST_SECRET", "x")
	t.Setenv("LANG", "C")
	r := Start(t, k, supervisor.Proc{CleanEnv: true, Env: []string{"CHILDTEST_CHILD=1"}})
	env := r.environ(t, r.ID)
	require.Equal(t, "1", env["CHILDTEST_CHILD"])
	require.Equal(t, "C", env["LANG"])
	require.Equal(t, os.Getenv("PATH"), env["PATH"])
	for name := range env {
		require.Contains(t, []string{"PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "CHILDTEST_CHILD"}, name)
	}
}

func extraFiles(t *testing.T, k Kind) {
	if !hasProcesses(t, k) {
		return
	}
	var files []*os.File
	for _, text := range []string{"first", "second"} {
		name := filepath.Join(t.TempDir(), text)
		require.NoError(t, os.WriteFile(name, []byte(text+" file"), 0o600))
		f, err := os.Open(name)
		require.NoError(t, err)
		defer f.Close()
		files = append(files, f)
	}
	r := Start(t, k, supervisor.Proc{ExtraFiles: files})
	require.Equal(t, "first file", CallOf[string](t, r, r.ID, "ReadFile", 6))
	require.NoError(t, r.Sup.Restart(r.Ctx, r.ID))
	require.Equal(t, "second file", CallOf[string](t, r, r.ID, "ReadFile", 7), "in the next life")
	_, err := files[0].Seek(0, 0)
	require.NoError(t, err, "the file is still the caller's")
}

func commandLine(t *testing.T, k Kind) {
	if !hasProcesses(t, k) {
		return
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	r := Start(t, k, supervisor.WithName("ada"), supervisor.Proc{Dir: dir, Args: []string{"-v", "two words"}})
	require.Equal(t, []string{"ada", "-v", "two words"}, CallOf[[]string](t, r, r.ID, "Args"))
	require.Equal(t, dir, CallOf[string](t, r, r.ID, "Dir"))
	require.Empty(t, CallOf[string](t, r, r.ID, "Stdin"), "standard input is at its end")
	require.Equal(t, r.Child(t, r.ID).Pid, CallOf[int](t, r, r.ID, "Pid"))
	unnamed := r.Register(t, r.Job())
	require.Equal(t, []string{os.Args[0]}, CallOf[[]string](t, r, unnamed, "Args"), "without a name")
}
