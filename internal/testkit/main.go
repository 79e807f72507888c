package testkit

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// Main runs the tests and exits. It must be all that TestMain does: in a worker process serve, which is supervisor.Init
// or nil, does not return, and in a helper process Main itself plays the [Helper]. Everywhere else it makes this process
// the parent of orphans, gives the tests a temporary directory of their own, arms the watchdog, and fails the run if
// goroutines or files are left or a helper was never used.
func Main(m *testing.M, serve func()) {
	traceOnQuit()
	if serve != nil {
		serve()
	}
	playHelper()
	os.Exit(run(m))
}

func run(m *testing.M) (code int) {
	flag.Parse() // m.Run would do it too late for the watchdog
	dir, err := os.MkdirTemp("", "testkit")
	if err != nil {
		fmt.Fprintln(os.Stderr, "testkit:", err)
		return 1
	}
	defer os.RemoveAll(dir) //nolint:errcheck // nothing depends on it
	if err := prepare(dir); err != nil {
		fmt.Fprintln(os.Stderr, "testkit:", err)
		return 1
	}
	running := goleak.IgnoreCurrent()
	stopWatching := watch(dir)
	code = m.Run()
	stopWatching()
	if code != 0 {
		return code
	}
	if err := goleak.Find(running); err != nil {
		fmt.Fprintln(os.Stderr, "testkit: after the last test:", err)
		return 1
	}
	if unused := unusedHelpers(); wholeRun() && len(unused) > 0 {
		fmt.Fprintln(os.Stderr, "testkit: no test uses the helpers", unused)
		return 1
	}
	return 0
}

// prepare makes the process one whose leaks show.
func prepare(dir string) error {
	for _, sub := range []string{"tmp", "traces"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			return err
		}
	}
	tmp, traces := filepath.Join(dir, "tmp"), filepath.Join(dir, "traces")
	for name, value := range map[string]string{
		"TMPDIR": tmp, "TMP": tmp, "TEMP": tmp, tracesVariable: traces,
		// Under the race detector a process takes a second to exit, so that others may still race: not each of our workers.
		"GORACE": strings.TrimSpace(os.Getenv("GORACE") + " atexit_sleep_ms=0"),
	} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	if err := adoptOrphans(); err != nil {
		return err
	}
	// The first file in the poller brings two descriptors along, which would look like a leak.
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	_, _ = r.Close(), w.Close()
	return nil
}
