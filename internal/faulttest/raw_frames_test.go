//go:build linux || darwin

package faulttest_test

// The worker's part of raw_test.go: a program that writes its frames by itself, and does it wrong on purpose.

import (
	"encoding/binary"
	"os"
	"reflect"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/testkit"
	"github.com/workerlink/supervisor/internal/wire"
)

// newRaw is a factory that no program defines: a raw worker takes every greeting.
var newRaw = supervisor.Declare[int]("supervisor_test.raw")

var rawHelper = testkit.Helper("raw worker", func() {
	w := &rawWorker{in: wire.NewReader(os.NewFile(3, "requests"), 0), out: os.NewFile(4, "replies"), args: os.Args[2:]}
	w.next() // the greeting
	rawParts[os.Args[1]](w)
})

// rawProgram makes a child a raw worker that plays a part. It is the test binary, which must not know that it was
// started as a worker: it would serve as a good one.
func rawProgram(t testing.TB, part string, args ...string) supervisor.Proc {
	t.Helper()
	require.Contains(t, rawParts, part, "parts of a raw worker")
	cmd := testkit.Command(t, rawHelper)
	helper := cmd.Env[len(cmd.Env)-1]
	return supervisor.Proc{
		Path: "/usr/bin/env",
		Args: append([]string{"-u", "SUPERVISOR_WORKER", helper, cmd.Path, part}, args...),
	}
}

// rawWorker has the worker's ends of the pipes.
type rawWorker struct {
	in   *wire.Reader
	out  *os.File
	args []string
}

// rawRequest is a request for Echo, whose result is its argument.
type rawRequest struct {
	num   uint64
	value []byte // the argument as it came
}

// next returns the next message. The process ends when there is none: the host is done with it.
func (w *rawWorker) next() (wire.Header, []byte) {
	h, payload, err := w.in.Next()
	if err != nil || h.Kind == wire.KindStop {
		os.Exit(0)
	}
	return h, payload
}

// request returns the next request.
func (w *rawWorker) request() rawRequest {
	for {
		h, payload := w.next()
		if h.Kind != wire.KindRequest {
			continue
		}
		_, value, err := wire.ParseRequestPrefix(h.Flags, payload)
		if err != nil {
			os.Exit(1)
		}
		return rawRequest{h.Request, append([]byte(nil), value...)}
	}
}

// write writes the bytes at once.
func (w *rawWorker) write(b []byte) {
	if _, err := w.out.Write(b); err != nil {
		os.Exit(0) // the host has seen enough
	}
}

// slowly writes the bytes one by one, and lets others run in between.
func (w *rawWorker) slowly(b []byte) {
	for i := range b {
		w.write(b[i : i+1])
		runtime.Gosched()
	}
}

// ready says that the worker serves.
func (w *rawWorker) ready() { w.write(rawReady(wire.Version)) }

// honest answers all further requests.
func (w *rawWorker) honest() {
	for {
		w.write(w.request().reply())
	}
}

// park does nothing until the host ends it.
func (w *rawWorker) park() {
	for {
		w.next()
	}
}

// number returns an argument of the part.
func (w *rawWorker) number(i int) int {
	n, err := strconv.Atoi(w.args[i])
	if err != nil {
		os.Exit(1)
	}
	return n
}

// rawReady is the message of a worker that serves.
func rawReady(version int) []byte {
	table := []wire.MethodDesc{
		{Name: "Echo", In: []string{"int"}, Out: "int"},
		{Name: "Text", In: []string{"string"}, Out: "string"}, // as Echo
		{Name: "Map", Out: "map[string]int"},
		{Name: "Chain", Out: wire.TypeText(reflect.TypeFor[framesChain]())},
	}
	return wire.AppendFrame(nil, wire.Header{Kind: wire.KindReady}, wire.Ready{Version: version, Methods: table}.Append(nil))
}

// reply is the right answer.
func (r rawRequest) reply() []byte { return rawReply(r.num, r.value) }

func rawReply(num uint64, value []byte) []byte {
	return wire.AppendFrame(nil, wire.Header{Kind: wire.KindReply, Request: num}, value)
}

