// Package progress draws a bar on a terminal while an example works. Where there is no terminal it draws nothing, so that
// files and pipes stay clean.
package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
)

const width = 40 // cells of the bar

// Bar is one line that shows how much of a known total is done. One goroutine at a time may use it.
type Bar struct {
	w     io.Writer // nil where nothing is drawn
	label string
	total int
	done  int
	drawn string // what the line shows now
}

// New makes a bar for total steps on f, which is os.Stderr in most programs; it draws only if f is a terminal.
func New(f *os.File, label string, total int) *Bar {
	b := &Bar{label: label, total: total}
	if terminal(f.Fd()) {
		b.w = f
	}
	return b
}

// Step counts n more steps as done. It writes only when the picture changes, and so may be called for every item.
func (b *Bar) Step(n int) {
	b.done = min(b.done+n, b.total)
	if b.w == nil || b.total <= 0 {
		return
	}
	cells := b.done * width / b.total
	picture := fmt.Sprintf("%s [%s%s] %3d%%", b.label, strings.Repeat("=", cells), strings.Repeat(" ", width-cells), b.done*100/b.total)
	if picture != b.drawn {
		b.drawn = picture
		_, _ = fmt.Fprintf(b.w, "\r%s", picture) // a bar that cannot be drawn is no reason to stop
	}
}

// Close takes the bar off the terminal, so that what the program prints next begins on an empty line.
func (b *Bar) Close() {
	if b.drawn != "" {
		_, _ = fmt.Fprintf(b.w, "\r%s\r", strings.Repeat(" ", len(b.drawn)))
		b.drawn = ""
	}
}
