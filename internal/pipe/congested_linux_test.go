package pipe_test

import (
	"io"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/workerlink/supervisor/internal/pipe"
	"github.com/workerlink/supervisor/internal/wire"
)

// page is the capacity of the smallest pipe.
const page = 4096

func newSmallPipe(t *testing.T) (*os.File, *pipe.Writer) {
	t.Helper()
	r, w := newPipe(t)
	control(t, r, func(fd int) error {
		_, err := unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, page)
		return err
	})
	return r, w
}

func control(t *testing.T, f *os.File, do func(fd int) error) {
	t.Helper()
	raw, err := f.SyscallConn()
	require.NoError(t, err, "SyscallConn")
	var inner error
	require.NoError(t, raw.Control(func(fd uintptr) { inner = do(int(fd)) }), "Control")
	require.NoError(t, inner, "system call on the pipe")
}

// held returns the number of bytes in the pipe.
func held(t *testing.T, r *os.File) (n int) {
	t.Helper()
	control(t, r, func(fd int) (err error) {
		n, err = unix.IoctlGetInt(fd, unix.TIOCINQ)
		return err
	})
	return n
}

// awaitBegun returns when something of what was sent is in the pipe.
func awaitBegun(t *testing.T, r *os.File) {
	t.Helper()
	for held(t, r) == 0 {
		runtime.Gosched()
	}
}

// awaitFull returns when the pipe takes no further byte.
func awaitFull(t *testing.T, r *os.File) {
	t.Helper()
	for held(t, r) < page {
		runtime.Gosched()
	}
}

// No Send waits for the reader, however much there is to write; when the reader comes everything is there, in order, and
// the goroutine that wrote has ended.
func TestFullPipeBlocksNoSender(t *testing.T) {
	before := goleak.IgnoreCurrent()
	r, w := newSmallPipe(t)
	const n = 1000
	for i := range uint64(n) {
		require.NoError(t, w.Send(request(i+1), bytesOf(t, 1000), i%2 == 0), "Send(%d)", i+1)
	}
	in := wire.NewReader(r, 0)
	for i := range uint64(n) {
		f := next(t, in)
		require.Equal(t, i+1, f.Request, "number")
		require.Len(t, f.payload, 1000, "payload of request %d", f.Request)
	}
	w.Flush()
	require.Zero(t, held(t, r), "bytes in the pipe")
	goleak.VerifyNone(t, before)
}

// Flush returns when the last byte is in the pipe, not earlier.
func TestFlushWaitsForRoom(t *testing.T) {
	r, w := newSmallPipe(t)
	require.NoError(t, w.Send(request(1), bytesOf(t, 3*page), true), "Send of more than fits")
	awaitFull(t, r)
	flushed := make(chan struct{})
	go func() {
		w.Flush()
		close(flushed)
	}()
	const size = wire.HeaderSize + 3*page
	for got := 0; got < size-page; {
		select {
		case <-flushed:
			t.Fatalf("Flush returned after %d bytes were read and at most %d in the pipe, of %d", got, page, size)
		default:
		}
		n, err := r.Read(make([]byte, min(100, size-page-got)))
		require.NoError(t, err, "Read")
		got += n
	}
	_, err := io.ReadFull(r, make([]byte, page))
	require.NoError(t, err, "reading the rest")
	<-flushed
}

func TestFlushEndsWithThePipe(t *testing.T) {
	for name, end := range map[string]func(r *os.File, w *pipe.Writer){
		"reader gone": func(r *os.File, _ *pipe.Writer) { _ = r.Close() },
		"closed":      func(_ *os.File, w *pipe.Writer) { w.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			r, w := newSmallPipe(t)
			require.NoError(t, w.Send(request(1), bytesOf(t, 3*page), true), "Send of more than fits")
			awaitFull(t, r)
			flushed := make(chan struct{})
			go func() {
				w.Flush()
				close(flushed)
			}()
			end(r, w)
			<-flushed
		})
	}
}

