//go:build linux || darwin

package faulttest_test

// What a host makes of workers that break the protocol: the fault is named, at once, to those whom it concerns and to
// nobody else.

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/future"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
	"github.com/workerlink/supervisor/internal/wire"
)

// rawPrompt is how long an offence may go unpunished.
const rawPrompt = 3 * time.Second

// rawRig is a supervisor whose child 0 is a good worker. Raw ones come after it.
type rawRig struct {
	sup  *supervisor.Supervisor
	seen *testkit.Recorder[supervisor.Event, supervisor.EventKind]
	raw  int // the last of them

	limits supervisor.Limits // of the raw workers to come
}

// newRawRig starts child 0, which is called again and again until the test is over, and must answer throughout.
func newRawRig(t *testing.T) *rawRig {
	t.Helper()
	testkit.NoLeaks(t)
	r := &rawRig{seen: testkit.NewRecorder(func(e supervisor.Event) supervisor.EventKind { return e.Kind })}
	r.sup = newSupervisor(t, supervisor.Process, supervisor.WithEvents(r.seen.Record))
	register(t, r.sup, newRaw.With(0), rawProgram(t, "honest"))
	require.NoError(t, r.sup.StartLink(context.Background()), "StartLink")
	r.seen.Wait(t, supervisor.EventStarted)
	witness(t, r.sup, 0, "Echo", rawPrompt)
	return r
}

// play adds a raw worker, which starts it. Its first life is its only one.
func (r *rawRig) play(t testing.TB, part string, args ...string) error {
	t.Helper()
	return r.playWithin(t, rawPrompt*testkit.Slowdown, part, args...)
}

func (r *rawRig) playWithin(t testing.TB, start time.Duration, part string, args ...string) (err error) {
	t.Helper()
	testkit.Within(t, rawPrompt, func() {
		r.raw, err = r.sup.Register(testkit.Context(t), newRaw.With(0), rawProgram(t, part, args...),
			supervisor.Restart{Type: supervisor.Temporary}, supervisor.WithStartTimeout(start), r.limits)
	})
	return err
}

// played is play of a part that gets ready.
func (r *rawRig) played(t testing.TB, part string, args ...string) {
	t.Helper()
	require.NoError(t, r.play(t, part, args...), "start of a raw worker that plays %q", part)
}

// call calls the raw worker.
func (r *rawRig) call(t testing.TB, n int) (got int, err error) {
	t.Helper()
	testkit.Within(t, rawPrompt, func() { got, err = supervisor.Call[int](testkit.Context(t), r.sup, r.raw, "Echo", n) })
	return got, err
}

// exit asserts that err is the end of the raw worker's life, for one of the reasons if there are any.
func exit(t testing.TB, err error, reasons ...error) {
	t.Helper()
	var e *supervisor.ExitError
	require.ErrorAs(t, err, &e, "the end of the raw worker")
	for _, reason := range reasons {
		require.ErrorIs(t, err, reason, "the end of the raw worker")
	}
}

// ends waits for the end of the raw worker's life.
func (r *rawRig) ends(t testing.TB) error {
	t.Helper()
	return r.seen.WaitFor(t, "end of the raw worker", func(e supervisor.Event) bool {
		return e.Kind == supervisor.EventExited && e.ProcID == r.raw
	}).Err
}

// quoted makes bytes an argument of a part.
func rawQuoted[B string | []byte](b B) string { return strconv.QuoteToASCII(string(b)) }

// allocatedBy is how much memory the host asked for meanwhile, in bytes.
func allocatedBy(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestF01TruncatedFrames(t *testing.T) {
	r := newRawRig(t)
	whole := len(rawReply(1, rawInt(1<<40)))
	for _, tt := range []struct {
		name string
		part string
		at   int
	}{
		{"one byte, then exit", "cut", 1},
		{"half a header, then exit", "cut", wire.HeaderSize / 2},
		{"header without payload, then exit", "cut", wire.HeaderSize},
		{"all but the last byte, then exit", "cut", whole - 1},
		{"half a header, then a closed pipe", "cut and stay", wire.HeaderSize / 2},
		{"all but the last byte, then a closed pipe", "cut and stay", whole - 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r.played(t, tt.part, strconv.Itoa(tt.at))
			got, err := r.call(t, 1<<40)
			exit(t, err)
			require.Zero(t, got, "the value of a reply that did not come whole")
		})
	}
	t.Run("the first piece of several, then exit", func(t *testing.T) {
		r.played(t, "first piece")
		p := supervisor.NewSendPayload(r.raw, "Text", "")
		p.Into = make([]byte, 1<<20) // not lent for a text
		var got supervisor.RecvPayload
		var err error
		testkit.Within(t, rawPrompt, func() { got, err = r.sup.Do(testkit.Context(t), p) })
		exit(t, err)
		require.Nil(t, got.Data, "the value of a reply that did not come whole")
	})
}

