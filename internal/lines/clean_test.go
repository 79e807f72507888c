package lines_test

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/lines"
)

func TestClean(t *testing.T) {
	for _, test := range []struct{ name, in, want string }{
		{"nothing", "", ""},
		{"plain", "a line, with a\ttab", "a line, with a\ttab"},
		{"letters", "naïve 世界 🙂", "naïve 世界 🙂"},
		{"backslash", `C:\dir`, `C:\dir`},
		{"escape sequence", "\x1b[31mred", `\x1b[31mred`},
		{"carriage return", "ok\rforged", `ok\x0dforged`},
		{"line feed", "ok\nforged", `ok\x0aforged`},
		{"zero byte", "a\x00b", `a\x00b`},
		{"delete", "a\x7fb", `a\x7fb`},
		{"not UTF-8", "a\xffb", `a\xffb`},
		{"cut rune", "a\xe4\xb8", `a\xe4\xb8`},
		{"replacement character itself", "a\ufffdb", "a\ufffdb"},
		{"next line", "a\u0085b", `a\u0085b`},
		{"line separator", "a\u2028b", `a\u2028b`},
		{"right-to-left override", "a\u202eb", `a\u202eb`},
		{"language tag", "a\U000e0041b", `a\U000e0041b`},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.want, lines.Clean([]byte(test.in)), "Clean(%q)", test.in)
		})
	}
}

func FuzzClean(f *testing.F) {
	f.Add([]byte("a\x1b\r\n\x00\xff\u2028"))
	f.Add([]byte("ok\x1b[2J\r{\"level\":\"error\"}\u202e\U000e0041\x9b31m"))
	f.Fuzz(func(t *testing.T, in []byte) {
		got := lines.Clean(in)
		require.True(t, utf8.ValidString(got), "Clean(%q) = %q is not UTF-8", in, got)
		require.NotRegexp(t, `[\x00-\x08\x0a-\x1f\x7f\x{80}-\x{9f}\x{2028}\x{2029}\x{202a}-\x{202e}]`, got, "Clean(%q)", in)
		require.Equal(t, got, lines.Clean([]byte(got)), "clean text stays as it is")
	})
}
