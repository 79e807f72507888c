package pipe_test

import (
	"io"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/pipe"
	"github.com/workerlink/supervisor/internal/wire"
)

func TestEverySendAfterCloseFails(t *testing.T) {
	_, w := newPipe(t)
	w.Close()
	for name, send := range map[string]func() error{
		"Send":      func() error { return w.Send(request(1), body(t, 1), true) },
		"SendBytes": func() error { return w.SendBytes(request(1), nil) },
		"Control":   func() error { return w.Control(wire.Header{Kind: wire.KindStop}, nil) },
		"InOrder":   func() error { return w.InOrder(wire.Header{Kind: wire.KindStop}) },
	} {
		require.ErrorIs(t, send(), pipe.ErrClosed, "%s after Close", name)
	}
	w.Flush() // nothing can be written any more, so it does not wait
	w.Close() // again
	require.Empty(t, unsent(w), "what was refused is not unsent")
}

// The frame that finds the reader gone was accepted, so it is unsent; later ones are refused with the first cause, which
// Close does not hide.
func TestReaderGone(t *testing.T) {
	r, w := newPipe(t)
	require.NoError(t, r.Close(), "Close of the reading end")
	require.NoError(t, w.Send(request(1), body(t, 1), true), "Send before anybody knows")
	w.Flush()
	require.ErrorIs(t, w.Send(request(2), body(t, 2), true), syscall.EPIPE, "Send after the pipe broke")
	w.Close()
	require.ErrorIs(t, w.InOrder(wire.Header{Kind: wire.KindStop}), syscall.EPIPE, "InOrder after Close")
	require.Equal(t, []uint64{1}, unsent(w), "unsent requests")
}

func TestFrameWithoutRequestIsNotUnsent(t *testing.T) {
	r, w := newPipe(t)
	require.NoError(t, r.Close(), "Close of the reading end")
	require.NoError(t, w.SendBytes(wire.Header{Kind: wire.KindHello}, make([]byte, wire.ChunkSize+1)), "large greeting")
	w.Close()
	require.Empty(t, unsent(w), "unsent requests: a greeting is none")
}

// However Close falls between the senders, each accepted request is in the pipe, in part or whole, or it is unsent, and
// never both.
func TestCloseAmongSenders(t *testing.T) {
	for round := range 20 {
		r, w := newPipe(t)
		const senders = 8
		var all sync.WaitGroup
		accepted := make([][]uint64, senders)
		for s := range uint64(senders) {
			all.Go(func() {
				for i := uint64(1); ; i++ {
					num := s<<32 | i
					if w.Send(request(num), bytesOf(t, int(i)%200), i%4 != 0) != nil {
						return
					}
					accepted[s] = append(accepted[s], num)
				}
			})
		}
		head := make([]byte, 1000+round*37)
		_, err := io.ReadFull(r, head)
		require.NoError(t, err, "reading the first %d bytes", len(head))
		w.Close()
		left := unsent(w)
		tail, err := io.ReadAll(r)
		require.NoError(t, err, "reading what is in the pipe")
		all.Wait()

		missing := make(map[uint64]bool)
		for _, num := range slices.Concat(accepted...) {
			missing[num] = true
		}
		nums, cut := begun(t, append(head, tail...))
		for _, num := range append(nums, left...) {
			require.True(t, missing[num], "request %#x was accepted, and counted once, in round %d", num, round)
			delete(missing, num)
		}
		count := 0
		if cut { // one has begun whose number is not known
			count = 1
		}
		require.Len(t, missing, count, "accepted requests neither begun nor unsent, in round %d", round)
	}
}

// begun returns the requests of which stream has at least the header, and whether it ends inside a further one.
func begun(t *testing.T, stream []byte) (nums []uint64, cut bool) {
	t.Helper()
	for len(stream) >= wire.HeaderSize {
		h, err := wire.ParseHeader(stream)
		require.NoError(t, err, "header")
		nums = append(nums, h.Request)
		stream = stream[min(len(stream), wire.HeaderSize+int(h.Length)):]
	}
	return nums, len(stream) > 0
}

// Close returns although a write waits for room, and what did not fit is unsent.
func TestCloseWhileCongested(t *testing.T) {
	r, w := newPipe(t)
	const n = 200
	for i := range uint64(n) {
		require.NoError(t, w.Send(request(i+1), bytesOf(t, 16<<10), true), "Send(%d) to a pipe that nobody reads", i+1)
	}
	w.Close()
	left := unsent(w)
	stream, err := io.ReadAll(r)
	require.NoError(t, err, "reading what is in the pipe")
	frameSize := wire.HeaderSize + 16<<10
	first := (len(stream)+frameSize-1)/frameSize + 1
	want := []uint64{}
	for num := first; num <= n; num++ {
		want = append(want, uint64(num))
	}
	require.Equal(t, want, left, "unsent requests with %d bytes in the pipe", len(stream))
}
