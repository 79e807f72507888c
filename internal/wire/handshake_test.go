package wire_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/wire"
)

var (
	hello = wire.Hello{
		Min: 1, Max: 2, Factory: "app.F", Arg: []byte{7, 8}, Name: "n", ProcID: 3, Incarnation: 300,
		Concurrency: 4, EndOnPanic: true, SelfContained: true,
		HelloLimits: wire.HelloLimits{FrameLimit: 1 << 20, CloseGrace: time.Second, HealthLimit: time.Minute},
	}
	helloBytes = "0100 0200 05 6170702e46 02 0708 01 6e 03 ac02 04 01 01 808040 8094ebdc03 80b09dc2df01"

	ready = wire.Ready{Version: 1, Handles: true, Methods: []wire.MethodDesc{
		{Name: "Add", Context: true, In: []string{"int", "string"}, Out: "int"},
		{Name: "N", Field: true, Out: "int"},
		{Name: "V", Variadic: true, In: []string{"[]int"}},
	}}
	readyBytes = "0100 01 03 03 416464 02 02 03 696e74 06 737472696e67 03 696e74 01 4e 01 00 03 696e74 01 56 04 01 05 5b5d696e74 00"

	failed      = wire.Failed{Kind: wire.FailPanic, Node: wire.ErrorNode{Text: "boom", Type: "string", Stack: "at"}}
	failedBytes = "02 04 626f6f6d 06 737472696e67 00 00 02 6174 00"
)

func TestHandshakeGolden(t *testing.T) {
	require.Equal(t, unhex(t, helloBytes), hello.Append(nil), "Hello: got % x", hello.Append(nil))
	require.Equal(t, unhex(t, readyBytes), ready.Append(nil), "Ready: got % x", ready.Append(nil))
	require.Equal(t, unhex(t, failedBytes), failed.Append(nil), "Failed: got % x", failed.Append(nil))
}

func TestHandshakeParse(t *testing.T) {
	for _, more := range []string{"", "00 ff 12 34"} { // fields of a later version are ignored
		h, err := wire.ParseHello(unhex(t, helloBytes+more))
		require.NoError(t, err, "Hello with %q", more)
		require.Equal(t, hello, h, "Hello with %q", more)
		r, err := wire.ParseReady(unhex(t, readyBytes+more))
		require.NoError(t, err, "Ready with %q", more)
		require.Equal(t, ready, r, "Ready with %q", more)
		f, err := wire.ParseFailed(unhex(t, failedBytes+more))
		require.NoError(t, err, "Failed with %q", more)
		require.Equal(t, failed, f, "Failed with %q", more)
	}
}

func TestHandshakeCutOff(t *testing.T) {
	for name, tt := range map[string]struct {
		bytes string
		parse func(b []byte) error
	}{
		"Hello":  {helloBytes, func(b []byte) error { _, err := wire.ParseHello(b); return err }},
		"Ready":  {readyBytes, func(b []byte) error { _, err := wire.ParseReady(b); return err }},
		"Failed": {failedBytes, func(b []byte) error { _, err := wire.ParseFailed(b); return err }},
	} {
		b := unhex(t, tt.bytes)
		for n := range b {
			require.ErrorIs(t, tt.parse(b[:n]), wire.ErrProtocol, "%s cut off at %d", name, n)
			require.ErrorContains(t, tt.parse(b[:n]), name, "%s cut off at %d", name, n)
		}
	}
}

func TestHandshakeNumbersOutOfRange(t *testing.T) {
	for name, s := range map[string]string{
		"process id over int":     "0100 0200 00 00 00 ffffffffffffffffff01 00 00 00 00 00 00 00",
		"needlessly long number":  "0100 0200 00 00 00 8000 00 00 00 00 00 00 00",
		"number without end":      "0100 0200 00 00 00 ffffffffffffffffffffff 00",
		"string beyond the bytes": "0100 0200 ff0f 00 00",
	} {
		_, err := wire.ParseHello(unhex(t, s))
		require.ErrorIs(t, err, wire.ErrProtocol, name)
	}
	h, err := wire.ParseHello(wire.Hello{ProcID: -1, Concurrency: -1, HelloLimits: wire.HelloLimits{FrameLimit: -1, CloseGrace: -1, HealthLimit: -1}}.Append(nil))
	require.NoError(t, err, "negative numbers")
	require.Equal(t, wire.Hello{}, h, "negative numbers are sent as 0")
	h, err = wire.ParseHello(unhex(t, "0000 0000 00 00 00 00 00 00 00 00 00 ffffffffffffffffff01 00"))
	require.NoError(t, err, "long grace")
	require.Equal(t, time.Duration(math.MaxInt64), h.CloseGrace, "the longest grace")
}

func TestNegotiate(t *testing.T) {
	for _, tt := range []struct{ low, high, want int }{
		{1, 1, 1}, {1, 9, 1}, {0, 1, 1}, {2, 3, 0}, {0, 0, 0}, {3, 1, 0},
	} {
		got, err := wire.Hello{Min: tt.low, Max: tt.high}.Negotiate()
		require.Equal(t, tt.want, got, "versions %d to %d", tt.low, tt.high)
		require.Equal(t, tt.want == 0, err != nil, "versions %d to %d: error %v", tt.low, tt.high, err)
	}
	_, err := wire.Hello{Min: 7, Max: 9}.Negotiate()
	require.ErrorIs(t, err, wire.ErrVersion, "no common version")
	require.ErrorContains(t, err, "7 to 9", "the host's range")
	require.ErrorContains(t, err, "1 to 1", "the worker's range")
	_, err = wire.ParseReady(wire.Ready{Version: 9}.Append(nil))
	require.ErrorIs(t, err, wire.ErrVersion, "a version that was not offered")
}

