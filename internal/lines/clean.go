package lines

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean returns a line as text that can stand in a log: valid UTF-8, and nothing that ends a line, moves a cursor or
// reverses the reading direction, so that a worker cannot forge a record of somebody else. Control and format characters
// and bytes that are not UTF-8 become escapes such as \x1b or \u202e. Printable text, spaces and tabs stay as they are, and so
// do backslashes: the result is for reading, not for decoding.
func Clean(line []byte) string {
	if plain(line) {
		return string(line)
	}
	var b strings.Builder
	b.Grow(len(line) + len(line)/4)
	for len(line) > 0 {
		r, size := utf8.DecodeRune(line)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, line[0])
		case r == '\t' || unicode.IsGraphic(r):
			b.Write(line[:size])
		case r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		line = line[size:]
	}
	return b.String()
}

// plain reports whether nothing is to be done, which it sees in ASCII only.
func plain(line []byte) bool {
	for _, c := range line {
		if c != '\t' && (c < ' ' || c > '~') {
			return false
		}
	}
	return true
}
