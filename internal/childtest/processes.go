package childtest

import (
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/testkit"
)

var processRules = append([]rule{
	{"a process that exits in a handler says its code", exitInHandler},
	{"a process that is killed says the signal", killedBySignal},
	{"a panic on a goroutine of its own ends the process with a trace", crashElsewhere},
	{"a process that exits before it is ready says its code and last words", exitInFactory},
	{"a binary that is missing is an error of the start", missingBinary},
	{"descendants end with their worker", descendantsEnd},
}, append(outputRules, append(environmentRules, otherProgramRules...)...)...)

// hasProcesses reports whether lives of the kind are processes; otherwise it checks that the kind refuses their options.
func hasProcesses(t *testing.T, k Kind) bool {
	t.Helper()
	if k.Can.Process {
		return true
	}
	r := NewRig(t, k)
	_, err := k.Register(r.Ctx, r.Sup, r.Job(), supervisor.Proc{Env: []string{"A=b"}})
	require.ErrorIs(t, err, supervisor.ErrUnsupported)
	require.ErrorContains(t, err, "Proc")
	return false
}

// exitError is the ExitError in a verdict.
func exitError(t *testing.T, err error) *supervisor.ExitError {
	t.Helper()
	var exit *supervisor.ExitError
	require.ErrorAs(t, err, &exit)
	return exit
}

func exitInHandler(t *testing.T, k Kind) {
	if !hasProcesses(t, k) {
		return
	}
	r := Start(t, k)
	for _, code := range []int{0, 7} {
		c := r.Child(t, r.nextLife(t))
		_, err := supervisor.Call[any](r.Ctx, r.Sup, r.ID, "Exit", code)
		e := CallErrorOf(t, err, r.ID, "Exit")
		require.Equal(t, c.Incarnation, e.Incarnation)
		exit := exitError(t, err)
		require.Equal(t, c.Pid, exit.Pid)
		require.Equal(t, code, exit.Code)
		require.Zero(t, exit.Signal)
		require.Empty(t, exit.KilledBy)
		require.Positive(t, exit.Uptime)
		r.Fine(t, r.ID)
	}
}

func killedBySignal(t *testing.T, k Kind) {
	if !hasProcesses(t, k) {
		return
	}
	r := Start(t, k)
	c := r.Child(t, r.ID)
	held, _ := r.Occupy(t, r.ID)
	signalProcess(t, c.Pid, syscall.SIGKILL)
	exit := exitError(t, r.Recv(t, held).Err)
	require.Equal(t, syscall.SIGKILL, exit.Signal)
	require.Equal(t, -1, exit.Code)
	require.Empty(t, exit.KilledBy, "it was not the supervisor")
	c = r.Child(t, r.nextLife(t))
	signalProcess(t, c.Pid, syscall.SIGKILL) // while idle
	e := r.Events.WaitFor(t, "end of the idle life", func(e supervisor.Event) bool {
		return e.Kind == supervisor.EventExited && e.Incarnation == c.Incarnation
	})
	require.Equal(t, c.Pid, e.Pid)
	require.Equal(t, syscall.SIGKILL, exitError(t, e.Err).Signal)
	r.Fine(t, r.ID)
}

func signalProcess(t testing.TB, pid int, sig os.Signal) {
	t.Helper()
	p, err := os.FindProcess(pid)
	require.NoError(t, err, "find process %d", pid)
	require.NoError(t, p.Signal(sig), "signal process %d", pid)
	require.NoError(t, p.Release())
}

// KillProcess ends a child's process by SIGKILL; it is the Kill of process kinds.
func KillProcess(t testing.TB, s *supervisor.Supervisor, id int) {
	t.Helper()
	for _, c := range s.Snapshot().Children {
		if c.ProcID == id {
			require.NotZero(t, c.Pid, "process id of child %d", id)
			signalProcess(t, c.Pid, syscall.SIGKILL)
			return
		}
	}
	t.Fatalf("there is no child %d to kill", id)
}

func crashElsewhere(t *testing.T, k Kind) {
	if !hasProcesses(t, k) {
		return
	}
	r := Start(t, k)
	_, err := supervisor.Call[any](r.Ctx, r.Sup, r.ID, "Crash", "out of reach")
	exit := exitError(t, err)
	require.Equal(t, 2, exit.Code)
	require.Contains(t, exit.Trace, "panic: out of reach")
	require.Contains(t, exit.Trace, "Crash", "the trace shows the function")
	require.ErrorContains(t, err, "out of reach")
	r.Fine(t, r.ID)
}

func exitInFactory(t *testing.T, k Kind) {
	if !hasProcesses(t, k) {
		return
	}
	r := NewRig(t, k)
	job := r.Job()
	job.Mode = Quits
	id := r.Register(t, job, supervisor.WithName("quitter"))
	err := r.Sup.StartLink(r.Ctx)
	startError(t, err, id, "quitter")
	exit := exitError(t, err)
	require.Equal(t, 7, exit.Code)
	require.Contains(t, exit.Tail, "the worker quits")
	require.Zero(t, exit.Uptime, "it never was ready")
}

func missingBinary(t *testing.T, k Kind) {
	if !hasProcesses(t, k) {
		return
	}
	r := StartTwo(t, k)
	for path, want := range map[string]error{"/no/such/program": fs.ErrNotExist, "/": fs.ErrPermission} {
		testkit.Within(t, prompt, func() {
			_, err := k.Register(r.Ctx, r.Sup, r.Job(), supervisor.Proc{Path: path}, supervisor.WithName("lost"))
			require.ErrorIs(t, err, want, path)
			require.ErrorContains(t, err, path)
			require.ErrorContains(t, err, "lost")
		})
	}
	r.Fine(t, r.ID)
	r.Fine(t, r.Other)
	require.NoError(t, r.Sup.Healthy())
}

func descendantsEnd(t *testing.T, k Kind) {
	if !hasProcesses(t, k) {
		return
	}
	r := Start(t, k) // what is left of them NoLeaks finds
	require.NotZero(t, CallOf[int](t, r, r.ID, "Spawn"))
	r.crash(t, r.ID)
	require.NotZero(t, CallOf[int](t, r, r.ID, "Spawn"))
	require.NoError(t, r.Sup.Shutdown(r.Ctx))
}
