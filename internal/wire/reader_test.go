package wire_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/wire"
)

// message is a message as a Reader returns it.
type message struct {
	h       wire.Header
	payload []byte
}

// readAll returns all messages of r and the error that ended them.
func readAll(r *wire.Reader) (all []message, err error) {
	all = []message{}
	for {
		h, b, err := r.Next()
		if err != nil {
			return all, err
		}
		all = append(all, message{h, append([]byte{}, b...)})
	}
}

// appendMessage appends the frames of a message.
func appendMessage(dst []byte, h wire.Header, body []byte) []byte {
	for head, piece := range wire.Pieces(h, body) {
		dst = append(append(dst, head[:]...), piece...)
	}
	return dst
}

// random returns n bytes that are the same in each run.
func random(n int) []byte {
	b := make([]byte, n)
	src := rand.NewChaCha8([32]byte{1})
	_, _ = src.Read(b)
	return b
}

func TestReaderReturnsWholeMessages(t *testing.T) {
	sizes := []int{0, 1, 100, 65511, 65512, 65513, wire.ChunkSize - 1, wire.ChunkSize, wire.ChunkSize + 1, 3 * wire.ChunkSize, 5<<20 + 17}
	var stream []byte
	var want []message
	for i, size := range sizes {
		h := wire.Header{Kind: wire.KindReply, Request: uint64(i + 1), Stream: 3, Method: 4, Flags: wire.FlagTimings}
		body := random(size)
		stream = appendMessage(stream, h, body)
		h.Length = uint32(size)
		want = append(want, message{h, body})
	}
	for _, tt := range []struct {
		name string
		wrap func(io.Reader) io.Reader
	}{
		{"as much as possible", func(r io.Reader) io.Reader { return r }},
		{"half of what is asked", iotest.HalfReader},
		{"end with the data", iotest.DataErrReader},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readAll(wire.NewReader(tt.wrap(bytes.NewReader(stream)), 0))
			require.Equal(t, io.EOF, err, "end of the stream")
			require.Len(t, got, len(want), "messages")
			for i := range want {
				require.Equal(t, want[i].h, got[i].h, "header of message %d", i)
				require.True(t, bytes.Equal(want[i].payload, got[i].payload), "payload of message %d", i)
			}
		})
	}
}

func TestStreamSplitAtEveryOffset(t *testing.T) {
	var stream []byte
	for i := range 5 {
		stream = wire.AppendFrame(stream, wire.Header{Kind: wire.KindRequest, Request: uint64(i)}, random(7*i))
	}
	want, err := readAll(wire.NewReader(bytes.NewReader(stream), 0))
	require.Equal(t, io.EOF, err, "whole stream")
	require.Len(t, want, 5, "messages of the whole stream")
	ends := map[int]bool{0: true}
	for end, i := 0, 0; i < 5; i++ {
		end += wire.HeaderSize + 7*i
		ends[end] = true
	}
	for at := range len(stream) {
		parts := io.MultiReader(bytes.NewReader(stream[:at]), bytes.NewReader(stream[at:]))
		got, err := readAll(wire.NewReader(parts, 0))
		require.Equal(t, io.EOF, err, "split at %d", at)
		require.Equal(t, want, got, "split at %d", at)

		got, err = readAll(wire.NewReader(bytes.NewReader(stream[:at]), 0))
		require.Equal(t, want[:len(got)], got, "cut off at %d", at)
		if ends[at] {
			require.Equal(t, io.EOF, err, "cut off at %d, between messages", at)
			continue
		}
		require.ErrorIs(t, err, wire.ErrProtocol, "cut off at %d", at)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "cut off at %d", at)
	}
	got, err := readAll(wire.NewReader(iotest.OneByteReader(bytes.NewReader(stream)), 0))
	require.Equal(t, io.EOF, err, "byte by byte")
	require.Equal(t, want, got, "byte by byte")
}

func TestControlFramesOvertakePieces(t *testing.T) {
	body := random(2*wire.ChunkSize + 5)
	var stream []byte
	var want []wire.Kind
	for head, piece := range wire.Pieces(wire.Header{Kind: wire.KindRequest, Request: 9}, body) {
		stream = append(append(stream, head[:]...), piece...)
		stream = wire.AppendFrame(stream, wire.Header{Kind: wire.KindCancel, Request: uint64(len(want))}, nil)
		want = append(want, wire.KindCancel)
	}
	want[len(want)-1] = wire.KindRequest // the last piece completes the request
	want = append(want, wire.KindCancel)

	r := wire.NewReader(bytes.NewReader(stream), 0)
	var got []wire.Kind
	for {
		h, b, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err, "next")
		got = append(got, h.Kind)
		if h.Kind == wire.KindRequest {
			require.True(t, bytes.Equal(body, b), "payload")
			require.True(t, r.Owned(), "a reassembled payload is the caller's")
			require.Zero(t, h.Flags, "no piece follows")
			require.EqualValues(t, len(body), h.Length, "length of the whole")
		} else {
			require.False(t, r.Owned(), "control frame")
		}
	}
	require.Equal(t, want, got, "order of kinds")
}

