package wire_test

import (
	"encoding/hex"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/wire"
)

// unhex reads bytes written as hexadecimal digits with spaces.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	require.NoError(t, err, "golden bytes %q", s)
	return b
}

// frames are golden: these bytes must never change while the header version is 1.
var frames = []struct {
	name   string
	header wire.Header
	bytes  string
}{
	{"hello", wire.Header{Length: 5, Kind: wire.KindHello}, "05000000 01 01 0000 0000000000000000 0000 0000 888f0bc3"},
	{"ready", wire.Header{Length: 6, Kind: wire.KindReady}, "06000000 01 02 0000 0000000000000000 0000 0000 4c905c32"},
	{"failed", wire.Header{Length: 7, Kind: wire.KindFailed}, "07000000 01 03 0000 0000000000000000 0000 0000 f09a9162"},
	{
		"request",
		wire.Header{Length: 0x01020304, Kind: wire.KindRequest, Flags: wire.FlagMore | wire.FlagDeadline | wire.FlagNamed | wire.FlagKwargs | wire.FlagAttr, Request: 0x1122334455667788, Stream: 0x0a0b, Method: 0x0c0d},
		"04030201 01 04 7900 8877665544332211 0b0a 0d0c 3a52ee43",
	},
	{"reply", wire.Header{Length: 1, Kind: wire.KindReply, Flags: wire.FlagError | wire.FlagTimings | wire.FlagRefused, Request: 2}, "01000000 01 05 8600 0200000000000000 0000 0000 c6d55080"},
	{"chunk", wire.Header{Length: 9, Kind: wire.KindChunk, Flags: wire.FlagMore, Request: 2}, "09000000 01 06 0100 0200000000000000 0000 0000 b5e257a4"},
	{"cancel", wire.Header{Kind: wire.KindCancel, Request: 3}, "00000000 01 07 0000 0300000000000000 0000 0000 66a21f2e"},
	{"stop", wire.Header{Kind: wire.KindStop}, "00000000 01 08 0000 0000000000000000 0000 0000 db288a7c"},
}

func TestHeaderGolden(t *testing.T) {
	for _, tt := range frames {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.header.Append([]byte("before"))
			require.Equal(t, unhex(t, tt.bytes), got[6:], "bytes: got % x", got[6:])
			require.Equal(t, "before", string(got[:6]), "what stood there")
			back, err := wire.ParseHeader(got[6:])
			require.NoError(t, err, "parse")
			require.Equal(t, tt.header, back, "header")
		})
	}
}

func TestEachFlippedHeaderBitIsNoticed(t *testing.T) {
	for _, tt := range frames {
		b := tt.header.Append(nil)
		for bit := range 8 * wire.HeaderSize {
			b[bit/8] ^= 1 << (bit % 8)
			_, err := wire.ParseHeader(b)
			require.ErrorIs(t, err, wire.ErrProtocol, "%s frame with bit %d flipped", tt.name, bit)
			b[bit/8] ^= 1 << (bit % 8)
		}
	}
}

func TestHeaderRefused(t *testing.T) {
	// reseal makes the checksum fit again after a change.
	reseal := func(change func(b []byte)) []byte {
		b := wire.Header{Kind: wire.KindRequest, Request: 1}.Append(nil)
		change(b)
		sum := crc32.Checksum(b[:20], crc32.MakeTable(crc32.Castagnoli))
		b[20], b[21], b[22], b[23] = byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)
		return b
	}
	for _, tt := range []struct {
		name  string
		bytes []byte
		want  error
		text  string
	}{
		{"nothing", nil, wire.ErrProtocol, "0 bytes"},
		{"too short", make([]byte, wire.HeaderSize-1), wire.ErrProtocol, "23 bytes"},
		{"all zero", make([]byte, wire.HeaderSize), wire.ErrProtocol, "checksum"},
		{"other version", reseal(func(b []byte) { b[4] = 2 }), wire.ErrVersion, "version 2"},
		{"kind 0", reseal(func(b []byte) { b[5] = 0 }), wire.ErrProtocol, "kind 0"},
		{"reserved kind", reseal(func(b []byte) { b[5] = 9 }), wire.ErrProtocol, "kind 9"},
		{"highest kind", reseal(func(b []byte) { b[5] = 255 }), wire.ErrProtocol, "kind 255"},
		{"reserved flag", reseal(func(b []byte) { b[7] = 1 }), wire.ErrProtocol, "0x100"},
		{"flag of another kind", reseal(func(b []byte) { b[6] = byte(wire.FlagError) }), wire.ErrProtocol, "Request frame"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := wire.ParseHeader(tt.bytes)
			require.ErrorIs(t, err, tt.want, "ParseHeader(% x)", tt.bytes)
			require.ErrorContains(t, err, tt.text, "ParseHeader(% x)", tt.bytes)
		})
	}
}

func TestKindNames(t *testing.T) {
	require.Equal(t, "Request", wire.KindRequest.String(), "a known kind")
	require.Equal(t, "Kind(77)", wire.Kind(77).String(), "an unknown kind")
	require.True(t, wire.KindCancel.Control() && wire.KindStop.Control(), "control kinds")
	require.False(t, wire.KindChunk.Control() || wire.KindReply.Control() || wire.Kind(200).Control(), "other kinds")
}
