package testkit

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Outcome is what kind of verdict a request got.
type Outcome int

// The outcomes of an accepted request.
const (
	Value      Outcome = iota + 1 // executed, with a result
	Remote                        // executed, its handler failed or panicked
	Transport                     // crash, restart, timeout, cancel, close: whether it was executed is unknown
	Unexecuted                    // as Transport, and surely not executed
)

// String returns the outcome in lower case.
func (o Outcome) String() string {
	if o < Value || o > Unexecuted {
		return fmt.Sprintf("Outcome(%d)", int(o))
	}
	return [...]string{"value", "remote error", "transport error", "unexecuted"}[o-Value]
}

// A Law is the conservation law of requests: each that was accepted gets exactly one verdict, accepted = values + remote
// errors + transport errors, none is executed twice, and a value means executed once. The zero value has seen nothing.
// Its methods may be called concurrently.
type Law struct {
	mu       sync.Mutex
	accepted map[string]int
	verdicts map[string][]Outcome
}

// Accept counts a request that was accepted.
func (l *Law) Accept(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.accepted == nil {
		l.accepted = make(map[string]int)
	}
	l.accepted[id]++
}

// Verdict counts the verdict of a request.
func (l *Law) Verdict(id string, o Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.verdicts == nil {
		l.verdicts = make(map[string][]Outcome)
	}
	l.verdicts[id] = append(l.verdicts[id], o)
}

// Counts returns how many requests were accepted and how many verdicts of each kind there are.
func (l *Law) Counts() (accepted int, verdicts map[Outcome]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	verdicts = make(map[Outcome]int)
	for _, outcomes := range l.verdicts {
		for _, o := range outcomes {
			verdicts[o]++
		}
	}
	for _, n := range l.accepted {
		accepted += n
	}
	return accepted, verdicts
}

// Check fails the test where the law is broken. executions come from [Ledger.Counts]; nil leaves them out.
func (l *Law) Check(t testing.TB, executions map[string]int) {
	t.Helper()
	if broken := l.broken(executions); len(broken) > 0 {
		t.Errorf("the conservation law is broken:\n%s", strings.Join(broken, "\n"))
	}
}

func (l *Law) broken(executions map[string]int) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	say := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	for id, n := range l.accepted {
		if n != 1 {
			say("%s: accepted %d times", id, n)
		}
		if got := l.verdicts[id]; len(got) != 1 {
			say("%s: %d verdicts %v", id, len(got), got)
		}
	}
	for id, got := range l.verdicts {
		if l.accepted[id] == 0 {
			say("%s: verdict %v, but it was never accepted", id, got)
		}
		n, known := executions[id]
		if executions == nil || len(got) == 0 {
			continue
		}
		switch o := got[0]; {
		case o == Value && n != 1:
			say("%s: a value, but executed %d times", id, n)
		case o == Unexecuted && known:
			say("%s: said to be unexecuted, but executed %d times", id, n)
		}
	}
	for id, n := range executions {
		if n > 1 {
			say("%s: executed %d times", id, n)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
