package faulttest_test

// The books that the model and the chaos keep of every request.

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// toilBook has a page for each request, the conservation law of all, and what was found to be wrong.
type toilBook struct {
	ledger testkit.Ledger
	began  time.Time

	mu    sync.Mutex
	law   *testkit.Law
	clock int // a tick for each hand-over's begin and end
	pages map[string]*toilPage
	older map[string]*toilPage // of the books that were closed last
	lives map[uint64]int       // incarnation -> child, of all values
	wrong []string
}

// toilPage is what is known of one request.
type toilPage struct {
	child    int
	method   string
	load     int      // bytes, of Carry
	may      fate     // that its verdict may be
	from, to int      // ticks around its hand-over
	history  []string // for the reader of a failure
}

func newToilBook(t testing.TB) *toilBook {
	b := &toilBook{ledger: testkit.NewLedger(t), began: time.Now(), lives: make(map[uint64]int)}
	b.clearLocked()
	return b
}

func (b *toilBook) clearLocked() {
	b.law, b.pages, b.clock = new(testkit.Law), make(map[string]*toilPage), 0
}

// open begins the page of a request that is about to be sent.
func (b *toilBook) open(id string, p toilPage, format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pages[id] != nil {
		b.wrong = append(b.wrong, id+": the test uses the id twice")
	}
	b.clock++
	p.from, p.to = b.clock, math.MaxInt
	b.pages[id] = &p
	b.noteLocked(id, format, args...)
}

func (b *toilBook) noteLocked(id, format string, args ...any) {
	if p := b.pages[id]; p != nil {
		p.history = append(p.history, fmt.Sprintf("%10v  ", time.Since(b.began).Round(time.Microsecond))+fmt.Sprintf(format, args...))
	}
}

// allow widens what the verdict of a request may be.
func (b *toilBook) allow(id string, may fate) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.pages[id]; p != nil {
		p.may |= may
	}
}

// note adds a line to the history of a request.
func (b *toilBook) note(id, format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.noteLocked(id, format, args...)
}

// complain records that something is wrong.
func (b *toilBook) complain(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrong = append(b.wrong, fmt.Sprintf(format, args...))
}

// handed records the end of a hand-over: a request that was accepted, or a refusal, which must be one of those it may get.
func (b *toilBook) handed(id string, err error, mayRefuse fate) (accepted bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clock++
	p := b.pages[id]
	p.to = b.clock
	if err == nil {
		b.law.Accept(id)
		b.noteLocked(id, "accepted")
		return true
	}
	b.noteLocked(id, "refused: %v", err)
	if got := fateOf(err); got&mayRefuse == 0 {
		b.wrong = append(b.wrong, fmt.Sprintf("%s: refused as %q (%v), which may only be %q", id, got, err, mayRefuse))
	}
	if e := new(supervisor.CallError); !errors.As(err, &e) || !e.Unexecuted {
		b.wrong = append(b.wrong, fmt.Sprintf("%s: the refusal %#v does not say that it was not executed", id, err))
	}
	// A request that was refused must not be executed either.
	b.law.Accept(id)
	b.law.Verdict(id, testkit.Unexecuted)
	return false
}

// answered is handed and verdict in one, for a request whose caller waits for it.
func (b *toilBook) answered(id string, r supervisor.RecvPayload) {
	b.mu.Lock()
	b.clock++
	b.pages[id].to = b.clock
	b.law.Accept(id)
	b.mu.Unlock()
	b.verdict(id, r)
}

// verdict records one, which must be one that the request may get, and the right one if it is its own.
func (b *toilBook) verdict(id string, r supervisor.RecvPayload) {
	b.mu.Lock()
	defer b.mu.Unlock()
	got := fateOf(r.Err)
	b.noteLocked(id, "verdict: %v, life %d, %v", got, r.Incarnation, r.Err)
	b.law.Verdict(id, childtest.OutcomeOf(r.Err))
	p := b.pages[id]
	if p == nil {
		b.wrong = append(b.wrong, fmt.Sprintf("%s: a verdict of a request that nobody sent: %+v", id, r))
		return
	}
	if got&p.may == 0 {
		b.wrong = append(b.wrong, fmt.Sprintf("%s: verdict %q (%v), which may only be %q", id, got, r.Err, p.may))
	}
	if bad := p.misfit(id, r); bad != "" {
		b.wrong = append(b.wrong, fmt.Sprintf("%s: %s", id, bad))
	}
	if got == fateValue && r.Incarnation != 0 {
		if other, known := b.lives[r.Incarnation]; known && other != p.child {
			b.wrong = append(b.wrong, fmt.Sprintf("%s: life %d of child %d was one of child %d", id, r.Incarnation, p.child, other))
		}
		b.lives[r.Incarnation] = p.child
	}
}