// head returns the bytes of a header.
func head(h wire.Header) []byte { return h.Append(nil) }

func TestReaderRefuses(t *testing.T) {
	more := wire.Header{Kind: wire.KindRequest, Request: 1, Flags: wire.FlagMore, Length: wire.ChunkSize + 10}
	first := append(head(more), make([]byte, wire.ChunkSize)...)
	chunk := func(h wire.Header) []byte {
		h.Kind = wire.KindChunk
		return append(append(append([]byte{}, first...), head(h)...), make([]byte, min(h.Length, wire.ChunkSize))...)
	}
	for _, tt := range []struct {
		name   string
		stream []byte
		want   error
		text   string
	}{
		{"HTTP request", []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), wire.ErrProtocol, `"GET / HTTP/1.1\r\nHost`},
		{"short text", []byte("hello\n"), wire.ErrProtocol, `"hello\n"`},
		{"TLS", []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("\xaa", 40)), wire.ErrProtocol, `"\x16\x03\x01`},
		{"zeros", make([]byte, 1000), wire.ErrProtocol, "checksum"},
		{"over the limit", head(wire.Header{Kind: wire.KindReply, Length: 1<<20 + 1, Flags: wire.FlagMore}), wire.ErrTooLarge, "1048577"},
		{"largest length", head(wire.Header{Kind: wire.KindReply, Length: 1<<32 - 1}), wire.ErrTooLarge, "4294967295"},
		{"large in one piece", head(wire.Header{Kind: wire.KindReply, Length: wire.ChunkSize + 1}), wire.ErrProtocol, "one piece"},
		{"small in pieces", head(wire.Header{Kind: wire.KindReply, Length: wire.ChunkSize, Flags: wire.FlagMore}), wire.ErrProtocol, "announces"},
		{"control with payload", append(head(wire.Header{Kind: wire.KindStop, Length: 1}), 0), wire.ErrProtocol, "Stop frame with a payload"},
		{"chunk without beginning", head(wire.Header{Kind: wire.KindChunk, Length: 0}), wire.ErrProtocol, "without a beginning"},
		{"chunk of another request", chunk(wire.Header{Request: 2, Length: 10}), wire.ErrProtocol, "request 2"},
		{"empty chunk", chunk(wire.Header{Request: 1, Flags: wire.FlagMore}), wire.ErrProtocol, "empty"},
		{"too much", chunk(wire.Header{Request: 1, Length: 11}), wire.ErrProtocol, "add up"},
		{"too little", chunk(wire.Header{Request: 1, Length: 9}), wire.ErrProtocol, "add up"},
		{"no last", chunk(wire.Header{Request: 1, Length: 10, Flags: wire.FlagMore}), wire.ErrProtocol, "add up"},
		{"oversized chunk", chunk(wire.Header{Request: 1, Length: wire.ChunkSize + 1}), wire.ErrProtocol, "one piece"},
		{"other message between", wire.AppendFrame(first[:len(first):len(first)], wire.Header{Kind: wire.KindReply, Request: 2}, nil), wire.ErrProtocol, "between the pieces"},
		{"end between pieces", first, io.ErrUnexpectedEOF, "inside a message"},
		{"end in a piece", first[:100], io.ErrUnexpectedEOF, "inside a message"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := wire.NewReader(bytes.NewReader(tt.stream), 1<<20)
			got, err := readAll(r)
			require.Empty(t, got, "messages")
			require.ErrorIs(t, err, tt.want, "error")
			require.ErrorContains(t, err, tt.text, "error")
			require.LessOrEqual(t, len(err.Error()), 400, "length of the error")
			_, _, again := r.Next()
			require.Equal(t, err, again, "the error stays")
		})
	}
}

func TestReaderPassesOnReadErrors(t *testing.T) {
	broken := errors.New("broken pipe")
	stream := wire.AppendFrame(nil, wire.Header{Kind: wire.KindStop}, nil)
	_, err := readAll(wire.NewReader(io.MultiReader(bytes.NewReader(stream), iotest.ErrReader(broken)), 0))
	require.ErrorIs(t, err, broken, "the reader's own error")
	require.NotErrorIs(t, err, wire.ErrProtocol, "is not the peer's fault")
}

