package wire

import (
	"errors"
	"fmt"
)

// Decoder is the receiving end of the values of one direction. It belongs to one reader goroutine. [NewDecoder]
// makes it.
type Decoder struct {
	reg    *Registry
	limit  int
	stream uint16
	shared *sharedGob
	u      unpacker // of the message at hand; here, it need not be allocated each time
}

// NewDecoder returns a Decoder that finds types of interface values in reg and lets the values of a message take
// [MemoryFactor] times limit bytes. Limit 0 means [DefaultLimit]. A nil reg knows the basic types.
func NewDecoder(reg *Registry, limit int) *Decoder {
	if reg == nil {
		reg = &Registry{}
	}
	return &Decoder{reg: reg, limit: bounded(limit), shared: newSharedGob()}
}

// Values decodes body, what follows the prefix of a message with the header h, and appends its values to dst. It runs
// no user code: values whose decoding would come back as [*Deferred].
//
// Codecs tell what is expected. A value whose codec is nil is decoded if it says its type itself, else it comes back
// as [*Raw]. If codecs is nil altogether, any number of values is taken so; otherwise the numbers must be equal. If
// owned, []byte values, Deferred and Raw may keep parts of body; otherwise nothing does.
//
// An error that is [ErrDecode] concerns this message; dst is then returned as it was. [ErrProtocol] means that the
// streams have come apart. Each Request and Reply that carries values must come here or go to [Decoder.Skip], in order.
func (d *Decoder) Values(h Header, body []byte, owned bool, codecs []*Codec, dst []any) ([]any, error) {
	if err := d.follow(h); err != nil {
		return dst, err
	}
	u := &d.u
	*u = unpacker{
		cursor: cursor{b: body}, reg: d.reg, owned: owned, reader: true,
		shared: d.shared, budget: newBudget(d.limit), limit: d.limit,
	}
	defer func() { u.b = nil }()
	u.shared.done = 0
	out := dst
	for i := 0; u.left() > 0 || i < len(codecs); i++ {
		start := u.pos
		v, err := u.nth(i, codecs)
		if err != nil {
			_ = d.rest(body, start) // err is the first fault
			return dst, err
		}
		out = append(out, v)
	}
	return out, nil
}

// nth reads value i.
func (u *unpacker) nth(i int, codecs []*Codec) (any, error) {
	var c *Codec
	switch {
	case i < len(codecs):
		c = codecs[i]
	case codecs != nil:
		return nil, fmt.Errorf("%w: %d bytes after the last of %d values", ErrDecode, u.left(), len(codecs))
	}
	if u.left() == 0 {
		return nil, fmt.Errorf("%w: %d values, want %d", ErrDecode, i, len(codecs))
	}
	start := u.pos
	v, err := u.top(c)
	switch {
	case errors.Is(err, errUserCode):
		v, err = u.later(c, start)
	case c == nil && errors.Is(err, errUnknown):
		v, err = u.raw(start)
	}
	if err == nil {
		return v, nil
	}
	if c == nil {
		return nil, fmt.Errorf("%w: value %d: %w", ErrDecode, i, err)
	}
	return nil, fmt.Errorf("%w: value %d: %v: %w", ErrDecode, i, c.typ, err)
}

// top reads one whole value, with c or as it describes itself.
func (u *unpacker) top(c *Codec) (any, error) {
	if c == nil {
		return u.dynamic()
	}
	return u.value(c)
}

// later returns the value at start as a Deferred.
func (u *unpacker) later(c *Codec, start int) (any, error) {
	if c == nil {
		var err error
		if c, err = u.reg.codec(anyType); err != nil {
			return nil, err
		}
	}
	b, err := u.keep(start)
	if err != nil {
		return nil, err
	}
	return &Deferred{codec: c, b: b, reg: u.reg, limit: u.limit}, nil
}

// raw returns the value at start as a Raw.
func (u *unpacker) raw(start int) (any, error) {
	b, err := u.keep(start)
	if err != nil {
		return nil, err
	}
	return &Raw{b: b, reg: u.reg, limit: u.limit}, nil
}

// keep returns the bytes of the value at start, and goes on behind it.
func (u *unpacker) keep(start int) ([]byte, error) {
	u.pos, u.err, u.depth = start, nil, 0
	u.skip(func(int, []byte) { u.fail(errors.New("is on the shared stream, where its type must be known")) })
	if u.err != nil {
		return nil, u.err
	}
	b := u.b[start:u.pos:u.pos]
	if !u.owned {
		b = append([]byte(nil), b...)
	}
	return b, nil
}

// Skip takes from a message that is not wanted what later messages need. Its error is that of [Decoder.Values].
func (d *Decoder) Skip(h Header, body []byte) error {
	if err := d.follow(h); err != nil {
		return err
	}
	d.shared.done = 0
	return d.rest(body, 0)
}

// rest takes the type definitions from the values of body from start on that were not taken yet.
func (d *Decoder) rest(body []byte, start int) error {
	c := cursor{b: body, pos: start}
	for c.left() > 0 && c.err == nil {
		c.skip(func(at int, section []byte) {
			if at >= d.shared.done {
				_, err := d.shared.absorb(at, section)
				c.fail(err)
			}
		})
	}
	if c.err != nil {
		return fmt.Errorf("%w: %w", ErrDecode, c.err)
	}
	return nil
}

// follow goes on to the stream that the header names.
func (d *Decoder) follow(h Header) error {
	switch h.Stream {
	case d.stream:
	case d.stream + 1:
		d.stream, d.shared = h.Stream, newSharedGob()
	default:
		return fmt.Errorf("%w: gob stream %d after %d", ErrProtocol, h.Stream, d.stream)
	}
	return nil
}