func TestF02OversizedLengths(t *testing.T) {
	r := newRawRig(t)
	const limit = 8 << 20 // bytes of memory for everything that goes on meanwhile
	for _, tt := range []struct {
		name   string
		length uint32
		flags  wire.Flags
	}{
		{"2^31", 1 << 31, 0},
		{"2^31 in pieces", 1 << 31, wire.FlagMore},
		{"2^32-1", 1<<32 - 1, 0},
		{"2^32-1 in pieces", 1<<32 - 1, wire.FlagMore},
		{"one over the limit in pieces", wire.DefaultLimit + 1, wire.FlagMore},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := wire.Header{Length: tt.length, Kind: wire.KindReply, Flags: tt.flags}
			r.played(t, "answer", rawQuoted(h.Append(nil)))
			require.Less(t, allocatedBy(func() {
				_, err := r.call(t, 1)
				exit(t, err, supervisor.ErrTooLarge)
			}), uint64(limit), "bytes allocated")
		})
	}
	t.Run("allowed, but never sent", func(t *testing.T) {
		h := wire.Header{Length: wire.DefaultLimit, Kind: wire.KindReply, Flags: wire.FlagMore}
		r.played(t, "answer", rawQuoted(h.Append(nil)))
		require.Less(t, allocatedBy(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			_, err := supervisor.Call[int](ctx, r.sup, r.raw, "Echo", 1)
			require.ErrorIs(t, err, supervisor.ErrTimeout, "the call's own deadline")
		}), uint64(limit), "bytes allocated")
	})
}

// A frame that is sound but holds no value costs its call only.
func TestF03OddPayloads(t *testing.T) {
	rows := []struct {
		name    string
		payload []byte
	}{
		{"no value", nil},
		{"two values", append(rawInt(1), rawInt(2)...)},
		{"a byte too many", append(rawInt(1), 0)},
		{"a value cut off", []byte{0x08}},
		{"a number in too long a form", []byte{0x08, 0x81, 0x80, 0x00}},
		{"a number without end", []byte("\x08" + strings.Repeat("\xff", 20))},
		{"a text longer than the frame", []byte{0x20, 0x7f, 'a'}},
		{"a text of 2^63 bytes", binary.AppendUvarint([]byte{0x20}, 1<<63)},
		{"a text of minus one byte", binary.AppendUvarint([]byte{0x20}, math.MaxUint64)},
		{"2^62 numbers", binary.AppendUvarint([]byte{0x48}, 1<<62)},
	}
	var frames []string
	for _, row := range rows {
		frames = append(frames, rawQuoted(rawReply(0, row.payload)))
	}
	r := newRawRig(t)
	r.played(t, "answer", frames...)
	for _, row := range rows {
		_, err := r.call(t, 1)
		require.ErrorIs(t, err, supervisor.ErrDecode, row.name)
	}
	got, err := r.call(t, 7)
	require.NoError(t, err, "the call that is answered well, in the same life")
	require.Equal(t, 7, got, "its result")
}

func TestF03OddLengths(t *testing.T) {
	r := newRawRig(t)
	for _, tt := range []struct {
		name string
		h    wire.Header
	}{
		{"pieces of nothing", wire.Header{Kind: wire.KindReply, Flags: wire.FlagMore}},
		{"pieces of what fits in one", wire.Header{Kind: wire.KindReply, Flags: wire.FlagMore, Length: wire.ChunkSize}},
		{"one piece of too much", wire.Header{Kind: wire.KindReply, Length: wire.ChunkSize + 1}},
		{"a piece without a beginning", wire.Header{Kind: wire.KindChunk, Length: 1}},
		{"an empty piece", wire.Header{Kind: wire.KindChunk}},
		{"a control frame with a payload", wire.Header{Kind: wire.KindCancel, Length: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r.played(t, "answer", rawQuoted(tt.h.Append(nil)))
			_, err := r.call(t, 1)
			exit(t, err, supervisor.ErrProtocol)
		})
	}
}

