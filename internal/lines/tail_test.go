package lines_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/lines"
)

func TestTail(t *testing.T) {
	for _, test := range []struct{ name, in, want string }{
		{"nothing", "", ""},
		{"fits", "one\ntwo\n", "one\ntwo\n"},
		{"fits exactly", "123456789\n", "123456789\n"},
		{"cut within a line", "one two\nthree\n", "three\n"},
		{"cut between lines", "x\n12345\n789\n", "12345\n789\n"},
		{"last line without end", "one two\nthree", "three"},
		{"line longer than the limit", "1234567890abc", "4567890abc"},
		{"line longer than the limit, with its end", "1234567890abc\n", "567890abc\n"},
		{"long line after others", "a\nb\n1234567890abc", "4567890abc"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, step := range []int{1, 3, 100} {
				tail := lines.NewTail(10)
				for rest := test.in; rest != ""; {
					n := min(step, len(rest))
					written, err := tail.Write([]byte(rest[:n]))
					require.NoError(t, err, "Write")
					require.Equal(t, n, written, "Write(%q)", rest[:n])
					rest = rest[n:]
				}
				require.Equal(t, test.want, tail.String(), "String after pieces of %d bytes", step)
			}
		})
	}
}

func TestTailOfNothing(t *testing.T) {
	tail := lines.NewTail(0)
	_, _ = tail.Write([]byte("text\n"))
	require.Empty(t, tail.String(), "a tail of limit 0")
}

func TestTailIsSafeForConcurrentUse(t *testing.T) {
	tail := lines.NewTail(1000)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 1000 {
				_, _ = fmt.Fprintf(tail, "writer %d line %d\n", w, i)
				_ = tail.String()
			}
		})
	}
	wg.Wait()
	got := tail.String()
	require.LessOrEqual(t, len(got), 1000, "length of the tail")
	for l := range strings.Lines(got) {
		require.Regexp(t, `^writer \d line \d+\n$`, l, "each line is whole")
	}
}
