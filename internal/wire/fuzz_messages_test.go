package wire_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/wire"
)

// streams are two messages under any flags and stream numbers, as a connection delivers them: what the first one leaves
// behind meets the second.
type streams struct {
	flags  [2]uint16
	stream [2]uint16
	body   [2][]byte
}

// seedStreams adds pairs of messages to a corpus: sound ones, and each seed before and after a sound one.
func seedStreams(f *testing.F, prefix []byte, flags wire.Flags) {
	f.Helper()
	sound := append(append([]byte{}, prefix...), gobBody(0x32, gobBytes(f, point{1, 2}))...)
	f.Add(uint16(flags), uint16(flags), uint16(0), uint16(0), sound, sound)
	f.Add(uint16(flags), uint16(0), uint16(0), uint16(1), sound, unhex(f, "08 02 30 05 5b 5d 69 6e 74"))
	f.Add(uint16(0), uint16(0), uint16(0), uint16(7), unhex(f, "24 01 01 61 08 02"), unhex(f, "01"))
	for _, seed := range gobSeeds(f) {
		if len(seed.section) < 1<<12 {
			bad := append(append([]byte{}, prefix...), gobBody(0x32, seed.section)...)
			f.Add(uint16(flags), uint16(flags), uint16(0), uint16(0), bad, sound)
			f.Add(uint16(flags), uint16(flags), uint16(0), uint16(1), sound, bad)
		}
	}
}

// FuzzArguments is a worker that decodes what a host sends: several arguments by their types, or by what they say of
// themselves, after a prefix.
func FuzzArguments(f *testing.F) {
	prefix := wire.RequestPrefix{HasDeadline: true, Remaining: time.Second}
	seedStreams(f, prefix.Append(nil), prefix.Flags())
	seedStreams(f, nil, 0)
	l := newLink(f)
	codecs := []*wire.Codec{l.codec(reflect.TypeFor[point]()), l.codec(reflect.TypeFor[any]()), l.codec(reflect.TypeFor[*recursive]())}
	f.Fuzz(func(t *testing.T, flags0, flags1, stream0, stream1 uint16, body0, body1 []byte) {
		l.t = t
		dec := wire.NewDecoder(l.reg, 1<<20)
		s := streams{[2]uint16{flags0, flags1}, [2]uint16{stream0, stream1}, [2][]byte{body0, body1}}
		took := allocated(func() { arguments(l, dec, codecs, s) })
		require.Less(t, took, uint64(64<<20), "bytes allocated for %d received", len(body0)+len(body1))
	})
}

func arguments(l *link, dec *wire.Decoder, codecs []*wire.Codec, s streams) {
	for i, body := range s.body {
		h := wire.Header{Kind: wire.KindRequest, Flags: wire.Flags(s.flags[i]), Stream: s.stream[i]}
		prefix, rest, err := wire.ParseRequestPrefix(h.Flags, body)
		if err != nil {
			require.ErrorIs(l.t, err, wire.ErrProtocol, "prefix")
			return
		}
		wanted := codecs[:int(s.flags[i]>>8)%(len(codecs)+1)]
		switch {
		case prefix.Name != "": // the object dispatches by itself
			wanted = nil
		case prefix.Attr:
			err = dec.Skip(h, rest)
		case prefix.Kwargs:
			var n int
			if n, err = wire.Count(rest); err == nil {
				wanted = make([]*wire.Codec, max(1, n))
			} else {
				err = errors.Join(err, dec.Skip(h, rest))
			}
		}
		if err == nil {
			var vals []any
			if vals, err = dec.Values(h, rest, i == 0, wanted, nil); err == nil {
				err = finish(vals)
			}
		}
		if !tolerable(l, err) {
			return
		}
	}
	goesOn(l, dec, s.stream[1])
}

// FuzzReplies is a host that decodes what a worker sends: a result, or an error, after a prefix.
func FuzzReplies(f *testing.F) {
	prefix := wire.ReplyPrefix{Timings: true, Queued: time.Second, Ran: time.Minute}
	seedStreams(f, prefix.Append(nil), prefix.Flags())
	seedStreams(f, nil, 0)
	failure := wire.AppendError(nil, wire.ErrorNode{Text: "a", Name: "n", Data: []byte{1}, Kids: []wire.ErrorNode{{Text: "k"}}})
	f.Add(uint16(wire.FlagError), uint16(wire.FlagError|wire.FlagRefused), uint16(0), uint16(0), failure, failure)
	l := newLink(f)
	codecs := []*wire.Codec{nil}
	for _, typ := range fuzzTypes {
		codecs = append(codecs, l.codec(typ))
	}
	f.Fuzz(func(t *testing.T, flags0, flags1, stream0, stream1 uint16, body0, body1 []byte) {
		l.t = t
		dec := wire.NewDecoder(l.reg, 1<<20)
		s := streams{[2]uint16{flags0, flags1}, [2]uint16{stream0, stream1}, [2][]byte{body0, body1}}
		took := allocated(func() { replies(l, dec, codecs, s) })
		require.Less(t, took, uint64(64<<20), "bytes allocated for %d received", len(body0)+len(body1))
	})
}

func replies(l *link, dec *wire.Decoder, codecs []*wire.Codec, s streams) {
	var last uint16
	for i, body := range s.body {
		h := wire.Header{Kind: wire.KindReply, Flags: wire.Flags(s.flags[i]), Stream: s.stream[i]}
		prefix, rest, err := wire.ParseReplyPrefix(h.Flags, body)
		if err != nil {
			require.ErrorIs(l.t, err, wire.ErrProtocol, "prefix")
			return
		}
		if prefix.Error {
			if _, err := wire.ParseError(rest); err != nil {
				require.ErrorIs(l.t, err, wire.ErrProtocol, "error")
				return
			}
			continue
		}
		last = s.stream[i]
		c := codecs[int(s.flags[i]>>8)%len(codecs)]
		vals, err := dec.Values(h, rest, i == 0, []*wire.Codec{c}, nil)
		if err == nil {
			require.Len(l.t, vals, 1, "results")
			err = finish(vals)
		}
		if !tolerable(l, err) {
			return
		}
	}
	goesOn(l, dec, last)
}

// finish decodes what was left for later.
func finish(vals []any) error {
	for _, v := range vals {
		var err error
		switch v := v.(type) {
		case *wire.Deferred:
			_, err = v.Decode()
		case *wire.Raw:
			_, err = v.Decode(reflect.TypeFor[point]())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tolerable asserts that err is one of the two errors there are, and reports whether the connection goes on.
func tolerable(l *link, err error) bool {
	l.t.Helper()
	if errors.Is(err, wire.ErrProtocol) {
		return false
	}
	if err != nil {
		require.ErrorIs(l.t, err, wire.ErrDecode, "values")
	}
	return true
}

// goesOn asserts that a message under the next stream number arrives whatever came before.
func goesOn(l *link, dec *wire.Decoder, last uint16) {
	l.t.Helper()
	c := l.codec(reflect.TypeFor[boxless]())
	body, err := wire.Prepare([]*wire.Codec{c}, []any{boxless{5}})
	require.NoError(l.t, err, "prepare")
	require.NoError(l.t, wire.NewEncoder(0).Finish(body), "finish")
	got, err := dec.Values(wire.Header{Stream: last + 1}, body.Bytes(), false, []*wire.Codec{c}, nil)
	require.NoError(l.t, err, "the next stream")
	require.Equal(l.t, []any{boxless{5}}, got, "the next stream")
}
