package lines

import (
	"bytes"
	"errors"
	"io"
)

// chunk is how much Copy reads at once, in bytes.
const chunk = 32 << 10

// Copy reads r to its end and calls emit for each line, without its "\n" or "\r\n". The last line needs no end. Of a line
// longer than limit bytes the first limit bytes are emitted, as soon as there are more, with truncated set; the
// rest of it is discarded. The bytes belong to Copy and change when emit has returned. Memory is bounded by limit. The error is
// that of r, nil at its end; what was read before an error is emitted. Copy panics if limit is not positive.
func Copy(r io.Reader, limit int, emit func(line []byte, truncated bool)) error {
	s := NewSplitter(limit, emit)
	defer s.flush()
	buf := make([]byte, chunk)
	for {
		n, err := r.Read(buf)
		s.write(buf[:n])
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Splitter is what [Copy] does, as an [io.WriteCloser]. It is not safe for concurrent use.
type Splitter struct {
	limit int
	emit  func(line []byte, truncated bool)

	// What is held of the unfinished line: limit bytes, and one more that does not count if it is a final "\r".
	held     []byte
	skipping bool // the line was emitted, truncated, and its rest is to be discarded
}

// NewSplitter returns a Splitter; see [Copy] for the arguments.
func NewSplitter(limit int, emit func(line []byte, truncated bool)) *Splitter {
	if limit < 1 {
		panic("lines: limit is not positive")
	}
	return &Splitter{limit: limit, emit: emit}
}

// Write emits the lines that p completes. It never fails.
func (s *Splitter) Write(p []byte) (int, error) {
	s.write(p)
	return len(p), nil
}

// Close emits a last line that has no end. It never fails, and may be called twice.
func (s *Splitter) Close() error {
	s.flush()
	return nil
}

func (s *Splitter) flush() {
	if !s.skipping && len(s.held) > 0 {
		s.finish(s.held)
	}
	s.held = s.held[:0]
	s.skipping = false
}

func (s *Splitter) write(p []byte) {
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			s.hold(p)
			return
		}
		if len(s.held) == 0 && end <= s.limit && !s.skipping {
			s.finish(p[:end]) // whole, as most lines are: no copy
		} else {
			s.hold(p[:end])
			if !s.skipping {
				s.finish(s.held)
			}
			s.held = s.held[:0]
			s.skipping = false
		}
		p = p[end+1:]
	}
}

// hold adds to the unfinished line. Once that is certainly too long it is emitted.
func (s *Splitter) hold(p []byte) {
	if s.skipping {
		return
	}
	room := s.limit + 1 - len(s.held)
	if len(p) <= room {
		s.held = append(s.held, p...)
		return
	}
	s.held = append(s.held, p[:room]...)
	s.emit(s.held[:s.limit], true)
	s.held = s.held[:0]
	s.skipping = true
}

// finish emits a complete line of at most limit+1 bytes.
func (s *Splitter) finish(line []byte) {
	line = bytes.TrimSuffix(line, []byte("\r"))
	if len(line) > s.limit {
		s.emit(line[:s.limit], true)
		return
	}
	s.emit(line, false)
}