// rawInt is an int as a value.
func rawInt(n int64) []byte { return binary.AppendVarint([]byte{0x08}, n) }

// rawPart adds a part under a name that no other has.
func rawPart(name string, play func(*rawWorker)) {
	if _, ok := rawParts[name]; ok {
		panic("two raw workers play " + name)
	}
	rawParts[name] = play
}

// rawParts is what raw workers do after the greeting; they end when it returns.
var rawParts = map[string]func(*rawWorker){
	"honest": func(w *rawWorker) {
		w.ready()
		w.honest()
	},
	"say": func(w *rawWorker) { // the bytes of the first argument, in place of being ready
		w.write([]byte(w.unquoted(0)))
		w.park()
	},
	"say and end": func(w *rawWorker) { w.write([]byte(w.unquoted(0))) },
	"answer": func(w *rawWorker) { // each request with the frame of the next argument, under the request's number
		w.ready()
		for i := range w.args {
			r := w.request()
			w.write(renumbered([]byte(w.unquoted(i)), r.num))
		}
		w.honest()
	},
	"say later": func(w *rawWorker) { // the same without a number, when the first request has come
		w.ready()
		w.request()
		w.write([]byte(w.unquoted(0)))
		w.park()
	},
	"cut": func(w *rawWorker) { // a reply of which only the beginning comes, then the end of the stream
		w.ready()
		w.write(w.request().reply()[:w.number(0)])
	},
	"cut and stay": func(w *rawWorker) {
		w.ready()
		w.write(w.request().reply()[:w.number(0)])
		_ = w.out.Close() // the host sees it
		w.park()
	},
	"flip": func(w *rawWorker) { // one bit of the header of the only reply to three requests
		w.ready()
		w.request()
		w.request()
		b := w.request().reply()
		bit := w.number(0)
		b[bit/8] ^= 1 << (bit % 8)
		w.write(b)
		w.park()
	},
	"slow": func(w *rawWorker) {
		w.slowly(rawReady(wire.Version))
		for {
			w.slowly(w.request().reply())
		}
	},
	"gather": func(w *rawWorker) { // the answers to so many requests in one write
		w.ready()
		for {
			w.write(w.gather(w.number(0)))
		}
	},
	"split": func(w *rawWorker) { // the same in two writes, cut at each place in turn
		w.ready()
		for at := 1; ; at++ {
			b := w.gather(w.number(0))
			at = min(at, len(b))
			w.write(b[:at])
			runtime.Gosched()
			w.write(b[at:])
		}
	},
	"unknown": func(w *rawWorker) {
		w.ready()
		r := w.request()
		w.write(rawReply(r.num+uint64(w.number(0)), r.value))
		w.park()
	},
	"repeat": func(w *rawWorker) {
		w.ready()
		b := w.request().reply()
		w.write(b)
		w.write(b)
		w.park()
	},
	"early": func(w *rawWorker) { // a reply to the request that has yet to come
		w.ready()
		w.write(rawReply(1, rawInt(1)))
		w.park()
	},
	"flood": func(w *rawWorker) { // the frame of the first argument for ever, once the first request has come
		w.ready()
		w.request()
		var b []byte
		for len(b) < 1<<20 {
			b = append(b, w.unquoted(0)...)
		}
		for {
			w.write(b)
		}
	},
}

// gather waits for n requests and returns the answers in one piece.
func (w *rawWorker) gather(n int) (all []byte) {
	for range n {
		all = append(all, w.request().reply()...)
	}
	return all
}

// unquoted returns an argument that stands for bytes; command lines have no zeros.
func (w *rawWorker) unquoted(i int) string {
	s, err := strconv.Unquote(w.args[i])
	if err != nil {
		os.Exit(1)
	}
	return s
}

// renumbered is a sound header and what is behind it, for another request.
func renumbered(frame []byte, num uint64) []byte {
	h, err := wire.ParseHeader(frame)
	if err != nil {
		os.Exit(1)
	}
	h.Request = num
	return append(h.Append(nil), frame[wire.HeaderSize:]...)
}
