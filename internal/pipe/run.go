package pipe

import (
	"context"
	"runtime"

	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/wire"
)

// inlineRounds is how many stretches a sender writes before somebody else goes
// on: it has its own deadline, and must not be kept for the others' frames.
const inlineRounds = 4

// startLocked makes the caller the writer if there is none, or with inline
// false a goroutine. It unlocks.
func (w *Writer) startLocked(inline bool) {
	start := !w.busy
	w.busy = true
	if start && !inline {
		w.drainLocked(func() {
			runtime.Gosched() // let others append first
			w.run()
		})
	}
	w.mu.Unlock()
	if start && inline {
		w.runInline()
	}
}

// drainLocked starts a goroutine that writes for others. There is one at a
// time: the one before it is past its last write.
func (w *Writer) drainLocked(write func()) {
	last := w.drain
	w.drain = task.Go(func(context.Context) {
		if last != nil {
			last.Wait()
		}
		write()
	})
}

// runInline writes what waits, but never waits for room in the pipe: then, for
// payloads in pieces, and after some rounds a goroutine takes over.
func (w *Writer) runInline() {
	runtime.Gosched() // let others append first
	for range inlineRounds {
		next, ok := w.next()
		if !ok {
			return
		}
		full := true
		if next.body == nil {
			var err error
			next.written, full, err = w.tryWrite(next.small)
			if err != nil {
				w.failed(err, next, false)
				return
			}
		}
		if full {
			w.handOver(func() {
				if w.writeItem(next) {
					w.run()
				}
			})
			return
		}
		w.recycle(next)
	}
	w.handOver(w.run)
}

func (w *Writer) handOver(write func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drainLocked(write)
}

// run writes until nothing waits, and waits for room.
func (w *Writer) run() {
	for {
		next, ok := w.next()
		if !ok || !w.writeItem(next) {
			return
		}
	}
}

// next takes what is to be written next: control frames first. If there is
// nothing the caller is no longer the writer.
func (w *Writer) next() (item, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.err != nil || (len(w.control) == 0 && len(w.queue) == 0):
		w.restLocked()
		return item{}, false
	case len(w.control) > 0:
		it := item{small: w.control}
		w.control = nil
		return it, true
	default:
		it := w.queue[0]
		n := copy(w.queue, w.queue[1:]) // short: frames behind each other are one item
		w.queue[n] = item{}
		w.queue = w.queue[:n]
		return it, true
	}
}

// writeItem writes the rest of it, waiting for room, and reports success.
func (w *Writer) writeItem(it item) bool {
	if it.body == nil {
		n, err := w.file.Write(it.small[it.written:])
		it.written += n
		if err != nil {
			w.failed(err, it, false)
			return false
		}
		w.recycle(it)
		return true
	}
	begun := false
	for head, piece := range wire.Pieces(it.header, it.body) {
		var control []byte
		if begun { // before that, next has sent what is older; the rest may be about this payload
			w.mu.Lock()
			control, w.control = w.control, nil
			w.mu.Unlock()
		}
		for i, b := range [...][]byte{control, head[:], piece} {
			if len(b) == 0 {
				continue
			}
			n, err := w.file.Write(b)
			begun = begun || i > 0 && n > 0
			if err != nil {
				w.failed(err, it, begun)
				return false
			}
		}
	}
	return true
}

// recycle keeps the buffers of what was written for the next frames.
func (w *Writer) recycle(it item) {
	const keep = 64 << 10
	if cap(it.small) > keep {
		return
	}
	w.mu.Lock()
	w.spare = item{small: it.small[:0], marks: it.marks[:0]}
	w.mu.Unlock()
}