func TestF04Garbage(t *testing.T) {
	noise := make([]byte, 2000)
	rand.New(rand.NewSource(4)).Read(noise) //nolint:gosec // the same noise each time
	r := newRawRig(t)
	for _, tt := range []struct {
		name, bytes, quote string
	}{
		{"HTTP request", "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", `"GET /metrics HTTP/1.1\r\n`},
		{"TLS hello", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("\xa7", 60), `"\x16\x03\x01\x02\x00`},
		{"zeros", strings.Repeat("\x00", 100), `"\x00\x00\x00`},
		{"ones", strings.Repeat("\xff", 5000), `"\xff\xff\xff`},
		{"noise", string(noise), strings.TrimSuffix(fmt.Sprintf("%+q", noise[:4]), `"`)},
	} {
		t.Run(tt.name+", first thing", func(t *testing.T) {
			err := r.play(t, "say", rawQuoted(tt.bytes))
			var start *supervisor.StartError
			require.ErrorAs(t, err, &start, "start")
			exit(t, err, supervisor.ErrProtocol)
			rawQuotes(t, err, tt.quote)
		})
		t.Run(tt.name+", when a reply is due", func(t *testing.T) {
			r.played(t, "say later", rawQuoted(tt.bytes))
			_, err := r.call(t, 1)
			exit(t, err, supervisor.ErrProtocol)
			rawQuotes(t, err, tt.quote)
		})
	}
	t.Run("less than a header", func(t *testing.T) {
		err := r.play(t, "say and end", rawQuoted("usage: prog\n"))
		exit(t, err, supervisor.ErrProtocol)
		rawQuotes(t, err, `"usage: prog\n"`)
	})
}

// rawQuotes asserts that a text shows the first bytes of what came, and not too many.
func rawQuotes(t testing.TB, err error, quote string) {
	t.Helper()
	require.ErrorContains(t, err, quote, "the bytes that came")
	_, shown, _ := strings.Cut(err.Error(), quote)
	require.LessOrEqual(t, len(shown), 64*len(`\xff`)+1, "length of what is shown: %v", err)
}

// A header says to which call its reply belongs. No flipped bit may give it to another one, such as the two that are
// open beside it and whose numbers differ by one bit. That each bit is noticed is tested where headers are read.
func TestF05FlippedBits(t *testing.T) {
	const kind, request = 5, 8 // where a header has them
	var bits []int
	for at := range wire.HeaderSize {
		for bit := range 8 {
			if at == kind || at == request || bit == at%8 || soak {
				bits = append(bits, 8*at+bit)
			}
		}
	}
	r := newRawRig(t)
	for some := range slices.Chunk(bits, 8) {
		var flips []*rawFlip
		for _, bit := range some {
			f := &rawFlip{program: rawProgram(t, "flip", strconv.Itoa(bit))}
			f.task = task.Go(func(ctx context.Context) { f.run(ctx, r.sup) })
			flips = append(flips, f)
		}
		for i, f := range flips {
			f.task.Wait()
			require.NoError(t, f.start, "start of the worker that flips bit %d", some[i])
			for n, err := range f.errs {
				require.ErrorIs(t, err, supervisor.ErrProtocol, "call %d when bit %d is flipped", n+1, some[i])
				exit(t, err)
			}
		}
	}
}

// rawFlip is one worker that flips a bit of the reply to the last of its three open calls.
type rawFlip struct {
	program supervisor.Proc
	task    *task.Task
	start   error
	errs    [3]error
}

func (f *rawFlip) run(ctx context.Context, sup *supervisor.Supervisor) {
	ctx, cancel := context.WithTimeout(ctx, rawPrompt*testkit.Slowdown)
	defer cancel()
	id, err := sup.Register(ctx, newRaw.With(0), f.program, supervisor.Restart{Type: supervisor.Temporary})
	if f.start = err; err != nil {
		return
	}
	var calls [len(f.errs)]*future.Future[int]
	for i := range calls {
		calls[i] = supervisor.Go[int](ctx, sup, id, "Echo", i)
	}
	for i, call := range calls {
		_, f.errs[i] = call.Result(ctx)
	}
}

