//go:build unix

package pipe

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// tryWrite writes as much of b as fits without waiting.
func (w *Writer) tryWrite(b []byte) (n int, full bool, err error) {
	var werr error
	err = w.raw.Write(func(fd uintptr) bool {
		for n < len(b) && werr == nil {
			var m int
			m, werr = syscall.Write(int(fd), b[n:])
			switch {
			case m > 0:
				n += m
			case errors.Is(werr, syscall.EINTR):
				werr = nil
			case m == 0 && werr == nil:
				werr = io.ErrShortWrite
			}
		}
		return true
	})
	switch {
	case err != nil: // a text of the runtime's own for a closed file
		return n, false, os.ErrClosed
	case errors.Is(werr, syscall.EAGAIN):
		return n, true, nil
	default:
		return n, false, werr
	}
}
