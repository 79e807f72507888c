package executor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/workerlink/supervisor/internal/inside"
	"github.com/workerlink/supervisor/internal/proc"
	"github.com/workerlink/supervisor/internal/wire"
)

// journal is where a worker writes how far it is with a chunk of tasks, for a host that wants to know although the
// worker may be dead: in memory that both share, or in that of the host itself if the worker is a goroutine.
//
// For each task of the chunk, by its place, there is a word that both sides change by exchange while both could:
//
//	waiting -> begun -> done      by the worker
//	   |                          done: its result is in the journal
//	   +-----> revoked            by the host: the worker must not begin it
//
// Results stand behind the words, one record after the other in the order of the places: length, stream number, value.
type journal struct {
	words  []atomic.Uint32
	memory *proc.Shared // nil for a goroutine
	values []any        // for a goroutine; a value is written before its word says done
}

// The states of a task in a chunk.
const (
	waiting uint32 = iota
	begun
	done
	revoked
)

const (
	// maxChunk is how many tasks a chunk may have.
	maxChunk = 1024
	// journalSize is the shared memory of one worker. Pages that are never touched cost nothing.
	journalSize  = 512 << 10
	resultsBegin = 4 * maxChunk
	recordHead   = 6
)

func newJournal(process bool) (*journal, error) {
	if !process {
		return &journal{words: make([]atomic.Uint32, maxChunk), values: make([]any, maxChunk)}, nil
	}
	memory, err := proc.NewShared(journalSize)
	if err != nil {
		return nil, err
	}
	return &journal{words: memory.Words(maxChunk), memory: memory}, nil
}

// openJournal is the worker's side of a host's newJournal.
func openJournal(fd int) (*journal, error) {
	memory, err := proc.MapShared(fd, journalSize)
	if err != nil {
		return nil, err
	}
	return &journal{words: memory.Words(maxChunk), memory: memory}, nil
}

// reset makes n tasks waiting. The worker is idle then.
func (j *journal) reset(n int) {
	for i := range n {
		j.words[i].Store(waiting)
	}
}

func (j *journal) state(i int) uint32 { return j.words[i].Load() }

// revoke keeps task i from being begun; false if it has.
func (j *journal) revoke(i int) bool { return j.words[i].CompareAndSwap(waiting, revoked) }

// begin reports whether task i is to be executed.
func (j *journal) begin(i int) bool { return j.words[i].CompareAndSwap(waiting, begun) }

func (j *journal) close() error {
	if j.memory == nil {
		return nil
	}
	return j.memory.Close()
}

// pen writes the results of one chunk.
type pen struct {
	journal *journal
	codec   *wire.Codec
	encoder *wire.Encoder
	at      int
}

func (j *journal) pen(f *function) (*pen, error) {
	p := &pen{journal: j, at: resultsBegin}
	if j.memory == nil {
		return p, nil
	}
	var err error
	if p.codec, err = f.outCodec(); err != nil {
		return nil, err
	}
	p.encoder = wire.NewEncoder(journalSize)
	return p, nil
}

// put makes task i done with a result; false if that has to be said in another way.
func (p *pen) put(i int, result any) bool {
	j := p.journal
	if j.memory == nil {
		j.values[i] = result
		j.words[i].Store(done)
		return true
	}
	body, err := wire.Packing{Registry: inside.Types, Limit: journalSize}.Prepare([]*wire.Codec{p.codec}, []any{result})
	if err != nil {
		return false
	}
	if err := p.encoder.Finish(body); err != nil {
		return false
	}
	b := body.Bytes()
	room := j.memory.Bytes(p.at)
	if len(room) < recordHead+len(b) {
		return false
	}
	binary.LittleEndian.PutUint32(room, uint32(len(b)))
	binary.LittleEndian.PutUint16(room[4:], p.encoder.Stream())
	copy(room[recordHead:], b)
	p.at += recordHead + len(b)
	j.words[i].Store(done)
	return true
}

// eye reads the results of one chunk, in the order of their places.
type eye struct {
	journal *journal
	codec   *wire.Codec
	decoder *wire.Decoder
	at      int
	broken  error // the worker has written what cannot be read; nothing behind it can
}

func (j *journal) eye() *eye { return &eye{journal: j, at: resultsBegin} }

// result is that of task i, which is done; those before it that are done were read. It may be a *wire.Deferred.
func (e *eye) result(i int, f *function) (any, error) {
	j := e.journal
	if j.memory == nil {
		v := j.values[i]
		j.values[i] = nil
		return v, nil
	}
	if e.decoder == nil {
		var err error
		if e.codec, err = f.outCodec(); err != nil {
			return nil, err
		}
		e.decoder = wire.NewDecoder(inside.Types, journalSize)
	}
	if e.broken != nil {
		return nil, e.broken
	}
	b := j.memory.Bytes(e.at)
	n := 0
	if len(b) >= recordHead {
		n = int(binary.LittleEndian.Uint32(b))
	}
	if len(b)-recordHead < n {
		e.broken = fmt.Errorf("%w: a worker's journal ends within a record", wire.ErrProtocol)
		return nil, e.broken
	}
	e.at += recordHead + n
	var room [1]any
	vals, err := e.decoder.Values(wire.Header{Stream: binary.LittleEndian.Uint16(b[4:])}, b[recordHead:recordHead+n], false, []*wire.Codec{e.codec}, room[:0])
	switch {
	case errors.Is(err, wire.ErrProtocol):
		e.broken = err
		return nil, err
	case err != nil:
		return nil, err
	}
	return vals[0], nil
}