// Control frames go between the pieces of a large payload; frames in order wait for what was sent before them.
func TestControlOvertakes(t *testing.T) {
	r, w := newSmallPipe(t)
	const size = 3*wire.ChunkSize + 5
	require.NoError(t, w.Send(request(1), bytesOf(t, size), true), "Send of a payload in pieces")
	awaitBegun(t, r)
	require.NoError(t, w.Send(request(2), bytesOf(t, 10), true), "Send of a small frame")
	require.NoError(t, w.InOrder(wire.Header{Kind: wire.KindCancel, Request: 2}), "InOrder")
	require.NoError(t, w.Control(wire.Header{Kind: wire.KindCancel, Request: 1}, nil), "Control")

	in := wire.NewReader(r, 0)
	for _, want := range []wire.Header{
		{Kind: wire.KindCancel, Request: 1},
		{Kind: wire.KindRequest, Request: 1, Length: size},
		{Kind: wire.KindRequest, Request: 2, Length: 10},
		{Kind: wire.KindCancel, Request: 2},
	} {
		f := next(t, in)
		require.Equal(t, want, f.Header, "next frame")
		require.Len(t, f.payload, int(want.Length), "payload of the next frame")
	}
}

// With nothing waiting, a frame in order need not wait for the large payload that is under way.
func TestInOrderWithNothingWaiting(t *testing.T) {
	r, w := newSmallPipe(t)
	const size = 2 * wire.ChunkSize
	require.NoError(t, w.Send(request(1), bytesOf(t, size), true), "Send of a payload in pieces")
	awaitBegun(t, r)
	require.NoError(t, w.InOrder(wire.Header{Kind: wire.KindCancel, Request: 1}), "InOrder")
	in := wire.NewReader(r, 0)
	require.Equal(t, wire.KindCancel, next(t, in).Kind, "first whole message")
	require.Equal(t, uint32(size), next(t, in).Length, "length of the second")
}

// The reader takes some bytes and goes, or the Writer is closed: at every offset of a frame, Unsent names exactly the
// requests behind the last byte that left.
func TestUnsentIsTrueToTheByte(t *testing.T) {
	for name, end := range map[string]func(r *os.File, w *pipe.Writer){
		"reader gone": func(r *os.File, w *pipe.Writer) {
			_ = r.Close()
			w.Flush()
			w.Close()
		},
		"closed": func(_ *os.File, w *pipe.Writer) { w.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			for shift := range 3 * wire.HeaderSize {
				unsentAfter(t, shift, end)
			}
		})
	}
}

// unsentAfter ends a pipe out of which the stream has gone up to a byte that shift moves through frames of requests, and of
// a control frame between two of them.
func unsentAfter(t *testing.T, shift int, end func(r *os.File, w *pipe.Writer)) {
	t.Helper()
	r, w := newSmallPipe(t)
	sent := 0
	starts := make(map[uint64]int) // where each request's frame begins
	send := func(num uint64, size int) {
		starts[num] = sent
		sent += wire.HeaderSize + size
		require.NoError(t, w.Send(request(num), bytesOf(t, size), true), "Send(%d)", num)
	}
	send(1, 2*page-wire.HeaderSize) // from now on everything waits, and goes out in one piece
	awaitFull(t, r)
	send(2, page-3*wire.HeaderSize-shift%wire.HeaderSize)
	send(3, 0)
	sent += wire.HeaderSize
	require.NoError(t, w.InOrder(wire.Header{Kind: wire.KindCancel, Request: 9}), "InOrder")
	for num := range uint64(3) {
		send(4+num, shift)
	}
	send(7, page)
	_, err := io.ReadFull(r, make([]byte, 2*page))
	require.NoError(t, err, "reading all of request 1")
	awaitFull(t, r)
	end(r, w)

	const left = 3 * page
	want := []uint64{}
	for num, start := range starts {
		if start >= left {
			want = append(want, num)
		}
	}
	slices.Sort(want)
	require.Equal(t, want, unsent(w), "unsent requests after %d bytes; frames begin at %v", left, starts)
}

// A large payload counts as sent with its first byte.
func TestUnsentLargePayload(t *testing.T) {
	r, w := newSmallPipe(t)
	for num := range uint64(3) {
		require.NoError(t, w.Send(request(num+1), bytesOf(t, wire.ChunkSize+1), true), "Send(%d)", num+1)
	}
	awaitBegun(t, r)
	w.Close()
	require.Equal(t, []uint64{2, 3}, unsent(w), "unsent requests while the first is under way")
}
