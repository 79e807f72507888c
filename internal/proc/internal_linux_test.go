package proc

// These tests are inside the package because they take the pidfd away, as an old kernel does.

import (
	"bufio"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// startWithoutPidfd starts a shell that starts a grandchild, tells its pid, and then runs the script.
func startWithoutPidfd(t *testing.T, script string) (p *Process, grandchild int) {
	t.Helper()
	p, err := new(Starter).Start(Config{
		Path: "sh", Args: []string{"-c", "sleep 300 & echo $! >&4; " + script}, Env: []string{"PATH=" + os.Getenv("PATH")},
	})
	require.NoError(t, err)
	p.handle.close()
	p.handle = handle{}
	t.Cleanup(func() {
		p.Kill()
		p.Wait()
		require.NoError(t, p.Close())
	})
	line, err := bufio.NewReader(p.Replies).ReadString('\n')
	require.NoError(t, err)
	grandchild, err = strconv.Atoi(strings.TrimSpace(line))
	require.NoError(t, err)
	return p, grandchild
}

func TestWithoutPidfd(t *testing.T) {
	for _, test := range []struct {
		name, script string
		end          func(*Process)
		want         Status
	}{
		{"exit", "exit 7", func(*Process) {}, Status{Known: true, Code: 7}},
		{"Kill", "read x <&3", (*Process).Kill, Status{Known: true, Code: -1, Signal: syscall.SIGKILL}},
		{"Terminate", "read x <&3", (*Process).Terminate, Status{Known: true, Code: -1, Signal: syscall.SIGTERM}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, grandchild := startWithoutPidfd(t, test.script)
			test.end(p)
			got := p.Wait()
			got.User, got.System = 0, 0
			require.Equal(t, test.want, got, "Wait")
			var ws unix.WaitStatus // the grandchild is ours to reap now, by TestMain
			reaped, err := unix.Wait4(grandchild, &ws, 0, nil)
			require.NoError(t, err, "Wait4 for the grandchild")
			require.Equal(t, grandchild, reaped, "Wait4 for the grandchild")
			require.True(t, ws.Signaled(), "the grandchild was killed")
			require.NoError(t, p.Signal(true, unix.SIGKILL), "Signal after the end")
		})
	}
}

func TestWithoutPidfdReapedByTheKernel(t *testing.T) {
	signal.Ignore(unix.SIGCHLD)
	t.Cleanup(func() {
		c := make(chan os.Signal, 1) // Reset would leave it ignored
		signal.Notify(c, unix.SIGCHLD)
		signal.Stop(c)
	})
	p, _ := startWithoutPidfd(t, "kill $!; exit 7")
	require.Equal(t, Status{}, p.Wait(), "Wait")
}

func TestOldKernelSignalsTheGroupByNumber(t *testing.T) {
	p, err := new(Starter).Start(Config{Path: "sh", Args: []string{"-c", "read x <&3"}})
	require.NoError(t, err)
	require.NoError(t, p.handle.signalGroupByNumber(p.pid, unix.SIGKILL))
	status := p.Wait()
	require.Equal(t, unix.SIGKILL, status.Signal, "Wait")
	require.NoError(t, p.Close())
}

func TestMarker(t *testing.T) {
	for _, test := range []struct {
		value string
		files int
		ok    bool
	}{
		{"1,0", 0, true},
		{"1,3", 3, true},
		{"", 0, false},
		{"1", 0, false},
		{"2,0", 0, false},
		{"1,-1", 0, false},
		{"1,x", 0, false},
		{"1,99999999", 0, false},
	} {
		files, ok := parseMarker(test.value)
		require.Equal(t, test.ok, ok, "parseMarker(%q)", test.value)
		require.Equal(t, test.files, files, "parseMarker(%q)", test.value)
	}
	require.Equal(t, []string{"A=1", "SUPERVISOR_WORKER=1,2"}, withMarker([]string{"SUPERVISOR_WORKER=x", "A=1"}, 2))
}
