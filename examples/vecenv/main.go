// Command vecenv lets a random policy push a number of carts, each with a pole on it, in processes of their own, and says
// how fast that goes:
//
//	vecenv -envs 8 -time 10s -chaos
//
// With -chaos the environments crash, hang and leak; the batches keep their shape. Ctrl-C ends them in order, with status
// 130.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"time"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/examples/vecenv/vecenv"
)

// Exit statuses beside 0.
const (
	exitFailure     = 1
	exitUsage       = 2
	exitInterrupted = 130 // what shells report after Ctrl-C
)

func main() {
	supervisor.Init() // first line: in a worker process it serves and never returns
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends us the hard way
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is main with everything that it depends on, and returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c, err := parseFlags(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil: // the flag set has printed it
		return exitUsage
	}
	err = play(ctx, c, stdout)
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		_, _ = fmt.Fprintln(stderr, "vecenv: interrupted")
		return exitInterrupted
	default:
		_, _ = fmt.Fprintln(stderr, "vecenv:", err)
		return exitFailure
	}
}

type vector = vecenv.Vector[struct{}, Position, int]

// play launches the environments, steps them until the time is over, and prints what came of it.
func play(ctx context.Context, c config, stdout io.Writer) (err error) {
	var seen tally
	carts, err := newVector(c, seen.note)
	if err != nil {
		return err
	}
	carts.Seed(c.seed)
	if err := carts.Launch(ctx, nil); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, carts.Close(context.Background())) }()
	spaces, err := carts.Spaces()
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(stdout, "%d carts stand; each is seen as %d numbers and takes %d actions\n",
		c.envs, spaces.Observation.Shape[0], spaces.Action.N)
	start := time.Now()
	if err := steps(ctx, c, carts, start); err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, summary(c, carts.Stats(), time.Since(start))+seen.String())
	return err
}

func newVector(c config, events func(supervisor.Event)) (*vector, error) {
	o := vecenv.Options{
		Kind:   c.kind,
		MaxTry: 5, RetryWait: 20 * time.Millisecond,
		ResetTimeout: time.Second, StepTimeout: time.Second, HangGrace: 200 * time.Millisecond,
		Supervisor: []supervisor.Option{supervisor.WithEvents(events)},
	}
	if c.chaos {
		o.StepTimeout = 100 * time.Millisecond
		if runtime.GOOS == "linux" {
			o.Child = append(o.Child, supervisor.Recycle{MaxMemory: 48 << 20})
		}
	}
	envs := make([]vecenv.Factory[struct{}, Position, int], c.envs)
	for i := range envs {
		envs[i] = newCartPole.With(c.chaos)
	}
	return vecenv.New(o, envs...)
}

// steps has the policy play.
func steps(ctx context.Context, c config, carts *vector, start time.Time) error {
	policy := rand.New(rand.NewPCG(uint64(c.seed), 1))
	for done := 0; time.Since(start) < c.time && (c.steps == 0 || done < c.steps); {
		ids, _ := carts.Ready() // a better policy would look at what they see
		actions := make([]int, len(ids))
		for i := range actions {
			actions[i] = policy.IntN(pushRight + 1)
		}
		if _, err := carts.Step(ctx, ids, actions); err != nil {
			return err
		}
		done += len(ids)
	}
	return nil
}

func summary(c config, stats []vecenv.Stats, took time.Duration) string {
	var sum vecenv.Stats
	for _, s := range stats {
		sum.Steps += s.Steps
		sum.Episodes += s.Episodes
		sum.Abnormal += s.Abnormal
		sum.Renewed += s.Renewed
	}
	return fmt.Sprintf("%d %v environments, %d steps in %.1f s: %.0f steps/s, %d episodes, %d restarts, %d abnormal steps",
		c.envs, c.kind, sum.Steps, took.Seconds(), float64(sum.Steps)/took.Seconds(), sum.Episodes, sum.Renewed, sum.Abnormal)
}

// tally counts why environments were restarted.
type tally struct {
	mu                     sync.Mutex
	exited, hung, recycled int
}

func (t *tally) note(e supervisor.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e.Kind {
	case supervisor.EventExited:
		t.exited++
	case supervisor.EventHung:
		t.hung++
		t.exited-- // its end follows
	case supervisor.EventRecycled:
		t.recycled++
	}
}

// String says what there is to say.
func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.exited == 0 && t.hung == 0 && t.recycled == 0 {
		return ""
	}
	return fmt.Sprintf("; crashed %d, hung %d, leaked %d times", t.exited, t.hung, t.recycled)
}
