package lines

import (
	"bytes"
	"sync"
)

// Tail keeps the last bytes of a stream. [NewTail] makes one; it is safe for concurrent use.
type Tail struct {
	limit int

	mu   sync.Mutex
	ring []byte // grows to limit+1; the extra byte tells whether what follows it starts a line
	next int    // where the next byte goes once ring is full: the place of the oldest
}

// NewTail returns a Tail of limit bytes. Memory is taken as the stream comes. With a limit of 0 it keeps nothing.
func NewTail(limit int) *Tail {
	if limit < 0 {
		panic("lines: limit is negative")
	}
	return &Tail{limit: limit}
}

// Write appends to the stream. It never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	size := t.limit + 1
	if len(p) > size {
		p = p[len(p)-size:]
	}
	if room := size - len(t.ring); room > 0 {
		room = min(room, len(p))
		t.ring = append(t.ring, p[:room]...)
		p = p[room:]
	}
	for len(p) > 0 {
		m := copy(t.ring[t.next:], p)
		t.next = (t.next + m) % size
		p = p[m:]
	}
	return n, nil
}

// String returns the end of the stream, the whole of it if it fits. If something is missing before it, it starts with the
// first whole line; only a line that alone exceeds the limit is cut.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.ring) <= t.limit {
		return string(t.ring)
	}
	b := make([]byte, 0, len(t.ring))
	b = append(b, t.ring[t.next:]...)
	b = append(b, t.ring[:t.next]...)
	// The very last byte may end the long line; what would follow it is nothing.
	if end := bytes.IndexByte(b[:t.limit], '\n'); end >= 0 {
		return string(b[end+1:])
	}
	return string(b[1:])
}
