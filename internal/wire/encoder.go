package wire

import (
	"bytes"
	"encoding/gob"
)

// bulk is the size of a value in bytes beyond which an encoder is not kept: gob never gives its buffers back.
const bulk = 4 << 20

// Encoder is the sending end of the shared gob stream of one direction. It is not safe for concurrent use: the
// caller holds the connection's send lock. [NewEncoder] makes it.
type Encoder struct {
	limit  int
	gob    *gob.Encoder // nil: the next value begins a stream
	out    bytes.Buffer
	stream uint16
	used   bool // a body with values of this stream was finished
	bulky  bool // gob keeps a large buffer: replace it before the next value
}

// NewEncoder returns an Encoder for payloads of at most limit bytes. Limit 0 means [DefaultLimit].
func NewEncoder(limit int) *Encoder { return &Encoder{limit: bounded(limit)} }

// SetLimit changes the limit for the payloads to come.
func (e *Encoder) SetLimit(limit int) { e.limit = bounded(limit) }

// Stream returns the number of the current stream. Each Request and Reply with values carries it in its header, read
// after [Encoder.Finish].
func (e *Encoder) Stream() uint16 { return e.stream }

// Finish completes b. It runs no user code. A body that was finished must be sent, before any that is finished later:
// it may hold type definitions. On an error, [ErrEncode] or [ErrTooLarge], b cannot be sent, and the stream goes on
// as if it had never been, under the next number.
func (e *Encoder) Finish(b *Body) error {
	if b.Complete() {
		p := packer{buf: b.buf, limit: e.limit}
		return p.room(0)
	}
	if e.bulky {
		e.restart()
	}
	if e.gob == nil {
		e.gob = gob.NewEncoder(&e.out)
	}
	buf, err := e.splice(b)
	if err != nil {
		e.restart()
		return err
	}
	b.buf, b.pending, b.guess = buf, nil, 0
	e.used = true
	return nil
}

// splice returns the bytes of b with the pending values in their places. It leaves b as it is.
func (e *Encoder) splice(b *Body) ([]byte, error) {
	first := b.pending[0].at
	p := packer{buf: b.buf[:first:first], limit: e.limit}
	if first == len(b.buf) {
		p.buf = b.buf // nothing stands behind: it may grow in place
	}
	for i, v := range b.pending {
		if err := e.one(&p, v); err != nil {
			return nil, err
		}
		end := len(b.buf)
		if i+1 < len(b.pending) {
			end = b.pending[i+1].at
		}
		p.buf = append(p.buf, b.buf[v.at:end]...)
		if err := p.room(0); err != nil {
			return nil, err
		}
	}
	return p.buf, nil
}

// one appends one value of the shared stream.
func (e *Encoder) one(p *packer, v pendingValue) error {
	e.out.Reset()
	if err := gobEncode(e.gob, v.codec, v.value); err != nil {
		return err
	}
	if err := checkLoop(v.codec, e.out.Len()); err != nil {
		return err
	}
	if err := p.room(e.out.Len()); err != nil {
		return err
	}
	e.bulky = e.bulky || e.out.Len() > bulk
	p.buf = appendString(append(p.buf, tagGobShared), e.out.Bytes())
	return nil
}

// restart forgets what the stream has sent. The number changes only if the receiver has seen, or will see, the old
// one, so that it finds each number in turn.
func (e *Encoder) restart() {
	e.gob, e.bulky = nil, false
	e.out = bytes.Buffer{} // after an error it may hold anything, of any size
	if e.used {
		e.stream++
		e.used = false
	}
}
