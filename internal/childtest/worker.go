package childtest

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strconv"
	"sync"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// Job says what a worker is to be.
type Job struct {
	Start  int    // first value of Count
	Ledger string // gets a line per execution of Enter, and "close" per Close; none if empty
	Gate   string // where handlers, and factories that hang, meet the test
	Mode   Mode   // what the factory does
}

// Mode is what a factory does.
type Mode string

// The modes of a factory.
const (
	Works     Mode = ""
	Fails     Mode = "fails"      // returns an error that wraps [ErrSentinel]
	Panics    Mode = "panics"     // with [ErrSentinel]
	Exits     Mode = "exits"      // its goroutine, by runtime.Goexit
	Waits     Mode = "waits"      // until its ctx ends
	Hangs     Mode = "hangs"      // until the gate lets it go
	Quits     Mode = "quits"      // the process, with code 7 and a line on stderr
	WorksOnce Mode = "works once" // the first life works, later ones fail: the ledger tells them apart
)

// base is embedded for a method that is promoted and so not callable.
type base struct{}

// Promoted is callable on a base, but not on what embeds it.
func (base) Promoted() {}

// Worker is the object of every child in the suite.
type Worker struct {
	base
	Count int    // readable
	Title string // readable

	job Job
	mu  sync.Mutex // handlers may run at once
	log []string
}

// spec makes workers for the kinds that have specs.
var spec = supervisor.DefineWith("childtest.Worker", NewWorker)

// Spec returns the spec of a worker, for the kinds that have specs.
func Spec(job Job) supervisor.Spec { return spec.With(job) }

// NewWorker is the factory of all workers.
func NewWorker(ctx context.Context, job Job) (*Worker, error) {
	switch job.Mode {
	case Fails:
		return nil, errors.Join(errors.New("no worker today"), ErrSentinel)
	case Panics:
		panic(ErrSentinel)
	case Exits:
		runtime.Goexit()
	case Waits:
		<-ctx.Done()
		return nil, ctx.Err()
	case Hangs:
		if _, err := WaitAt(context.Background(), job.Gate, "factory"); err != nil {
			return nil, err
		}
	case Quits:
		_, _ = os.Stderr.WriteString("the worker quits\n") // the exit code says it too
		os.Exit(7)
	case WorksOnce:
		if seen, err := os.ReadFile(job.Ledger); err != nil || len(seen) > 0 {
			return nil, errors.Join(ErrSentinel, err)
		}
		if err := (testkit.Ledger{Path: job.Ledger}).Enter("factory"); err != nil {
			return nil, err
		}
	}
	return &Worker{Count: job.Start, Title: "worker " + strconv.Itoa(job.Start), job: job}, nil
}

// Close is the hook of an orderly end.
func (w *Worker) Close() error {
	if w.job.Ledger == "" {
		return nil
	}
	return testkit.Ledger{Path: w.job.Ledger}.Enter("close")
}

// Snapshot is the hook that shows something in the supervisor's snapshot.
func (w *Worker) Snapshot() any { return map[string]any{"count": w.Count} }

// String describes the worker, and so cannot be called by a request.
func (w *Worker) String() string { return "a worker" }

// Add adds to Count and returns the sum.
func (w *Worker) Add(d int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Count += d
	return w.Count
}

// Total returns Count.
func (w *Worker) Total() int { return w.Count }

// Enter records one execution in the ledger.
func (w *Worker) Enter(id string) error { return testkit.Ledger{Path: w.job.Ledger}.Enter(id) }

// Log appends a word to the log.
func (w *Worker) Log(word string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, word)
}

// Logged returns the log.
func (w *Worker) Logged() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log
}

// Me returns what the handler knows of itself.
func (w *Worker) Me(ctx context.Context) (supervisor.Info, error) {
	info, ok := supervisor.Self(ctx)
	if !ok {
		return info, errors.New("the handler's ctx says nothing")
	}
	return info, nil
}

// unexported cannot be called.
func (w *Worker) unexported() {}

var _ = (*Worker).unexported
