package childtest

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

// gate is where a test meets handlers.
type gate struct {
	address  string
	arrivals chan *visitor
}

// visitor is one handler at the gate.
type visitor struct {
	name string
	conn net.Conn
	from *bufio.Reader
}

// newGate opens a gate that lasts as long as the test. Whoever is at it at the end is let go.
func newGate(t testing.TB) *gate {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err, "open a gate")
	g := &gate{address: l.Addr().String(), arrivals: make(chan *visitor, 1024)}
	accepting := task.Go(func(context.Context) {
		var all []net.Conn
		defer func() {
			for _, conn := range all {
				_ = conn.Close() // most are closed already
			}
		}()
		for {
			conn, err := l.Accept()
			if err != nil {
				return // the test is over
			}
			all = append(all, conn)
			v := &visitor{conn: conn, from: bufio.NewReader(conn)}
			if name, err := v.from.ReadString('\n'); err == nil { // else it died on the way
				v.name = strings.TrimSuffix(name, "\n")
				g.arrivals <- v
			}
		}
	})
	t.Cleanup(func() {
		_ = l.Close() // whatever it says, accepting ends
		accepting.Wait()
	})
	return g
}

// next returns the handler that comes next.
func (g *gate) next(t testing.TB) *visitor {
	t.Helper()
	return testkit.Receive(t, g.arrivals, "a handler at the gate")
}

// empty fails the test if a handler is at the gate that next has not returned.
func (g *gate) empty(t testing.TB, why string) {
	t.Helper()
	select {
	case v := <-g.arrivals:
		t.Fatalf("handler %q runs: %s", v.name, why)
	default:
	}
}

// release lets a handler go; its result is the answer.
func (v *visitor) release(t testing.TB, answer string) {
	t.Helper()
	_, err := fmt.Fprintln(v.conn, answer)
	require.NoError(t, err, "let %q go", v.name)
}

// left waits until a handler has left by itself and returns why.
func (v *visitor) left(t testing.TB) string {
	t.Helper()
	require.NoError(t, v.conn.SetReadDeadline(time.Now().Add(testkit.Limit)))
	why, err := v.from.ReadString('\n')
	require.NoError(t, err, "wait for %q to leave", v.name)
	return strings.TrimSuffix(why, "\n")
}

// gone waits until a handler has left, in whatever way.
func (v *visitor) gone(t testing.TB) {
	t.Helper()
	require.NoError(t, v.conn.SetReadDeadline(time.Now().Add(testkit.Limit)))
	for {
		if _, err := v.from.ReadByte(); err != nil {
			require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "wait for %q to leave", v.name)
			return
		}
	}
}
