package lines_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/lines"
)

// line is one call of emit.
type line struct {
	text      string
	truncated bool
}

func collect(t testing.TB, r io.Reader, limit int) []line {
	t.Helper()
	var got []line
	err := lines.Copy(r, limit, func(b []byte, truncated bool) { got = append(got, line{string(b), truncated}) })
	require.NoError(t, err, "Copy")
	return got
}

func TestCopy(t *testing.T) {
	for _, test := range []struct {
		name, in string
		want     []line
	}{
		{"nothing", "", nil},
		{"one", "one\n", []line{{"one", false}}},
		{"last without end", "one\ntwo", []line{{"one", false}, {"two", false}}},
		{"empty lines", "\n\n", []line{{"", false}, {"", false}}},
		{"carriage return", "one\r\ntwo\r\n", []line{{"one", false}, {"two", false}}},
		{"one carriage return only", "a\r\r\n", []line{{"a\r", false}}},
		{"carriage return inside", "a\rb\n", []line{{"a\rb", false}}},
		{"carriage return at the end", "a\r", []line{{"a", false}}},
		{"exactly the limit", "12345\n", []line{{"12345", false}}},
		{"the limit without end", "12345", []line{{"12345", false}}},
		{"the limit and carriage return", "12345\r\n", []line{{"12345", false}}},
		{"one too long", "123456\nx\n", []line{{"12345", true}, {"x", false}}},
		{"one too long without end", "123456", []line{{"12345", true}}},
		{"two too long with carriage return", "123456\r\n", []line{{"12345", true}}},
		{"far too long", strings.Repeat("1", 1000) + "\nx", []line{{"11111", true}, {"x", false}}},
		{"far too long without end", strings.Repeat("1", 1000), []line{{"11111", true}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.want, collect(t, strings.NewReader(test.in), 5), "in one piece")
			require.Equal(t, test.want, collect(t, iotest.OneByteReader(strings.NewReader(test.in)), 5), "byte by byte")
		})
	}
}

// A worker that never ends its line is heard all the same.
func TestLongLineIsEmittedBeforeItsEnd(t *testing.T) {
	var got []line
	s := lines.NewSplitter(3, func(b []byte, truncated bool) { got = append(got, line{string(b), truncated}) })
	_, _ = s.Write([]byte("12345"))
	require.Equal(t, []line{{"123", true}}, got, "after five bytes, limit three")
	_, _ = s.Write([]byte("678\nab"))
	require.Len(t, got, 1, "the rest of the long line is discarded")
	require.NoError(t, s.Close())
	require.NoError(t, s.Close(), "second Close")
	require.Equal(t, line{"ab", false}, got[1], "the next line starts afresh")
	require.Len(t, got, 2, "lines in all")
}

func TestCopyKeepsWhatCameBeforeAnError(t *testing.T) {
	failure := errors.New("failure")
	var got []string
	err := lines.Copy(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(failure)), 10,
		func(b []byte, _ bool) { got = append(got, string(b)) })
	require.ErrorIs(t, err, failure)
	require.Equal(t, []string{"a", "b"}, got, "lines before the error")
}

func TestCopyMemoryIsBounded(t *testing.T) {
	endless := &repeat{text: bytes.Repeat([]byte("x"), 4096), left: 64 << 20}
	allocs := testing.AllocsPerRun(1, func() {
		endless.left = 64 << 20
		_ = lines.Copy(endless, 1024, func([]byte, bool) {})
	})
	require.Less(t, allocs, 30.0, "allocations for one line of 64 MiB")
}

func TestLimitMustBePositive(t *testing.T) {
	require.PanicsWithValue(t, "lines: limit is not positive", func() { lines.NewSplitter(0, nil) }, "NewSplitter(0)")
	require.PanicsWithValue(t, "lines: limit is negative", func() { lines.NewTail(-1) }, "NewTail(-1)")
}

type repeat struct {
	text []byte
	left int
}

func (r *repeat) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	n := copy(p, r.text)
	r.left -= n
	return n, nil
}

// oracle splits with the whole input at hand.
func oracle(in string, limit int) []line {
	var want []line
	for part := range strings.SplitAfterSeq(in, "\n") {
		if part == "" {
			continue
		}
		text := strings.TrimSuffix(strings.TrimSuffix(part, "\n"), "\r")
		if len(text) > limit {
			want = append(want, line{text[:limit], true})
		} else {
			want = append(want, line{text, false})
		}
	}
	return want
}

func FuzzSplitter(f *testing.F) {
	f.Add("one\ntwo\r\nthree", uint8(3), uint8(2))
	f.Add("\r\n\r\r\n\n", uint8(1), uint8(1))
	f.Add("12345\r\n123456\r\n1234567\r\n", uint8(5), uint8(4))
	f.Add("ok\x1b[2J\r{\"level\":\"error\"}\x00\n\nlevel=error msg=\"forged\"\n", uint8(200), uint8(7))
	f.Add("no end, and longer than any limit \xff\xe2\x80", uint8(9), uint8(255))
	f.Fuzz(func(t *testing.T, in string, limit, step uint8) {
		limit, step = max(limit, 1), max(step, 1)
		var got []line
		s := lines.NewSplitter(int(limit), func(b []byte, truncated bool) { got = append(got, line{string(b), truncated}) })
		for rest := in; rest != ""; {
			n := min(len(rest), int(step))
			_, _ = s.Write([]byte(rest[:n]))
			rest = rest[n:]
		}
		_ = s.Close()
		require.Equal(t, oracle(in, int(limit)), got, "limit %d, pieces of %d bytes", limit, step)
	})
}

func BenchmarkSplitter(b *testing.B) {
	text := []byte(strings.Repeat(strings.Repeat("x", 79)+"\n", 400))
	s := lines.NewSplitter(64<<10, func([]byte, bool) {})
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = s.Write(text)
	}
}
