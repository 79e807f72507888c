package executor

import (
	"context"
	"fmt"
	"iter"
	"reflect"
)

// Item is what became of one value of a [Map].
type Item[In, Out any] struct {
	Index    int // the place of In in the input, from 0
	In       In
	Out      Out
	Err      error // the input's own error, or a [*TaskError]; nil for a value
	Attempts int   // how often it was begun
}

// Input is what [Map] reads: values, or values with errors. A value that comes with an error is not sent; its Item has
// the error.
type Input[In any] interface {
	~func(yield func(In) bool) | ~func(yield func(In, error) bool)
}

// Map runs f for each value of in and yields the results in the order of the input, one for each value that was read.
//
// The input is read as the work goes on, on a goroutine of its own, a few values ahead of the workers: see [Prefetch]. A
// panic of it is the loop's, after the items before it. ctx is that of all tasks: when it ends, nothing more is read,
// and what was read and has no result is yielded with ErrCanceled or ErrTimeout; the loop's body should look at ctx. An
// executor that is broken or shut down ends the reading likewise. Leaving the loop cancels what is left. It does not wait
// for tasks that run, nor for an input that waits in the middle of a value: that goroutine ends when the input goes on.
//
// Nothing is done before the sequence is ranged over; ranging over it again reads the input again.
func Map[In, Out any, S Input[In]](ctx context.Context, x *Executor, f *Func[In, Out], in S, opts ...MapOption) iter.Seq[Item[In, Out]] {
	return mapped(ctx, x, f, in, true, opts)
}

// MapUnordered is [Map] that yields each result when it is there.
func MapUnordered[In, Out any, S Input[In]](ctx context.Context, x *Executor, f *Func[In, Out], in S, opts ...MapOption) iter.Seq[Item[In, Out]] {
	return mapped(ctx, x, f, in, false, opts)
}

func mapped[In, Out any, S Input[In]](ctx context.Context, x *Executor, f *Func[In, Out], in S, ordered bool, opts []MapOption) iter.Seq[Item[In, Out]] {
	cfg := mapConfig{ordered: ordered}
	for _, opt := range opts {
		opt.applyMap(&cfg)
	}
	input := inputOf[In](in)
	return func(yield func(Item[In, Out]) bool) {
		m := newMapping(ctx, x, f, cfg)
		m.run(input, yield)
	}
}

// MapOption is an argument of [Map] and [MapUnordered].
type MapOption interface{ applyMap(*mapConfig) }

type mapConfig struct {
	ordered  bool
	chunk    int // 0: as the executor thinks
	prefetch int // 0: likewise
}

// Chunk makes so many values travel together to a worker and their results back, whatever they take. Without it the
// executor sends short tasks together by itself. It reads so many values before it sends them, and sends at most 1024. A number
// less than 1 panics.
type Chunk int

func (n Chunk) applyMap(c *mapConfig) {
	if n < 1 {
		panic(fmt.Sprintf("executor: Chunk(%d)", int(n)))
	}
	c.chunk = min(int(n), maxChunk)
}

// Prefetch limits how many values may have been read whose results were not yielded. By default it is four for each
// worker, or two chunks, if that is more. It is never less than a [Chunk]. A number less than 1 panics.
type Prefetch int

func (n Prefetch) applyMap(c *mapConfig) {
	if n < 1 {
		panic(fmt.Sprintf("executor: Prefetch(%d)", int(n)))
	}
	c.prefetch = int(n)
}

// inputOf makes one form of the four that an input may have.
func inputOf[In any, S Input[In]](in S) iter.Seq2[In, error] {
	plain := func(seq iter.Seq[In]) iter.Seq2[In, error] {
		return func(yield func(In, error) bool) {
			for v := range seq {
				if !yield(v, nil) {
					return
				}
			}
		}
	}
	v := reflect.ValueOf(in)
	if v.IsNil() {
		panic("executor: Map of a nil input")
	}
	if t := reflect.TypeFor[iter.Seq[In]](); v.CanConvert(t) {
		return plain(v.Convert(t).Interface().(iter.Seq[In]))
	}
	return v.Convert(reflect.TypeFor[iter.Seq2[In, error]]()).Interface().(iter.Seq2[In, error])
}
