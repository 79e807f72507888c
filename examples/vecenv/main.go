// Command vecenv lets a random policy push a number of carts, each with a pole on it, in processes of their own, and says
// how fast that goes:
//
//	vecenv -envs 8 -time 10s -chaos
//
// With -chaos the environments crash, hang and leak, each at least once; the batches keep their shape, and what happens is
// told on standard error. Ctrl-C ends them in order, with status 130.
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
	stderr = &locked{w: stderr} // events come while we write, too
	c, err := parseFlags(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil: // the flag set has printed it
		return exitUsage
	}
	err = play(ctx, c, stdout, stderr)
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

type vector = vecenv.Vector[struct{}, Position, Action]

// play launches the environments, steps them until the time is over, and prints what came of it, also if that was too early.
func play(ctx context.Context, c config, stdout, stderr io.Writer) error {
	seen := newTally(stderr)
	carts, err := newVector(c, seen.note)
	if err != nil {
		return err
	}
	carts.Seed(c.seed)
	if err := carts.Launch(ctx, nil); err != nil {
		return err
	}
	start := time.Now()
	spaces, err := carts.Spaces()
	if err == nil {
		_, _ = fmt.Fprintf(stdout, "%d carts stand; each is seen as %d numbers and takes %d actions\n",
			c.envs, spaces.Observation.Shape[0], spaces.Action.N)
		err = steps(ctx, c, carts, seen)
	}
	took := time.Since(start)
	err = errors.Join(err, carts.Close(context.Background())) // before the summary: nothing happens any more
	_, unwritten := fmt.Fprintln(stdout, seen.summary(c, carts.Stats(), took))
	return errors.Join(err, unwritten)
}

func newVector(c config, events func(supervisor.Event)) (*vector, error) {
	o := vecenv.Options{
		Kind:   c.kind,
		MaxTry: 5, RetryWait: 20 * time.Millisecond,
		ResetTimeout: time.Second, StepTimeout: time.Second, HangGrace: 200 * time.Millisecond,
		Supervisor: []supervisor.Option{supervisor.WithEvents(events)},
	}
	if c.chaos {
		o.StepTimeout = 200 * time.Millisecond
		if runtime.GOOS == "linux" {
			o.Child = append(o.Child, supervisor.Recycle{MaxMemory: most})
		}
	}
	envs := make([]vecenv.Factory[struct{}, Position, Action], c.envs)
	for i := range envs {
		envs[i] = newCartPole
	}
	return vecenv.New(o, envs...)
}

// overtime is how long a run with chaos goes on at most until each kind of trouble has been seen.
const overtime = 10 * time.Second

// steps has the policy play.
func steps(ctx context.Context, c config, carts *vector, seen *tally) error {
	policy := rand.New(rand.NewPCG(uint64(c.seed), 1))
	var trouble *chaos
	var awaited []supervisor.EventKind
	if c.chaos {
		trouble, awaited = newChaos(c.seed), []supervisor.EventKind{supervisor.EventExited, supervisor.EventHung}
		if runtime.GOOS == "linux" {
			awaited = append(awaited, supervisor.EventRecycled)
		}
	}
	leakSeen := func() bool { return seen.all([]supervisor.EventKind{supervisor.EventRecycled}) }
	start, done := time.Now(), 0
	over := func() bool {
		played := time.Since(start)
		enough := played >= c.time || c.steps > 0 && done >= c.steps
		return enough && (seen.all(awaited) || played >= c.time+overtime)
	}
	for !over() {
		ids, _ := carts.Ready() // a better policy would look at what they see
		stats := carts.Stats()
		actions := make([]Action, len(ids))
		for i, id := range ids {
			actions[i] = Action{Push: policy.IntN(pushRight + 1), Trouble: trouble.draw(id, stats[id].Renewed, leakSeen)}
		}
		steps, err := carts.Step(ctx, ids, actions)
		seen.add(steps)
		if err != nil {
			return err
		}
		done += len(ids)
	}
	return nil
}
