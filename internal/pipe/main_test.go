package pipe_test

import (
	"errors"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/workerlink/supervisor/internal/pipe"
	"github.com/workerlink/supervisor/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newPipe returns the two ends of a pipe. Both are closed with the test.
func newPipe(t *testing.T) (*os.File, *pipe.Writer) {
	t.Helper()
	r, f, err := os.Pipe()
	require.NoError(t, err, "os.Pipe")
	w, err := pipe.NewWriter(f, 0)
	require.NoError(t, err, "NewWriter of an open pipe")
	t.Cleanup(func() {
		_ = r.Close()
		w.Close()
	})
	return r, w
}

// request is the header of request number num.
func request(num uint64) wire.Header { return wire.Header{Kind: wire.KindRequest, Request: num} }

// body holds values that say their types themselves.
func body(t testing.TB, vals ...any) *wire.Body {
	t.Helper()
	b, err := wire.Prepare(nil, vals)
	require.NoErrorf(t, err, "Prepare(%T)", vals)
	return b
}

// bytesOf makes a body whose payload has exactly size bytes.
func bytesOf(t testing.TB, size int) *wire.Body {
	t.Helper()
	b, err := wire.Packing{Prefix: make([]byte, size)}.Prepare(nil, nil)
	require.NoError(t, err, "Prepare of a prefix")
	return b
}

// frame is one message as it arrived.
type frame struct {
	wire.Header
	payload []byte
}

// next reads one message, which must be there.
func next(t testing.TB, r *wire.Reader) frame {
	t.Helper()
	h, b, err := r.Next()
	require.NoError(t, err, "Next frame")
	return frame{h, append([]byte(nil), b...)}
}

// rest reads all messages up to the end of the stream, which may be in the middle of one.
func rest(r *wire.Reader) (all []frame, err error) {
	for {
		h, b, err := r.Next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return all, err
		}
		all = append(all, frame{h, append([]byte(nil), b...)})
	}
}

// unsent collects the requests of which w says that nothing left.
func unsent(w *pipe.Writer) []uint64 {
	nums := []uint64{}
	w.Unsent(func(num uint64) { nums = append(nums, num) })
	return nums
}
