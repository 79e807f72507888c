package supervisor

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/workerlink/supervisor/internal/wire"
)

// request queues one request, or refuses it. What arrives is decoded even if
// it is refused: later values of the stream need its type definitions.
func (w *worker) request(h wire.Header, body []byte) error {
	w.mu.Lock()
	m, a, stopped := w.methods, w.actor, w.stopped
	w.mu.Unlock()
	if a == nil {
		return fmt.Errorf("%w: request before the worker was ready", ErrProtocol)
	}
	prefix, rest, err := wire.ParseRequestPrefix(h.Flags, body)
	if err != nil {
		return err
	}
	r := &Request{Num: h.Request, Attr: prefix.Attr, method: int(h.Method), Method: prefix.Name}
	r.timed, r.watched = prefix.Timings, prefix.Watch
	r.scope.self = w.self
	if prefix.HasDeadline {
		r.deadline = time.Now().Add(prefix.Remaining)
	}
	if err := w.arguments(m, r, prefix, h, rest); errors.Is(err, ErrProtocol) {
		return err
	} else if err != nil {
		w.reply(r, verdict{err: library(err), unexecuted: true})
		return nil
	}
	w.mu.Lock()
	cancelled := w.early == r.Num
	w.open[r.Num] = r
	w.mu.Unlock()
	if cancelled {
		r.scope.end(ErrCanceled)
	}
	if stopped || !a.runner.submit(r) {
		w.refuseNew(r)
	}
	return nil
}

// arguments decodes and checks what the host sent for r.
func (w *worker) arguments(m *methods, r *Request, prefix wire.RequestPrefix, h wire.Header, body []byte) error {
	var refusal error
	var codecs []*wire.Codec
	switch {
	case prefix.Name == hookSnapshot && r.Attr:
		r.method = methodSnapshot
		if !m.shows {
			refusal = fmt.Errorf("%w: %s", ErrNoSuchMethod, prefix.Name)
		}
	case prefix.Name != "":
		r.method = methodByName
		if !m.handles {
			refusal = fmt.Errorf("%w: %s", ErrNoSuchMethod, prefix.Name)
		}
	case r.method >= len(m.all):
		refusal = fmt.Errorf("%w: number %d", ErrNoSuchMethod, r.method)
	default:
		r.Method = m.all[r.method].Name
		refusal = m.all[r.method].err
		codecs = m.all[r.method].in
	}
	if refusal != nil {
		return errors.Join(refusal, w.decoder.Skip(h, body))
	}
	if r.Attr {
		codecs = []*wire.Codec{} // exactly none
	} else if prefix.Kwargs || r.method >= 0 && m.all[r.method].tail != nil {
		n, err := wire.Count(body)
		if err != nil {
			return cmp.Or(w.decoder.Skip(h, body), err) // the stream goes on all the same
		}
		codecs = varying(m, r, n, prefix.Kwargs)
	}
	args, err := w.decoder.Values(h, body, w.reader.Owned(), codecs, nil)
	if err != nil {
		return err
	}
	r.Args = args
	r.coded.deferred = hasDeferred(args)
	if r.method < 0 || r.Attr {
		return nil
	}
	if prefix.Kwargs {
		r.kwargs, _ = args[len(args)-1].(map[string]any)
		r.Args = args[:len(args)-1]
		return m.resolve(r)
	}
	if len(args) != len(codecs) {
		return fmt.Errorf("%w: %s takes %d arguments, got %d", ErrBadArgs, r.Method, len(codecs), len(args))
	}
	return nil
}

// varying are the codecs of n values, where their number is not fixed: those of
// a variadic method, and a dynamic map of keyword arguments at the end.
func varying(m *methods, r *Request, n int, kwargs bool) []*wire.Codec {
	if !kwargs {
		return m.all[r.method].codecs(n)
	}
	codecs := make([]*wire.Codec, max(1, n))
	if r.method >= 0 {
		copy(codecs[:len(codecs)-1], m.all[r.method].codecs(n-1))
	}
	return codecs
}

func hasDeferred(vals []any) bool {
	for _, v := range vals {
		if _, ok := v.(*wire.Deferred); ok {
			return true
		}
	}
	return false
}

// cancel ends the context of a request that nobody waits for any more.
func (w *worker) cancel(num uint64) {
	w.mu.Lock()
	r := w.open[num]
	if r == nil && w.reader.UnderWay() == num {
		w.early = num
	}
	w.mu.Unlock()
	if r == nil {
		return
	}
	cause := ErrCanceled
	if !r.deadline.IsZero() && time.Until(r.deadline) < atDeadline {
		cause = ErrTimeout
	}
	r.scope.end(cause)
}

// reply writes a verdict; the runner calls it on the handler's goroutine.
func (w *worker) reply(r *Request, v verdict) bool {
	w.mu.Lock()
	m := w.methods
	delete(w.open, r.Num)
	w.mu.Unlock()
	if v.err == nil {
		if v.err = w.sendValue(m, r, v); v.err == nil {
			r.scope.end(nil)
			return true
		}
		v.err = library(v.err)
	}
	prefix := wire.ReplyPrefix{Error: true, Refused: v.unexecuted, Timings: r.timed, Queued: v.queued, Ran: v.ran}
	body := wire.AppendError(prefix.Append(nil), toNode(v.err))
	h := wire.Header{Kind: wire.KindReply, Flags: prefix.Flags(), Request: r.Num}
	_ = w.writer.SendBytes(h, body) // a broken pipe is the end of the host, which receive sees
	r.scope.end(nil)
	return true
}

func (w *worker) sendValue(m *methods, r *Request, v verdict) error {
	var out *wire.Codec
	if r.method >= 0 {
		if err := m.all[r.method].err; err != nil {
			return err
		}
		out = m.all[r.method].out
	}
	prefix := wire.ReplyPrefix{Timings: r.timed, Queued: v.queued, Ran: v.ran}
	packing := wire.Packing{
		Prefix: prefix.Append(nil), Registry: types,
		SelfContained: w.hello.SelfContained, Limit: w.hello.FrameLimit,
	}
	body, err := packing.Prepare([]*wire.Codec{out}, []any{v.value})
	if err != nil {
		return err
	}
	err = w.writer.Send(wire.Header{Kind: wire.KindReply, Flags: prefix.Flags(), Request: r.Num}, body, !v.more)
	if errors.Is(err, ErrEncode) || errors.Is(err, ErrTooLarge) {
		return err
	}
	return nil // a broken pipe is the end of the host, which receive sees
}
