package executor_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/executor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// bomb goes off at one step of its way to a worker and back.
type bomb struct{ Step, Way string }

// off goes off if this is the step.
func (b bomb) off(step string) error {
	if b.Step != step {
		return nil
	}
	switch b.Way {
	case "error":
		return errBomb
	case "panic":
		panic(errBomb)
	case "exit":
		os.Exit(3)
	case "exit 0":
		os.Exit(0)
	case "goexit":
		runtime.Goexit()
	case "kill":
		kill(os.Getpid())
		select {}
	case "fault":
		storeWildly(&b)
	}
	return nil
}

// storeWildly writes to where there is no memory, which ends a process.
//
//go:nocheckptr
func storeWildly(b *bomb) { *(*int)(unsafe.Add(unsafe.Pointer(b), 1<<44)) = 1 }

var errBomb = errors.New("bomb")

type (
	argument struct{ bomb }
	result   struct{ bomb }
)

func (a argument) GobEncode() ([]byte, error) { return a.text(), a.off("encode argument") }
func (a *argument) GobDecode(b []byte) error  { a.parse(b); return a.off("decode argument") }
func (r result) GobEncode() ([]byte, error)   { return r.text(), r.off("encode result") }
func (r *result) GobDecode(b []byte) error    { r.parse(b); return r.off("decode result") }

func (b bomb) text() []byte { return []byte(b.Step + "/" + b.Way) }

func (b *bomb) parse(text []byte) { b.Step, b.Way, _ = strings.Cut(string(text), "/") }

var carry = executor.Define("test.carry", func(_ context.Context, a argument) (result, error) { return result(a), a.off("run") })

// Whatever happens at whatever step to one task of several, that one has a verdict that says so, the others have their
// values, and the executor goes on. What ends the host itself is played in a helper, whose workers then end too.
func TestCrashMatrix(t *testing.T) {
	if !processes(t) {
		return
	}
	check := map[string]func(t *testing.T, err error){
		"encode argument error": is(supervisor.ErrEncode), "encode argument panic": is(supervisor.ErrEncode),
		"decode argument error": is(supervisor.ErrDecode), "decode argument panic": is(supervisor.ErrDecode),
		"decode argument exit": exited(3, 0), "decode argument kill": exited(-1, syscall.SIGKILL),
		"run error": says("bomb"), "run panic": panicked,
		"run exit": exited(3, 0), "run kill": exited(-1, syscall.SIGKILL),
		"encode result error": is(supervisor.ErrEncode), "encode result panic": is(supervisor.ErrEncode),
		"encode result exit": exited(3, 0), "encode result kill": exited(-1, syscall.SIGKILL),
		"decode result error": is(supervisor.ErrDecode), "decode result panic": is(supervisor.ErrDecode),
	}
	for _, step := range []string{"encode argument", "decode argument", "run", "encode result", "decode result"} {
		for _, way := range []string{"error", "panic", "exit", "kill"} {
			for _, chunk := range []int{1, 7} {
				if testing.Short() && chunk == 1 { // alone is the lesser half
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/in chunks of %d", step, way, chunk), func(t *testing.T) {
					if check := check[step+" "+way]; check != nil {
						testkit.NoLeaks(t)
						inMatrix(t, bomb{step, way}, chunk, check)
					} else {
						inHelper(t, bomb{step, way}, chunk)
					}
				})
			}
		}
	}
}

func is(want error) func(t *testing.T, err error) {
	return func(t *testing.T, err error) { require.ErrorIs(t, err, want, "verdict") }
}

func says(text string) func(t *testing.T, err error) {
	return func(t *testing.T, err error) { require.ErrorContains(t, err, text, "verdict") }
}

func panicked(t *testing.T, err error) {
	var p *supervisor.PanicError
	require.ErrorAs(t, err, &p, "verdict")
	require.Equal(t, "bomb", p.Value, "value of the panic")
}

func exited(code int, signal syscall.Signal) func(t *testing.T, err error) {
	return func(t *testing.T, err error) {
		var failed *executor.TaskError
		require.ErrorAs(t, err, &failed, "verdict")
		require.NotNil(t, failed.Exit(), "how the worker ended: %v", err)
		require.Equal(t, code, failed.Exit().Code, "exit code")
		require.Equal(t, signal, failed.Exit().Signal, "signal")
	}
}

// bombs is a bomb in the middle of what is none.
func bombs(b bomb) func(yield func(argument) bool) {
	return func(yield func(argument) bool) {
		for i := range 7 {
			a := argument{bomb{"none", fmt.Sprint(i)}}
			if i == 3 {
				a = argument{b}
			}
			if !yield(a) {
				return
			}
		}
	}
}

func inMatrix(t *testing.T, b bomb, chunk int, check func(*testing.T, error)) {
	x := bare(t, executor.Options{MaxWorkers: 2})
	items := 0
	for item := range executor.Map(testkit.Context(t), x, carry, bombs(b), executor.Chunk(chunk)) {
		items++
		if item.Index == 3 {
			check(t, item.Err)
			continue
		}
		require.NoError(t, item.Err, "item %d", item.Index)
		require.Equal(t, fmt.Sprint(item.Index), item.Out.Way, "item %d", item.Index)
	}
	require.Equal(t, 7, items, "items")
	require.Equal(t, 4, value(t, submit(t, square, x, 2)), "the next task")
	shutdown(t, x)
}

// doomed is a host that a bomb ends. It says its workers' pids first.
var doomed = testkit.Helper("doomed", func() {
	x, err := executor.New(executor.Options{MaxWorkers: 2, MinIdle: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	for item := range executor.Map(ctx, x, getpid, func(yield func(int) bool) { yield(0) }) {
		fmt.Println(item.Out)
	}
	chunk := executor.Chunk(1)
	if os.Args[3] == "7" {
		chunk = 7
	}
	for range executor.Map(ctx, x, carry, bombs(bomb{os.Args[1], os.Args[2]}), chunk) {
	}
	fmt.Println("alive")
})

func inHelper(t *testing.T, b bomb, chunk int) {
	cmd := testkit.Command(t, doomed, b.Step, b.Way, fmt.Sprint(chunk))
	out, err := cmd.StdoutPipe()
	require.NoError(t, err, "pipe")
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start(), "start the host")
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan(), "the worker's pid")
	var pid int
	_, err = fmt.Sscan(lines.Text(), &pid)
	require.NoError(t, err, "the worker's pid %q", lines.Text())
	require.False(t, lines.Scan(), "the host should have died, but says %q", lines.Text())
	require.Error(t, cmd.Wait(), "end of the host")
	testkit.Within(t, 2e9, func() {
		testkit.Until(t, "the worker ends with its host", func() bool { return ended(pid) })
	})
}
