package wire_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/wire"
)

const cutMark = "… (truncated)"

func TestErrorGolden(t *testing.T) {
	n := wire.ErrorNode{
		Text: "a", Type: "T", Name: "n", Data: []byte{1}, Stack: "s",
		Kids: []wire.ErrorNode{{Text: "k"}, {Name: "io.EOF"}},
	}
	b := wire.AppendError(nil, n)
	require.Equal(t, unhex(t, "01 61 01 54 01 6e 01 01 01 73 02  01 6b 00 00 00 00 00  00 00 06 696f2e454f46 00 00 00"), b, "bytes: got % x", b)
	got, err := wire.ParseError(b)
	require.NoError(t, err, "parse")
	require.Equal(t, n, got, "error")
	for i := range b {
		_, err := wire.ParseError(b[:i])
		require.ErrorIs(t, err, wire.ErrProtocol, "cut off at %d", i)
	}
	_, err = wire.ParseError(append(b, 0))
	require.ErrorIs(t, err, wire.ErrProtocol, "a byte too many")
}

// reparse sends n and returns what arrives.
func reparse(t *testing.T, n wire.ErrorNode) wire.ErrorNode {
	t.Helper()
	b := wire.AppendError(nil, n)
	require.LessOrEqual(t, len(b), 64<<10, "size of the error")
	got, err := wire.ParseError(b)
	require.NoError(t, err, "parse what was written")
	return got
}

// count returns the number of nodes and the depth of n.
func count(n wire.ErrorNode) (nodes, depth int) {
	for _, k := range n.Kids {
		kn, kd := count(k)
		nodes, depth = nodes+kn, max(depth, kd)
	}
	return nodes + 1, depth + 1
}

func TestErrorTextsAreCut(t *testing.T) {
	got := reparse(t, wire.ErrorNode{
		Text: strings.Repeat("ä", 10_000), Type: strings.Repeat("t", 9_000), Stack: strings.Repeat("s", 100_000),
	})
	for name, s := range map[string]string{"text": got.Text, "type": got.Type, "stack": got.Stack} {
		require.True(t, strings.HasSuffix(s, cutMark), "%s ends with %q", name, s[len(s)-20:])
		require.True(t, utf8.ValidString(s), "%s is cut between characters", name)
	}
	require.InDelta(t, 8<<10, len(got.Text), 20, "length of the text")
	require.InDelta(t, 32<<10, len(got.Stack), 20, "length of the stack")

	same := wire.ErrorNode{Text: strings.Repeat("x", 8000), Stack: strings.Repeat("s", 32000)}
	require.Equal(t, same, reparse(t, same), "texts within the limits are not cut")

	bad := reparse(t, wire.ErrorNode{Text: strings.Repeat("\x80", 10_000)})
	require.True(t, strings.HasSuffix(bad.Text, cutMark), "bytes that are no characters are cut, too")
}

func TestErrorTreesAreCut(t *testing.T) {
	var deep wire.ErrorNode
	for range 100 {
		deep = wire.ErrorNode{Text: "level", Kids: []wire.ErrorNode{deep}}
	}
	got := reparse(t, deep)
	nodes, depth := count(got)
	require.Equal(t, 16, nodes, "nodes of a chain")
	require.Equal(t, 16, depth, "levels of a chain")
	for len(got.Kids) > 0 {
		require.Equal(t, "level", got.Text, "text of a node whose children are there")
		got = got.Kids[0]
	}
	require.Equal(t, "level"+cutMark, got.Text, "the last level says that something is missing")

	wide := reparse(t, wire.ErrorNode{Text: "wide", Kids: make([]wire.ErrorNode, 1000)})
	nodes, _ = count(wide)
	require.Equal(t, 64, nodes, "nodes of a wide error")
	require.Equal(t, "wide"+cutMark, wide.Text, "its text says so")

	heavy := wire.ErrorNode{Text: "heavy"}
	for range 30 {
		heavy.Kids = append(heavy.Kids, wire.ErrorNode{Text: strings.Repeat("x", 8000), Name: "n", Data: make([]byte, 1000)})
	}
	got = reparse(t, heavy)
	require.Len(t, got.Kids, 30, "small nodes always fit")
	last := got.Kids[29]
	require.Equal(t, cutMark, last.Text, "nothing was left for the last text")
	require.Empty(t, last.Name, "a name without its data is left out")
	require.Nil(t, last.Data, "data is never cut")
}

func TestErrorsBeyondTheLimitsAreRefused(t *testing.T) {
	node := "00 00 00 00 00 "
	for name, s := range map[string]string{
		"too deep":           strings.Repeat(node+"01 ", 17) + node + "00",
		"too many":           node + "40" + strings.Repeat(node+"00", 64),
		"more than there is": node + "7f",
	} {
		_, err := wire.ParseError(unhex(t, s))
		require.ErrorIs(t, err, wire.ErrProtocol, name)
	}
	_, err := wire.ParseError(make([]byte, 64<<10+1))
	require.ErrorIs(t, err, wire.ErrProtocol, "too large")
}
