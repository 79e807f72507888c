package wire

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"reflect"
)

// sharedGob is the receiving end of one shared gob stream. It keeps the stream's type definitions as bytes, so that
// when gob's decoder is lost to a bad value, the next one can be told all that went before.
type sharedGob struct {
	types *gobTypes
	defs  []byte // messages with definitions, in order
	dec   *gob.Decoder
	told  int // bytes of defs that dec has seen
	in    bytes.Reader
	done  int // place in the current body behind the last section that was absorbed
}

func newSharedGob() *sharedGob { return &sharedGob{types: newGobTypes()} }

// absorb takes the definitions from the section at a place in the body and returns the place of the value message
// inside the section.
func (s *sharedGob) absorb(at int, section []byte) (int, error) {
	s.done = at + 1
	scan := gobScan{types: s.types}
	n, err := scan.absorb(section)
	s.defs = append(s.defs, section[:n]...)
	return n, err
}

// decode reads the section at a place in the body: its definitions and its value.
func (s *sharedGob) decode(c *Codec, v reflect.Value, section []byte, at int, b *budget) error {
	n, err := s.absorb(at, section)
	if err != nil {
		return err
	}
	if c.shape.loops && len(section)-n > loopMax {
		return fmt.Errorf("%w: %d bytes of gob, limit %d", errLoop, len(section)-n, loopMax)
	}
	scan := gobScan{types: s.types, reg: c.reg, budget: b}
	if err := scan.scan(section[n:], c.typ); err != nil {
		return err
	}
	if s.dec == nil {
		s.dec, s.told = gob.NewDecoder(&s.in), 0
	}
	if s.told == len(s.defs)-n {
		s.in.Reset(section) // what is new to dec stands in this section
	} else {
		s.in.Reset(append(s.defs[s.told:len(s.defs):len(s.defs)], section[n:]...))
	}
	s.told = len(s.defs)
	err = guard(func() error { return s.dec.DecodeValue(v.Addr()) })
	if err != nil || len(section) > bulk {
		s.dec = nil
	}
	s.in.Reset(nil)
	return err
}