func TestMethodTableIsBounded(t *testing.T) {
	_, err := wire.ParseReady(wire.Ready{Version: 1, Methods: make([]wire.MethodDesc, wire.MaxMethods)}.Append(nil))
	require.NoError(t, err, "the largest table")
	_, err = wire.ParseReady(wire.Ready{Version: 1, Methods: make([]wire.MethodDesc, wire.MaxMethods+1)}.Append(nil))
	require.ErrorIs(t, err, wire.ErrProtocol, "a larger one")
}

func TestFailKindNames(t *testing.T) {
	for kind, want := range map[wire.FailKind]string{
		wire.FailError: "factory failed", wire.FailPanic: "factory panicked", wire.FailNotFound: "no such factory",
		wire.FailVersion: "no common version", wire.FailNoInit: "not initialised", 99: "FailKind(99)",
	} {
		require.Equal(t, want, kind.String(), "kind %d", uint8(kind))
	}
	f, err := wire.ParseFailed(wire.Failed{Kind: 99}.Append(nil))
	require.NoError(t, err, "a kind of a later version")
	require.EqualValues(t, 99, f.Kind, "kind")
}

func TestRequestPrefix(t *testing.T) {
	for _, tt := range []struct {
		name  string
		p     wire.RequestPrefix
		flags wire.Flags
		bytes string
	}{
		{"empty", wire.RequestPrefix{}, 0, ""},
		{"deadline", wire.RequestPrefix{HasDeadline: true, Remaining: 300}, wire.FlagDeadline, "2c01000000000000"},
		{"deadline passed", wire.RequestPrefix{HasDeadline: true}, wire.FlagDeadline, "0000000000000000"},
		{"name", wire.RequestPrefix{Name: "Add"}, wire.FlagNamed, "03 416464"},
		{"marks", wire.RequestPrefix{Kwargs: true, Attr: true}, wire.FlagKwargs | wire.FlagAttr, ""},
		{
			"all",
			wire.RequestPrefix{HasDeadline: true, Remaining: 1, Name: "N", Kwargs: true, Attr: true},
			wire.FlagDeadline | wire.FlagNamed | wire.FlagKwargs | wire.FlagAttr, "0100000000000000 01 4e",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.flags, tt.p.Flags(), "flags")
			b := tt.p.Append(nil)
			require.Equal(t, unhex(t, tt.bytes), append([]byte{}, b...), "bytes")
			p, rest, err := wire.ParseRequestPrefix(tt.flags, append(b, "rest"...))
			require.NoError(t, err, "parse")
			require.Equal(t, tt.p, p, "prefix")
			require.Equal(t, "rest", string(rest), "what follows")
			if len(b) > 0 {
				_, _, err = wire.ParseRequestPrefix(tt.flags, b[:len(b)-1])
				require.ErrorIs(t, err, wire.ErrProtocol, "cut off")
			}
		})
	}
	late := wire.RequestPrefix{HasDeadline: true, Remaining: -5}
	p, _, err := wire.ParseRequestPrefix(late.Flags(), late.Append(nil))
	require.NoError(t, err, "a deadline long past")
	require.Zero(t, p.Remaining, "a deadline long past")
	_, _, err = wire.ParseRequestPrefix(wire.FlagNamed, []byte{0})
	require.ErrorIs(t, err, wire.ErrProtocol, "an empty name")
}

func TestRemainingTimeIsBroughtUpToDate(t *testing.T) {
	p := wire.RequestPrefix{HasDeadline: true, Remaining: time.Hour, Name: "Add"}
	b, err := wire.Packing{Prefix: p.Append(nil)}.Prepare(nil, []any{5})
	require.NoError(t, err, "prepare")
	for _, d := range []time.Duration{time.Minute, 0, -time.Second} {
		b.SetRemaining(d)
		got, rest, err := wire.ParseRequestPrefix(p.Flags(), b.Bytes())
		require.NoError(t, err, "parse")
		require.Equal(t, wire.RequestPrefix{HasDeadline: true, Remaining: max(0, d), Name: "Add"}, got, "prefix")
		require.Equal(t, unhex(t, "08 0a"), rest, "the values stay")
	}
}

func TestReplyPrefix(t *testing.T) {
	p := wire.ReplyPrefix{Error: true, Refused: true, Timings: true, Queued: 300, Ran: -1}
	require.Equal(t, wire.FlagError|wire.FlagRefused|wire.FlagTimings, p.Flags(), "flags")
	b := p.Append(nil)
	require.Equal(t, unhex(t, "ac02 00"), b, "bytes")
	got, rest, err := wire.ParseReplyPrefix(p.Flags(), append(b, 'x'))
	require.NoError(t, err, "parse")
	require.Equal(t, wire.ReplyPrefix{Error: true, Refused: true, Timings: true, Queued: 300}, got, "prefix")
	require.Equal(t, "x", string(rest), "what follows")
	_, _, err = wire.ParseReplyPrefix(p.Flags(), b[:1])
	require.ErrorIs(t, err, wire.ErrProtocol, "cut off")
	got, rest, err = wire.ParseReplyPrefix(0, []byte("y"))
	require.NoError(t, err, "no prefix")
	require.Equal(t, wire.ReplyPrefix{}, got, "no prefix")
	require.Equal(t, "y", string(rest), "no prefix")
}
