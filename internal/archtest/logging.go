package archtest

import (
	"regexp"
	"strings"
)

// The methods of zap that write a log line; Write belongs to the entry that Check returns.
var logs = regexp.MustCompile(`^\(\*?go\.uber\.org/zap(\.Logger|\.SugaredLogger|/zapcore\.CheckedEntry)\)\.` +
	`((Debug|Info|Warn|Error|DPanic|Panic|Fatal|Log)(f|w|ln)?|Write)$`)

// Logging reports each use of a method that writes a log line, except in the one file that may.
func Logging(p *Program, file string) []Finding {
	found := p.uses(func(name string) string {
		if logs.MatchString(name) {
			return "logs; report an event, " + file + " turns it into a line"
		}
		return ""
	})
	kept := found[:0]
	for _, f := range found {
		if !strings.HasPrefix(f.Key, file+": ") {
			kept = append(kept, f)
		}
	}
	return kept
}