// misfit says what of a verdict does not belong to the request.
func (p *toilPage) misfit(id string, r supervisor.RecvPayload) string {
	if r.ProcID != p.child {
		return fmt.Sprintf("child %d was asked, the verdict is of child %d", p.child, r.ProcID)
	}
	if e := new(supervisor.CallError); r.Err != nil && (!errors.As(r.Err, &e) || e.ProcID != p.child) {
		return fmt.Sprintf("the verdict %v is no CallError of child %d", r.Err, p.child)
	}
	var panicked *supervisor.PanicError
	switch fateOf(r.Err) {
	case fateValue:
		want := receiptOf(id, r.Incarnation)
		if p.method == "Carry" {
			got, _ := r.Data.([]byte)
			if len(got) != p.load+len(want) || !bytes.HasSuffix(got, []byte(want)) || !bytes.Equal(got[:p.load], toilLoad(id, p.load)) {
				return fmt.Sprintf("the %d bytes that came back are not the load of %d and %q", len(got), p.load, want)
			}
		} else if r.Data != want {
			return fmt.Sprintf("the value is %v, not %s", r.Data, want)
		}
	case fateRemote:
		if !strings.Contains(r.Err.Error(), id) || !errors.Is(r.Err, errToil) {
			return fmt.Sprintf("the handler's error is another's: %v", r.Err)
		}
	case fatePanic:
		if errors.As(r.Err, &panicked) && panicked.Value != id {
			return fmt.Sprintf("the panic is another's: %v", r.Err)
		}
	}
	return ""
}

// toilLoad is what Carry gets.
func toilLoad(id string, size int) []byte {
	return bytes.Repeat([]byte(id+"|"), size/(len(id)+1)+1)[:size]
}

// executed lists the executions in their order.
func (b *toilBook) executed(t testing.TB) []string {
	text, err := os.ReadFile(b.ledger.Path)
	if err != nil {
		t.Fatalf("read the ledger: %v", err)
	}
	return strings.Fields(string(text))
}

// settle closes the books when nothing is open or at work any more, and begins new ones: each request has one verdict, none
// was executed twice, and those to a child that has an order were executed in the order of their hand-overs. What
// is wrong comes back with the histories of the requests that it concerns.
func (b *toilBook) settle(t testing.TB, ordered func(child int) bool) string {
	order, counts := b.executed(t), b.ledger.Counts(t)
	b.mu.Lock()
	defer b.mu.Unlock()
	caught := &toilCatcher{TB: t}
	b.law.Check(caught, counts)
	wrong := append(b.wrong, caught.lines...)
	for id := range counts {
		if b.pages[id] == nil && b.older[id] == nil { // a goroutine that was cut off may enter its line late
			wrong = append(wrong, id+": executed, and nobody sent it")
		}
	}
	wrong = append(wrong, b.disorderLocked(order, ordered)...)
	text := b.explainLocked(wrong)
	b.wrong, b.older = nil, b.pages
	b.clearLocked()
	if err := os.Truncate(b.ledger.Path, 0); err != nil {
		t.Fatalf("empty the ledger: %v", err)
	}
	return text
}

// unanswered shows the histories of the requests that were accepted and have no verdict.
func (b *toilBook) unanswered() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	caught := new(toilCatcher)
	b.law.Check(caught, nil)
	return b.explainLocked(append(slices.Clone(b.wrong), caught.lines...))
}

// toilCatcher keeps what the law says.
type toilCatcher struct {
	testing.TB
	lines []string
}

func (c *toilCatcher) Helper() {}

func (c *toilCatcher) Errorf(format string, args ...any) {
	c.lines = append(c.lines, strings.Split(fmt.Sprintf(format, args...), "\n")[1:]...) // the first is a title
}

// disorderLocked finds requests of one child that were executed before ones whose hand-over had ended before theirs began.
func (b *toilBook) disorderLocked(order []string, ordered func(child int) bool) (wrong []string) {
	first := make(map[int]string) // of each child, that with the earliest end of its hand-over among those executed later
	for _, id := range slices.Backward(order) {
		p := b.pages[id]
		if p == nil || !ordered(p.child) {
			continue
		}
		later := first[p.child]
		if later != "" && b.pages[later].to < p.from {
			wrong = append(wrong,
				fmt.Sprintf("%s: executed before %s, which had been handed to child %d before it", id, later, p.child),
				fmt.Sprintf("%s: executed after %s", later, id))
		}
		if later == "" || p.to < b.pages[later].to {
			first[p.child] = id
		}
	}
	return wrong
}

// explainLocked adds to each line the history of the request at its beginning.
func (b *toilBook) explainLocked(wrong []string) string {
	const most = 30
	var text strings.Builder
	told := make(map[string]bool)
	for i, line := range wrong {
		if i == most {
			fmt.Fprintf(&text, "and %d more\n", len(wrong)-most)
			break
		}
		fmt.Fprintln(&text, line)
		id, _, _ := strings.Cut(line, ":")
		if p := b.pages[id]; p != nil && !told[id] {
			told[id] = true
			fmt.Fprintf(&text, "    %s to child %d:\n", p.method, p.child)
			for _, h := range p.history {
				fmt.Fprintln(&text, "    ", h)
			}
		}
	}
	return text.String()
}
