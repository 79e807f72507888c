package pipe_test

import (
	"os"
	"reflect"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/pipe"
	"github.com/workerlink/supervisor/internal/wire"
)

func TestFramesArriveInOrder(t *testing.T) {
	r, w := newPipe(t)
	const n = 1000
	bodies := make([]*wire.Body, n)
	for i := range bodies {
		bodies[i] = body(t, i)
	}
	go func() {
		for i := range uint64(n) {
			if err := w.Send(request(i+1), bodies[i], i%3 != 0); err != nil {
				t.Errorf("Send(%d): %v", i+1, err)
			}
		}
	}()
	in, dec := wire.NewReader(r, 0), wire.NewDecoder(nil, 0)
	for i := range n {
		h, payload, err := in.Next()
		require.NoError(t, err, "Next frame")
		require.Equal(t, uint64(i+1), h.Request, "number of the frame at place %d", i)
		vals, err := dec.Values(h, payload, false, nil, nil)
		require.NoError(t, err, "values of request %d", h.Request)
		require.Equal(t, []any{i}, vals, "values of request %d", h.Request)
	}
}

// point goes to the shared stream of a direction.
type point struct{ X, Y int }

func pointCodec(t testing.TB) *wire.Codec {
	t.Helper()
	c, err := wire.CodecOf(reflect.TypeFor[point](), nil)
	require.NoError(t, err, "CodecOf(point)")
	return c
}

// Many goroutines send plain values, values of the shared stream, and payloads in pieces: each arrives once, whole, and in
// the order of its sender.
func TestManySenders(t *testing.T) {
	r, w := newPipe(t)
	codec := pointCodec(t)
	const senders, each = 16, 200
	var all sync.WaitGroup
	for s := range uint64(senders) {
		all.Go(func() {
			for i := range uint64(each) {
				var b *wire.Body
				var err error
				switch {
				case i == 100:
					b, err = wire.Prepare(nil, []any{make([]byte, wire.ChunkSize+int(s))})
				case i%2 == 0:
					b, err = wire.Prepare([]*wire.Codec{codec}, []any{point{int(s), int(i)}})
				default:
					b, err = wire.Prepare(nil, []any{strconv.Itoa(int(i))})
				}
				if err == nil {
					err = w.Send(request(s<<32|i), b, i%5 != 0)
				}
				if err != nil {
					t.Errorf("Send(%d of sender %d): %v", i, s, err)
				}
			}
		})
	}
	in, dec := wire.NewReader(r, 0), wire.NewDecoder(nil, 0)
	var want [senders]uint64
	for range senders * each {
		h, payload, err := in.Next()
		require.NoError(t, err, "Next frame")
		s, i := h.Request>>32, h.Request&0xffffffff
		require.Equal(t, want[s], i, "place of the next frame of sender %d", s)
		want[s]++
		codecs := []*wire.Codec{nil}
		if i != 100 && i%2 == 0 {
			codecs[0] = codec
		}
		vals, err := dec.Values(h, payload, false, codecs, nil)
		require.NoError(t, err, "values of frame %d of sender %d", i, s)
		switch {
		case i == 100:
			require.Len(t, vals[0], wire.ChunkSize+int(s), "payload in pieces of sender %d", s)
		case i%2 == 0:
			require.Equal(t, point{int(s), int(i)}, vals[0], "value %d of sender %d", i, s)
		default:
			require.Equal(t, strconv.Itoa(int(i)), vals[0], "value %d of sender %d", i, s)
		}
	}
	all.Wait()
}

// bulky is a value after which the encoder begins a new stream.
type bulky struct{ Parts []string }

// A frame without values of the shared stream carries the stream's number too: the receiver follows it in every frame.
func TestPlainFramesNameTheStream(t *testing.T) {
	r, w := newPipe(t)
	codec, err := wire.CodecOf(reflect.TypeFor[bulky](), nil)
	require.NoError(t, err, "CodecOf(bulky)")
	large := bulky{Parts: []string{string(make([]byte, 5<<20))}}
	small := bulky{Parts: []string{"after"}}
	sent := make(chan error, 1)
	go func() {
		for i, v := range []any{large, small, 7, small, 8} {
			var codecs []*wire.Codec
			if _, ok := v.(bulky); ok {
				codecs = []*wire.Codec{codec}
			}
			b, err := wire.Prepare(codecs, []any{v})
			if err == nil {
				err = w.Send(request(uint64(i+1)), b, true)
			}
			if err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	in, dec := wire.NewReader(r, 0), wire.NewDecoder(nil, 0)
	streams := make([]uint16, 0, 5)
	for _, c := range []*wire.Codec{codec, codec, nil, codec, nil} {
		h, payload, err := in.Next()
		require.NoError(t, err, "Next frame")
		_, err = dec.Values(h, payload, false, []*wire.Codec{c}, nil)
		require.NoErrorf(t, err, "values of request %d, stream %d", h.Request, h.Stream)
		streams = append(streams, h.Stream)
	}
	require.NoError(t, <-sent, "sending")
	require.Equal(t, []uint16{0, 1, 1, 1, 1}, streams, "stream numbers: the large value ends the first stream")
}

// A value that cannot be encoded costs its own request only: nothing of it is sent, and what follows is intact.
func TestEncodingErrorSendsNothing(t *testing.T) {
	r, f, err := os.Pipe()
	require.NoError(t, err, "os.Pipe")
	defer r.Close()
	w, err := pipe.NewWriter(f, 1000)
	require.NoError(t, err, "NewWriter")
	codec, err := wire.CodecOf(reflect.TypeFor[bulky](), nil)
	require.NoError(t, err, "CodecOf(bulky)")
	send := func(num uint64, text string) error {
		b, err := wire.Prepare([]*wire.Codec{codec}, []any{bulky{Parts: []string{text}}})
		require.NoError(t, err, "Prepare")
		return w.Send(request(num), b, true)
	}
	require.NoError(t, send(1, "before"), "Send of a small value")
	require.ErrorIs(t, send(2, string(make([]byte, 2000))), wire.ErrTooLarge, "Send of a value over the limit")
	require.NoError(t, send(3, "behind"), "Send after the refusal")
	w.Close()
	require.Empty(t, unsent(w), "what was refused was never accepted, so it is not unsent")

	in, dec := wire.NewReader(r, 0), wire.NewDecoder(nil, 0)
	for _, want := range []struct {
		num  uint64
		text string
	}{{1, "before"}, {3, "behind"}} {
		h, payload, err := in.Next()
		require.NoError(t, err, "Next frame")
		require.Equal(t, want.num, h.Request, "number")
		vals, err := dec.Values(h, payload, false, []*wire.Codec{codec}, nil)
		require.NoError(t, err, "values of request %d", h.Request)
		require.Equal(t, []any{bulky{Parts: []string{want.text}}}, vals, "values of request %d", h.Request)
	}
	left, err := rest(in)
	require.NoError(t, err, "end of the stream")
	require.Empty(t, left, "frames behind the last")
}

func TestNewWriterOfClosedFile(t *testing.T) {
	r, f, err := os.Pipe()
	require.NoError(t, err, "os.Pipe")
	require.NoError(t, r.Close(), "Close of the reading end")
	require.NoError(t, f.Close(), "Close of the writing end")
	w, err := pipe.NewWriter(f, 0)
	if err == nil {
		err = w.SendBytes(request(1), nil)
		require.NoError(t, err, "the first Send only queues")
		err = w.SendBytes(request(2), nil)
		w.Close()
	}
	require.ErrorIs(t, err, os.ErrClosed, "a closed file is found out with the first frame at the latest")
}
