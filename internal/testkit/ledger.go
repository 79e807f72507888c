package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A Ledger is a file to which each execution of a request appends one line, so that executions can be counted whatever
// happens to the process afterwards. Its path goes to the workers by environment or factory argument.
type Ledger struct {
	// Path is the file's name.
	Path string
}

// NewLedger makes an empty ledger that lasts as long as the test.
func NewLedger(t testing.TB) Ledger {
	t.Helper()
	l := Ledger{Path: filepath.Join(t.TempDir(), "ledger")}
	if err := os.WriteFile(l.Path, nil, 0o600); err != nil {
		t.Fatalf("make a ledger: %v", err)
	}
	return l
}

// Enter records one execution of the request id, which must not have a line break. The line is one write to a file
// opened for appending, so that lines of several processes do not mix.
func (l Ledger) Enter(id string) error {
	f, err := os.OpenFile(l.Path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("testkit: ledger: %w", err)
	}
	_, err = f.WriteString(id + "\n")
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("testkit: ledger: %w", err)
	}
	return nil
}

// Counts returns how often each request was executed.
func (l Ledger) Counts(t testing.TB) map[string]int {
	t.Helper()
	text, err := os.ReadFile(l.Path)
	if err != nil {
		t.Fatalf("read the ledger: %v", err)
	}
	counts := make(map[string]int)
	for line := range strings.Lines(string(text)) {
		id, whole := strings.CutSuffix(line, "\n")
		if !whole {
			t.Fatalf("the ledger's last line is torn: %q", line)
		}
		counts[id]++
	}
	return counts
}
