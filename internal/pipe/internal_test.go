package pipe

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/wire"
)

// A sender is not kept for what others send while it writes. From outside only a stream of others that happens never to
// pause would show it, so the queue that such a stream leaves is put there by hand.
func TestSenderWritesSomeRoundsOnly(t *testing.T) {
	r, f, err := os.Pipe()
	require.NoError(t, err, "os.Pipe")
	defer r.Close()
	w, err := NewWriter(f, 0)
	require.NoError(t, err, "NewWriter")
	defer w.Close()

	const stretches = inlineRounds + 3
	w.busy = true
	for num := range uint64(stretches) {
		w.queue = append(w.queue, item{small: wire.AppendFrame(nil, wire.Header{Kind: wire.KindRequest, Request: num + 1}, nil)})
	}
	w.runInline()
	require.NotNil(t, w.drain, "a goroutine goes on after %d of %d stretches", inlineRounds, stretches)
	w.Flush()
	in := wire.NewReader(r, 0)
	for num := range uint64(stretches) {
		h, _, err := in.Next()
		require.NoError(t, err, "Next frame")
		require.Equal(t, num+1, h.Request, "number of the frame at place %d", num)
	}
}

// What was written is not kept as a buffer if it was large, and is used again if it was not.
func TestBuffersAreUsedAgain(t *testing.T) {
	r, f, err := os.Pipe()
	require.NoError(t, err, "os.Pipe")
	defer r.Close()
	w, err := NewWriter(f, 0)
	require.NoError(t, err, "NewWriter")
	defer w.Close()
	in := wire.NewReader(r, 0)
	send := func(size int) {
		require.NoError(t, w.SendBytes(wire.Header{Kind: wire.KindRequest, Request: 1}, make([]byte, size)), "SendBytes")
		_, _, err := in.Next()
		require.NoError(t, err, "Next frame")
		w.Flush()
	}
	send(1000)
	require.GreaterOrEqual(t, cap(w.spare.small), 1000, "room kept after a small frame")
	kept := &w.spare.small[:1][0]
	send(1000)
	require.Same(t, kept, &w.spare.small[:1][0], "the buffer after a second frame")
	send(200 << 10)
	require.LessOrEqual(t, cap(w.spare.small), 64<<10, "room kept after a large frame")
}

// A large payload that the writer has taken and not begun waits no longer, and yet nothing that may be about it goes first:
// it would be about a request that the reader has not heard of. From outside that moment cannot be hit.
func TestInOrderStaysBehindThePayloadThatIsTaken(t *testing.T) {
	r, f, err := os.Pipe()
	require.NoError(t, err, "os.Pipe")
	defer r.Close()
	w, err := NewWriter(f, 0)
	require.NoError(t, err, "NewWriter")
	defer w.Close()

	w.busy = true
	w.appendLocked(wire.Header{Kind: wire.KindRequest, Request: 7}, make([]byte, 2*wire.ChunkSize+10), true)
	large, ok := w.next()
	require.True(t, ok, "something to write")
	require.NoError(t, w.InOrder(wire.Header{Kind: wire.KindCancel, Request: 7}), "InOrder")
	w.handOver(func() {
		if w.writeItem(large) {
			w.run()
		}
	})
	in := wire.NewReader(r, 0)
	h, _, err := in.Next()
	require.NoError(t, err, "Next frame")
	require.Equal(t, wire.KindCancel, h.Kind, "the first whole message overtakes the rest of the payload")
	require.Equal(t, uint64(7), in.UnderWay(), "the request that has begun to arrive before it")
	h, b, err := in.Next()
	require.NoError(t, err, "Next frame")
	require.Equal(t, []any{wire.KindRequest, uint64(7)}, []any{h.Kind, h.Request}, "the second message")
	require.Len(t, b, 2*wire.ChunkSize+10, "its payload")
	w.Flush()
}
