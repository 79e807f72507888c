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

// Gate is where a test meets handlers.
type Gate struct {
	Address  string
	arrivals chan *Visitor
}

// Visitor is one handler at the gate.
type Visitor struct {
	Name string
	conn net.Conn
	from *bufio.Reader
}

// NewGate opens a gate that lasts as long as the test. Whoever is at it at the end is let go.
func NewGate(t testing.TB) *Gate {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err, "open a gate")
	g := &Gate{Address: l.Addr().String(), arrivals: make(chan *Visitor, 1024)}
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
			v := &Visitor{conn: conn, from: bufio.NewReader(conn)}
			if name, err := v.from.ReadString('\n'); err == nil { // else it died on the way
				v.Name = strings.TrimSuffix(name, "\n")
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

// Next returns the handler that comes Next.
func (g *Gate) Next(t testing.TB) *Visitor {
	t.Helper()
	return testkit.Receive(t, g.arrivals, "a handler at the gate")
}

// Empty fails the test if a handler is at the gate that next has not returned.
func (g *Gate) Empty(t testing.TB, why string) {
	t.Helper()
	select {
	case v := <-g.arrivals:
		t.Fatalf("handler %q runs: %s", v.Name, why)
	default:
	}
}

// Release lets a handler go; its result is the answer.
func (v *Visitor) Release(t testing.TB, answer string) {
	t.Helper()
	_, err := fmt.Fprintln(v.conn, answer)
	require.NoError(t, err, "let %q go", v.Name)
}

// Left waits until a handler has Left by itself and returns why.
func (v *Visitor) Left(t testing.TB) string {
	t.Helper()
	require.NoError(t, v.conn.SetReadDeadline(time.Now().Add(testkit.Limit)))
	why, err := v.from.ReadString('\n')
	require.NoError(t, err, "wait for %q to leave", v.Name)
	return strings.TrimSuffix(why, "\n")
}

// Gone waits until a handler has left, in whatever way.
func (v *Visitor) Gone(t testing.TB) {
	t.Helper()
	require.NoError(t, v.conn.SetReadDeadline(time.Now().Add(testkit.Limit)))
	for {
		if _, err := v.from.ReadByte(); err != nil {
			require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "wait for %q to leave", v.Name)
			return
		}
	}
}