func TestLentMemory(t *testing.T) {
	big := random(3 * wire.ChunkSize)
	middle := random(100_000)
	stream := appendMessage(nil, wire.Header{Kind: wire.KindReply, Request: 1}, big)
	stream = appendMessage(stream, wire.Header{Kind: wire.KindReply, Request: 2}, middle)
	stream = appendMessage(stream, wire.Header{Kind: wire.KindReply, Request: 3}, []byte("small"))
	stream = appendMessage(stream, wire.Header{Kind: wire.KindReply, Request: 4}, middle)

	lent := make([]byte, len(big)+100)
	var asked []int
	r := wire.NewReader(bytes.NewReader(stream), 0)
	r.Lend = func(h wire.Header, size int) []byte {
		asked = append(asked, size)
		if h.Request == 4 {
			return make([]byte, 10) // too short
		}
		return lent
	}
	for i, want := range [][]byte{big, middle, []byte("small"), middle} {
		_, b, err := r.Next()
		require.NoError(t, err, "message %d", i+1)
		require.True(t, bytes.Equal(want, b), "payload of message %d", i+1)
		require.Equal(t, i < 2, &b[0] == &lent[0], "message %d is in the lent memory", i+1)
		require.Equal(t, i != 2, r.Owned(), "message %d is owned", i+1)
		require.LessOrEqual(t, cap(b), max(len(want), 64<<10), "message %d gives no access beyond itself", i+1)
	}
	require.Equal(t, []int{len(big), len(middle), len(middle)}, asked, "sizes asked for")
}

func TestViewsAreGoodUntilTheNextMessage(t *testing.T) {
	stream := wire.AppendFrame(nil, wire.Header{Kind: wire.KindReply}, []byte("one"))
	stream = wire.AppendFrame(stream, wire.Header{Kind: wire.KindReply}, []byte("two"))
	r := wire.NewReader(bytes.NewReader(stream), 0)
	_, b, err := r.Next()
	require.NoError(t, err, "first")
	require.Equal(t, "one", string(b), "first")
	require.False(t, r.Owned(), "a view")
	require.Equal(t, wire.HeaderSize+3, r.Buffered(), "the second waits in the buffer")
	_, b, err = r.Next()
	require.NoError(t, err, "second")
	require.Equal(t, "two", string(b), "second")
	require.Zero(t, r.Buffered(), "nothing is left")
}

// allocated returns the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestAnnouncedSizesCostNothing(t *testing.T) {
	const claim = 500 << 20
	stream := head(wire.Header{Kind: wire.KindReply, Flags: wire.FlagMore, Length: claim})
	stream = append(stream, make([]byte, wire.ChunkSize)...)
	for range 4 {
		stream = append(stream, head(wire.Header{Kind: wire.KindChunk, Flags: wire.FlagMore, Length: wire.ChunkSize})...)
		stream = append(stream, make([]byte, wire.ChunkSize)...)
	}
	got := allocated(func() {
		_, err := readAll(wire.NewReader(bytes.NewReader(stream), 0))
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "cut off")
	})
	require.Less(t, got, uint64(8*wire.ChunkSize*5), "bytes allocated for %d received of %d claimed", len(stream), claim)
}

func TestLimitCanBeSetLater(t *testing.T) {
	stream := appendMessage(nil, wire.Header{Kind: wire.KindHello}, []byte("hello"))
	stream = appendMessage(stream, wire.Header{Kind: wire.KindRequest}, make([]byte, 11))
	r := wire.NewReader(bytes.NewReader(stream), 0)
	_, _, err := r.Next()
	require.NoError(t, err, "before")
	r.SetLimit(10)
	_, _, err = r.Next()
	require.ErrorIs(t, err, wire.ErrTooLarge, "after")
}

func TestPieces(t *testing.T) {
	for _, tt := range []struct {
		size  int
		sizes []int
	}{
		{0, []int{0}},
		{1, []int{1}},
		{wire.ChunkSize, []int{wire.ChunkSize}},
		{wire.ChunkSize + 1, []int{wire.ChunkSize, 1}},
		{2 * wire.ChunkSize, []int{wire.ChunkSize, wire.ChunkSize}},
	} {
		body := make([]byte, tt.size)
		var got []int
		for head, piece := range wire.Pieces(wire.Header{Kind: wire.KindReply, Request: 5, Flags: wire.FlagTimings}, body) {
			h, err := wire.ParseHeader(head[:])
			require.NoError(t, err, "header of piece %d of %d bytes", len(got), tt.size)
			require.EqualValues(t, 5, h.Request, "request")
			require.Equal(t, len(got) < len(tt.sizes)-1, h.Flags&wire.FlagMore != 0, "flag More on piece %d of %d bytes", len(got), tt.size)
			require.True(t, len(piece) == 0 || &piece[0] == &body[len(got)*wire.ChunkSize], "piece is a part of the body")
			got = append(got, len(piece))
		}
		require.Equal(t, tt.sizes, got, "pieces of %d bytes", tt.size)
	}
	for range wire.Pieces(wire.Header{Kind: wire.KindReply}, make([]byte, wire.ChunkSize+1)) {
		break // stopping early is allowed
	}
	require.Panics(t, func() { wire.AppendFrame(nil, wire.Header{}, make([]byte, wire.ChunkSize+1)) }, "a frame of more than a piece")
}