func TestF19OtherVersions(t *testing.T) {
	newer := wire.Header{Kind: wire.KindReady}.Append(nil)
	newer[4] = 9
	binary.LittleEndian.PutUint32(newer[20:], crc32.Checksum(newer[:20], crc32.MakeTable(crc32.Castagnoli)))
	refused := wire.AppendFrame(nil, wire.Header{Kind: wire.KindFailed}, wire.Failed{Kind: wire.FailVersion, Node: wire.ErrorNode{
		Type: "supervisor", Name: "supervisor.ErrVersion", Text: "supervisor: the host speaks 1 to 1, the worker 7 to 9",
	}}.Append(nil))
	r := newRawRig(t)
	for _, tt := range []struct {
		name, part string
		bytes      []byte
		texts      []string // both versions
	}{
		{"the worker chose one that it was not offered", "say", rawReady(9), []string{"the worker chose 9", "the host speaks 1 to 1"}},
		{"the worker chose none", "say", rawReady(0), []string{"the worker chose 0", "the host speaks 1 to 1"}},
		{"frames of another version", "say", newer, []string{"version 9", "knows 1"}},
		{"the worker refuses", "say and end", refused, []string{"the host speaks 1 to 1", "the worker 7 to 9"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := r.play(t, tt.part, rawQuoted(tt.bytes))
			var start *supervisor.StartError
			require.ErrorAs(t, err, &start, "start")
			require.ErrorIs(t, err, supervisor.ErrVersion, "start")
			for _, text := range tt.texts {
				require.ErrorContains(t, err, text, "start")
			}
		})
	}
}

func TestZ06HostileReplies(t *testing.T) {
	r := newRawRig(t)
	t.Run("unknown number", func(t *testing.T) {
		r.played(t, "unknown", "100")
		_, err := r.call(t, 1)
		exit(t, err, supervisor.ErrProtocol)
	})
	t.Run("number of another child's request", func(t *testing.T) {
		r.played(t, "gather", "3")
		other, ctx := r.raw, testkit.Context(t)
		requests := send(t, r.sup, supervisor.NewSendPayload(other, "Echo", 10), supervisor.NewSendPayload(other, "Echo", 20))
		r.played(t, "unknown", "1")
		_, err := r.call(t, 99)
		exit(t, err, supervisor.ErrProtocol)
		got, err := r.sup.RecvAll(ctx, append(requests, send(t, r.sup, supervisor.NewSendPayload(other, "Echo", 30))...))
		require.NoError(t, err, "replies of the other child")
		for i, p := range got {
			require.Equal(t, 10*(i+1), p.Data, "reply %d of the other child", i)
		}
	})
	t.Run("repeated", func(t *testing.T) {
		r.played(t, "repeat")
		got, err := r.call(t, 5)
		require.NoError(t, err, "the call that is answered twice")
		require.Equal(t, 5, got, "its result")
		exit(t, r.ends(t), supervisor.ErrProtocol)
	})
	t.Run("before its request", func(t *testing.T) {
		r.played(t, "early")
		exit(t, r.ends(t), supervisor.ErrProtocol)
	})
	t.Run("before the worker is ready", func(t *testing.T) {
		err := r.play(t, "say", rawQuoted(rawReply(1, rawInt(1))))
		exit(t, err, supervisor.ErrProtocol)
	})
}

func TestZ07Floods(t *testing.T) {
	const limit = 8 << 20 // bytes of memory for everything that goes on meanwhile
	r := newRawRig(t)
	for _, tt := range []struct {
		name  string
		frame []byte
	}{
		{"replies", rawReply(1<<40, rawInt(1))},
		{"replies to nothing", rawReply(0, nil)},
		{"stop messages", wire.AppendFrame(nil, wire.Header{Kind: wire.KindStop}, nil)},
		{"cancels", wire.AppendFrame(nil, wire.Header{Kind: wire.KindCancel, Request: 1}, nil)},
		{"requests", wire.AppendFrame(nil, wire.Header{Kind: wire.KindRequest, Request: 1}, rawInt(1))},
		{"ready again", rawReady(wire.Version)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r.played(t, "flood", rawQuoted(tt.frame))
			require.Less(t, allocatedBy(func() {
				_, err := r.call(t, 1)
				exit(t, err, supervisor.ErrProtocol)
			}), uint64(limit), "bytes allocated")
		})
	}
}

func TestZ15HalfAHandshake(t *testing.T) {
	r := newRawRig(t)
	whole := rawReady(wire.Version)
	for _, tt := range []struct {
		name string
		came int
	}{
		{"nothing", 0},
		{"half a header", wire.HeaderSize / 2},
		{"a header", wire.HeaderSize},
		{"all but the last byte", len(whole) - 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := r.playWithin(t, 300*time.Millisecond, "say", rawQuoted(whole[:tt.came]))
			var start *supervisor.StartError
			require.ErrorAs(t, err, &start, "start")
			exit(t, err, supervisor.ErrTimeout)
		})
	}
}
