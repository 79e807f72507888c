package faulttest_test

// How a process becomes a worker, and what becomes of its streams.

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// closedHost has no standard streams, or closes them if its argument says so. It uses a worker and ends in order.
var closedHost = testkit.Helper("host without standard streams", func() {
	if os.Args[1] == "itself" {
		for fd := range 3 {
			_ = unix.Close(fd) // one that is closed already is as good
		}
	}
	ctx := context.Background()
	var pids []int
	var got string
	sup, err := startNest(ctx, 1)
	if err == nil {
		pids, err = supervisor.Call[[]int](ctx, sup, 0, "Pids")
	}
	if err == nil {
		got, err = supervisor.Call[string](ctx, sup, 0, "Echo", strings.Repeat("x", 1<<20))
	}
	if err == nil {
		err = sup.Shutdown(ctx)
	}
	say(hostReport{Pids: pids, Text: []string{got}}, err)
})

// Echo returns its argument, and writes on the standard streams, which must not be where the reply goes.
func (n *nest) Echo(s string) string {
	fmt.Println("printed by the worker")
	fmt.Fprintln(os.Stderr, "printed by the worker")
	return s
}

// mainProgram stands for what a program does after Init. It enters its second argument into the ledger that its first one
// names, and prints its environment.
var mainProgram = testkit.Helper("main program", func() {
	if err := (testkit.Ledger{Path: os.Args[1]}).Enter(os.Args[2]); err != nil {
		panic(err)
	}
	fmt.Println(strings.Join(os.Environ(), "\n"))
})

// relative is the object of a worker that runs its own program again.
type relative struct{}

var newRelative = supervisor.Define("supervisor_test.relative", func(context.Context) (relative, error) { return relative{}, nil })

// Environ returns the worker's environment.
func (relative) Environ() []string { return os.Environ() }

// Run returns what the program prints that is run from here with the worker's environment.
func (relative) Run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
	cmd.Env = os.Environ()
	out, err := cmd.Output()
	return string(out), err
}

// The worker's environment asks for the main program, and only Init is before it.
func TestH08WorkerRunsNoMain(t *testing.T) {
	testkit.NoLeaks(t)
	ctx := testkit.Context(t)
	ledger := testkit.NewLedger(t)
	program := testkit.Command(t, mainProgram)
	play := program.Env[len(program.Env)-1]
	sup := started(t, supervisor.Process, newRelative, supervisor.Proc{Args: []string{ledger.Path, "worker"}, Env: []string{play}})
	env, err := supervisor.Call[[]string](ctx, sup, 0, "Environ")
	require.NoError(t, err, "Call of Environ")
	require.True(t, slices.Contains(env, play), "the worker's environment asks for the main program")
	require.False(t, marked(env), "there is a marker in the worker's environment")
	out, err := supervisor.Call[string](ctx, sup, 0, "Run", ledger.Path, "grandchild")
	require.NoError(t, err, "Call of Run")
	require.Contains(t, out, "PATH=", "environment of the grandchild")
	require.False(t, marked(strings.Split(out, "\n")), "there is a marker in the grandchild's environment")
	require.Equal(t, map[string]int{"grandchild": 1}, ledger.Counts(t), "who ran the main program")
	shutdown(t, sup)
}

// marked reports whether the environment would make a worker of a process.
func marked(env []string) bool {
	return slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "SUPERVISOR_WORKER=") })
}

// What init functions print, and arguments that no flag takes, do not get in the way of a worker.
func TestH08InitPrints(t *testing.T) {
	testkit.NoLeaks(t)
	seen := testkit.NewRecorder(func(e supervisor.Event) supervisor.EventKind { return e.Kind })
	sup := newSupervisor(t, supervisor.Process, supervisor.WithEvents(seen.Record))
	register(t, sup, newGuest, supervisor.Proc{Args: []string{"-no-such-flag", "--"}, Env: []string{chattyVariable + "=1"}})
	require.NoError(t, sup.StartLink(context.Background()), "StartLink")
	for _, stream := range []int64{1, 2} {
		seen.WaitFor(t, "what init prints", func(e supervisor.Event) bool {
			return e.Kind == supervisor.EventOutput && e.N == stream && e.Text == chattyText
		})
	}
	got, err := supervisor.Call[string](testkit.Context(t), sup, 0, "Echo", "x")
	require.NoError(t, err, "Call")
	require.Equal(t, "x", got, "its result")
	shutdown(t, sup)
}

const (
	chattyVariable = "FAULTTEST_CHATTY_INIT"
	chattyText     = "printed before the program begins"
)

func init() { // as some programs do
	if os.Getenv(chattyVariable) != "" {
		_, _ = os.Stdout.WriteString(chattyText + "\n")
		_, _ = os.Stderr.WriteString(chattyText + "\n")
	}
}

func TestH10HostWithoutStandardStreams(t *testing.T) {
	for _, by := range []string{"its parent", "itself"} {
		t.Run("closed by "+by, func(t *testing.T) {
			testkit.NoLeaks(t)
			cmd := testkit.Command(t, closedHost, "-c", `exec "$0" "$1" <&- >&- 2>&-`, os.Args[0], by)
			cmd.Path = "/bin/sh"
			h := runHost(t, cmd)
			r := h.report(t, 2)
			h.gone(t, r.Pids)
			require.Equal(t, 0, h.cmd.ProcessState.ExitCode(), "exit status of the host: %v", h.cmd.ProcessState)
			require.Len(t, r.Text[0], 1<<20, "what a worker sent back")
			require.Empty(t, strings.Trim(r.Text[0], "x"), "what is wrong with it")
			require.Empty(t, h.stderr.String(), "stderr of the host")
		})
	}
}
