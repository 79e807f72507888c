package faulttest_test

// The object of children that are restarted in every way.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// breakerJob says what a breaker is to be. Its path is that of a ledger, which gets a line per start and per execution.
type breakerJob struct {
	Path, Gate string
	Lock       string // a file that is there while a life is; none if empty
	Starts     int    // how many succeed; 0 means all
	Meet       bool   // the factory waits at the gate, and fails if it is told so
}

type breaker struct{ job breakerJob }

var errBreaker = errors.New("faulttest: the breaker is broken")

func init() { supervisor.RegisterError("faulttest.errBreaker", errBreaker) }

var newBreaker = supervisor.DefineWith("faulttest.breaker", func(ctx context.Context, job breakerJob) (*breaker, error) {
	b := &breaker{job}
	if job.Path != "" {
		if err := b.Enter("start"); err != nil {
			return nil, err
		}
	}
	if job.Starts > 0 {
		starts, err := b.entries("start")
		if err != nil {
			return nil, err
		}
		if starts > job.Starts {
			return nil, fmt.Errorf("start %d: %w", starts, errBreaker)
		}
	}
	if job.Meet {
		if answer, err := childtest.WaitAt(ctx, job.Gate, strconv.Itoa(os.Getpid())); err != nil || answer == "fail" {
			return nil, errors.Join(err, errBreaker)
		}
	}
	if job.Lock != "" {
		f, err := os.OpenFile(job.Lock, os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return nil, fmt.Errorf("two lives at once: %w", err)
		}
		return b, f.Close()
	}
	return b, nil
})

// Close is the hook.
func (b *breaker) Close() error {
	if b.job.Lock == "" {
		return nil
	}
	return os.Remove(b.job.Lock)
}

// Enter records one execution.
func (b *breaker) Enter(id string) error { return testkit.Ledger{Path: b.job.Path}.Enter(id) }

func (b *breaker) entries(line string) (n int, err error) {
	text, err := os.ReadFile(b.job.Path)
	for l := range strings.Lines(string(text)) {
		if l == line+"\n" {
			n++
		}
	}
	return n, err
}

// EnterAndHold records one execution, and waits at the gate, or until its context ends.
func (b *breaker) EnterAndHold(ctx context.Context, id string) (string, error) {
	if err := b.Enter(id); err != nil {
		return "", err
	}
	return childtest.WaitAt(ctx, b.job.Gate, id)
}

// Hold waits at the gate, or until its context ends.
func (b *breaker) Hold(ctx context.Context, name string) (string, error) {
	return childtest.WaitAt(ctx, b.job.Gate, name)
}

// HoldOn waits at the gate, whatever happens.
func (b *breaker) HoldOn(name string) (string, error) {
	return childtest.WaitAt(context.Background(), b.job.Gate, name)
}

// Break ends the life.
func (b *breaker) Break() error { return supervisor.Fatal(errBreaker) }

// BreakAt ends the life once the gate says so.
func (b *breaker) BreakAt(name string) error {
	if _, err := childtest.WaitAt(context.Background(), b.job.Gate, name); err != nil {
		return err
	}
	return b.Break()
}

// Panic panics.
func (b *breaker) Panic() { panic(errBreaker) }

// Pid returns the id of the process.
func (b *breaker) Pid() int { return os.Getpid() }

// breakerRig is a supervisor with breakers.
type breakerRig struct {
	*childtest.Rig
	lives []supervisor.ChildSnapshot // the first ones
}

func newBreakers(t *testing.T, k childtest.Kind, n int, opts []supervisor.Option, child ...supervisor.ChildOption) *breakerRig {
	t.Helper()
	r := &breakerRig{Rig: childtest.NewRig(t, k, opts...)}
	for range n {
		register(t, r.Sup, newBreaker.With(r.job()), child...)
	}
	require.NoError(t, r.Sup.StartLink(context.Background()), "StartLink")
	r.lives = r.Sup.Snapshot().Children
	return r
}

func (r *breakerRig) job() breakerJob {
	return breakerJob{Path: r.Ledger.Path, Gate: r.Gate.Address}
}

// hold has a request wait at the gate.
func (r *breakerRig) hold(t *testing.T, id int, method string) (supervisor.SendPayload, *childtest.Visitor) {
	t.Helper()
	p := supervisor.NewSendPayload(id, method, "")
	p.Args[0] = p.ReqID
	send(t, r.Sup, p)
	return p, r.Gate.Next(t)
}

// breaks ends a life by the request that says so, and returns when that is known.
func (r *breakerRig) breaks(t *testing.T, id int) {
	t.Helper()
	_, err := supervisor.Call[any](r.Ctx, r.Sup, id, "Break")
	require.ErrorIs(t, err, errBreaker, "Call of Break")
	r.Events.WaitFor(t, "the end of child "+strconv.Itoa(id), func(e supervisor.Event) bool {
		return e.Kind == supervisor.EventExited && e.ProcID == id
	})
}

// order lists the children of the events of a kind.
func (r *breakerRig) order(kind supervisor.EventKind) (ids []int) {
	for _, e := range r.Events.All() {
		if e.Kind == kind {
			ids = append(ids, e.ProcID)
		}
	}
	return ids
}
