//go:build linux || darwin

package faulttest_test

// Replies of a raw worker that are sound frames and hold what they should not.

import (
	"math/bits"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/future"
	"github.com/workerlink/supervisor/internal/testkit"
	"github.com/workerlink/supervisor/internal/wire"
)

// framesChain can be as deep as one likes.
type framesChain struct {
	V    int
	Next *framesChain
}

func init() {
	supervisor.RegisterType[framesChain]()

	rawPart("first piece", func(w *rawWorker) { // of a text of 1 MiB, and no more
		w.ready()
		h := wire.Header{Kind: wire.KindReply, Request: w.request().num, Flags: wire.FlagMore, Length: 1 << 20}
		w.write(append(h.Append(nil), make([]byte, wire.ChunkSize)...))
	})
	rawPart("flip payload", func(w *rawWorker) { // bit n of the n-th answer in turn; the one after it is as it should be
		w.ready()
		for bit := 0; ; bit++ {
			first, second := w.request(), w.request()
			b := append([]byte{}, first.value...)
			b[bit/8%len(b)] ^= 1 << (bit % 8)
			w.write(append(rawReply(first.num, b), second.reply()...))
		}
	})
	rawPart("trickle", func(w *rawWorker) { // ten milliseconds for each byte of a reply
		w.ready()
		pace := time.NewTicker(10 * time.Millisecond)
		for {
			for _, b := range w.request().reply() {
				<-pace.C
				w.write([]byte{b})
			}
		}
	})
	rawPart("deep", func(w *rawWorker) { // a chain of so many links
		w.ready()
		w.write(rawPieces(w.request().num, framesChainBody(w.number(0))))
		w.honest()
	})
	rawPart("deaf", func(w *rawWorker) { // the bytes of the first argument, and then nothing is read or written any more
		w.ready()
		w.request()
		w.write([]byte(w.unquoted(0)))
		never := make(chan os.Signal)
		<-never
	})
}

// rawPieces is a reply of any size.
func rawPieces(num uint64, payload []byte) (all []byte) {
	for h, piece := range wire.Pieces(wire.Header{Kind: wire.KindReply, Request: num}, payload) {
		all = append(append(all, h[:]...), piece...)
	}
	return all
}

// A payload has no checksum. Whatever bit of it is flipped, its own call gets an error, or a value that is as wrong as the
// bit makes it, and the reply behind it is as it should be.
func TestF05FlippedPayloadBits(t *testing.T) {
	const size = 40 // bytes of the payload, which make 64 with the header
	text := strings.Repeat("m", size-2)
	r := newRawRig(t)
	r.played(t, "flip payload")
	for bit := range 8 * size {
		ctx := testkit.Context(t)
		flipped, sound := supervisor.Go[string](ctx, r.sup, r.raw, "Text", text), supervisor.Go[string](ctx, r.sup, r.raw, "Text", "sound")
		got := framesResult(t, sound)
		require.NoError(t, got.Err, "the call behind bit %d", bit)
		require.Equal(t, "sound", got.Value, "its result behind bit %d", bit)
		if got = framesResult(t, flipped); got.Err != nil {
			require.ErrorIs(t, got.Err, supervisor.ErrDecode, "bit %d", bit)
			continue
		}
		require.Equal(t, 1, framesDifference(text, got.Value), "bits that differ in %q, of which bit %d is flipped", got.Value, bit)
	}
}

func framesResult[R any](t testing.TB, f *future.Future[R]) (r supervisor.Result[R]) {
	t.Helper()
	testkit.Within(t, rawPrompt, func() { r.Value, r.Err = f.Result(testkit.Context(t)) })
	return r
}

// framesDifference is the number of bits in which two texts of one length differ, or -1.
func framesDifference(a, b string) (n int) {
	if len(a) != len(b) {
		return -1
	}
	for i := range len(a) {
		n += bits.OnesCount8(a[i] ^ b[i])
	}
	return n
}

// A reply that takes 250 ms to arrive is whole in the end, and does not hold up the caller's deadline.
func TestF06ADeadlineWhileBytesArrive(t *testing.T) {
	r := newRawRig(t)
	r.played(t, "trickle")
	got, err := r.call(t, 5)
	require.NoError(t, err, "the call that waits")
	require.Equal(t, 5, got, "its result")

	const patience = 50 * time.Millisecond
	p := supervisor.NewSendPayload(r.raw, "Echo", 6)
	p.Timeout = patience
	start := time.Now()
	_, err = r.sup.Do(testkit.Context(t), p)
	took := time.Since(start)
	require.ErrorIs(t, err, supervisor.ErrTimeout, "the call that does not")
	require.GreaterOrEqual(t, took, patience, "time until the timeout")
	require.Less(t, took, 200*time.Millisecond*testkit.Slowdown, "time until the timeout, with the reply half there")
	got, err = r.call(t, 7)
	require.NoError(t, err, "the call after it, in the same life")
	require.Equal(t, 7, got, "its result")
}

// framesMapBody is a gob map of one entry that claims to have n, with n in four bytes.
func framesMapBody(n uint32) []byte {
	gob := []byte("\x0e\xff\x81\x04\x01\x02\xff\x82\x00\x01\x0c\x01\x04\x00\x00\x0b\xff\x82\x00" + "\xfc....\x01k\x02")
	for i := range 4 {
		gob[20+i] = byte(n >> (8 * (3 - i)))
	}
	return append([]byte{0x33, byte(len(gob))}, gob...) // a stream of its own each time
}

// A few bytes say that a map has 2^27 entries.
func TestC27MapOfManyEntries(t *testing.T) {
	const limit = 64 << 20
	r := newRawRig(t)
	r.played(t, "answer", rawQuoted(rawReply(0, framesMapBody(1))), rawQuoted(rawReply(0, framesMapBody(1<<27))))
	got, err := supervisor.Call[map[string]int](testkit.Context(t), r.sup, r.raw, "Map")
	require.NoError(t, err, "the same with the right count")
	require.Equal(t, map[string]int{"k": 1}, got, "its result")
	require.Less(t, allocatedBy(func() {
		_, err := supervisor.Call[map[string]int](testkit.Context(t), r.sup, r.raw, "Map")
		require.ErrorIs(t, err, supervisor.ErrDecode, "a map of 2^27 entries")
		require.ErrorContains(t, err, "134217728 elements", "a map of 2^27 entries: what is wrong with it")
	}), uint64(limit), "bytes allocated")
	n, err := r.call(t, 8)
	require.NoError(t, err, "the next call, in the same life")
	require.Equal(t, 8, n, "its result")
}

// framesChainBody is a chain of so many links as gob.
func framesChainBody(links int) []byte {
	uint32Of := func(n int) []byte { return []byte{0xfc, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)} }
	name := "framesChain"
	def := "\xff\x81\x03\x01\x01" + string(rune(len(name))) + name + "\x01\xff\x82\x00\x01\x02\x01\x01V\x01\x04\x00\x01\x04Next\x01\xff\x82\x00\x00\x00"
	// Each link is the step to its second field and, at the end, the mark that ends a struct.
	value := "\xff\x82\x01\x02\x01" + strings.Repeat("\x02", links-1) + "\x01\x02" + strings.Repeat("\x00", links+1)
	gob := append([]byte{byte(len(def))}, def...)
	gob = append(append(gob, uint32Of(len(value))...), value...)
	size := len(gob)
	body := []byte{0x32}
	for ; size >= 0x80; size >>= 7 {
		body = append(body, byte(size)|0x80)
	}
	return append(append(body, byte(size)), gob...)
}

// A value of a million levels would overflow the stack of whoever decodes it, and end the process.
func TestC28DeepReplies(t *testing.T) {
	r := newRawRig(t)
	for _, tt := range []struct {
		name, links string
		fine        bool
	}{
		{"a few", "3", true},
		{"as many as a sender may send", "9000", true},
		{"more than a stack has room for, in one frame", "100000", false},
		{"a million", "1000000", false},
		{"three million", "3000000", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r.played(t, "deep", tt.links)
			var err error
			testkit.Within(t, rawPrompt, func() { _, err = supervisor.Call[framesChain](testkit.Context(t), r.sup, r.raw, "Chain") })
			if tt.fine {
				require.NoError(t, err, "a chain of %s links", tt.links)
			} else {
				require.ErrorIs(t, err, supervisor.ErrDecode, "a chain of %s links", tt.links)
			}
			n, err := r.call(t, 8)
			require.NoError(t, err, "the next call, in the same life")
			require.Equal(t, 8, n, "its result")
		})
	}
}

// After an offence the host reads no more. A worker that keeps its pipe open and does not listen must not stay for ever.
func TestC111DeafOffender(t *testing.T) {
	r := newRawRig(t)
	r.played(t, "deaf", rawQuoted(strings.Repeat("noise ", 20)))
	_, err := r.call(t, 1)
	exit(t, err, supervisor.ErrProtocol)
	var gone *supervisor.ExitError
	require.ErrorAs(t, r.ends(t), &gone, "the end of the deaf worker")
	require.NotEmpty(t, gone.KilledBy, "why it was killed")
	require.NotContains(t, testkit.Children(), gone.Pid, "processes that are left")
}
