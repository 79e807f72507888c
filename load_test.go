package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// tally counts the executions of each request, by children that run at the same time.
type tally struct {
	mu   sync.Mutex
	runs map[string]int
}

// Run executes one request.
func (c *tally) Run(id string, fails bool) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs[id]++
	if fails {
		return "", errors.New("tally: told to fail")
	}
	return id, nil
}

// crowd is many users of one supervisor at once.
type crowd struct {
	t   *testing.T
	sup *supervisor.Supervisor
	law testkit.Law
}

const crowdChildren = 4

func (c *crowd) request(id string, n int) supervisor.SendPayload {
	return named(id, n%crowdChildren, "Run", id, n%7 == 0)
}

// outcome puts a reply into the words of the conservation law.
func outcome(err error) testkit.Outcome {
	var call *supervisor.CallError
	var remote *supervisor.RemoteError
	switch {
	case err == nil:
		return testkit.Value
	case errors.As(err, &call) && call.Unexecuted:
		return testkit.Unexecuted
	case errors.As(err, &remote):
		return testkit.Remote
	}
	return testkit.Transport
}

func (c *crowd) verdict(p supervisor.RecvPayload) {
	if p.Err == nil && p.Data != p.ReqID {
		c.t.Errorf("reply to %q has the value %v: it is another's", p.ReqID, p.Data)
	}
	c.law.Verdict(p.ReqID, outcome(p.Err))
}

// gather sends and gathers batches of its own.
func (c *crowd) gather(ctx context.Context, name string, rounds, batch int) error {
	for round := range rounds {
		var reqs []supervisor.SendPayload
		for i := range batch {
			p := c.request(fmt.Sprintf("%s-%d-%d", name, round, i), round*batch+i)
			if err := c.sup.Send(ctx, p); err != nil {
				return fmt.Errorf("Send: %w", err)
			}
			c.law.Accept(p.ReqID)
			reqs = append(reqs, p)
		}
		got, err := c.sup.RecvAll(ctx, reqs, supervisor.IgnoreErr())
		if err != nil {
			return fmt.Errorf("RecvAll: %w", err)
		}
		for i, p := range got {
			if p.ReqID != reqs[i].ReqID {
				return fmt.Errorf("entry %d of RecvAll is %q, not %q", i, p.ReqID, reqs[i].ReqID)
			}
			c.verdict(p)
		}
	}
	return nil
}

// scatter sends what anybody may receive.
func (c *crowd) scatter(ctx context.Context, name string, n int) error {
	for i := range n {
		p := c.request(fmt.Sprintf("%s-%d", name, i), i)
		if err := c.sup.Send(ctx, p); err != nil {
			return fmt.Errorf("Send: %w", err)
		}
		c.law.Accept(p.ReqID)
	}
	return nil
}

func newCrowd(t *testing.T) (*crowd, *tally) {
	t.Helper()
	counts := &tally{runs: make(map[string]int)}
	var specs []supervisor.Spec
	for range crowdChildren {
		specs = append(specs, supervisor.Object(counts))
	}
	return &crowd{t: t, sup: started(t, supervisor.Goroutine, specs...)}, counts
}

func (c *crowd) report(err error) {
	if err != nil {
		c.t.Error(err)
	}
}

// restarts has the children restarted while the others are at work.
func (c *crowd) restarts(ctx context.Context) {
	for i := range 40 {
		c.report(c.sup.Restart(ctx, i%crowdChildren))
	}
}

// check is the end: of n requests, by the law.
func (c *crowd) check(n int, counts *tally) {
	accepted, verdicts := c.law.Counts()
	require.Equal(c.t, n, accepted, "requests that were accepted")
	require.NotZero(c.t, verdicts[testkit.Value], "values among %v", verdicts)
	require.NotZero(c.t, verdicts[testkit.Remote], "errors among %v", verdicts)
	c.law.Check(c.t, counts.runs)
	s := c.sup.Snapshot()
	require.Zero(c.t, s.Open+s.Unclaimed, "what is left in the inbox")
	shutdown(c.t, c.sup)
}

// R07: many that gather each their own, while children are restarted.
func TestCrowdOfGatherers(t *testing.T) {
	const gatherers, rounds, batch = 64, 10, 12
	testkit.NoLeaks(t)
	ctx := testkit.Context(t)
	c, counts := newCrowd(t)
	var users sync.WaitGroup
	for i := range gatherers {
		users.Go(func() { c.report(c.gather(ctx, fmt.Sprintf("g%d", i), rounds, batch)) })
	}
	users.Go(func() { c.restarts(ctx) })
	users.Wait()
	c.check(gatherers*rounds*batch, counts)
}

// R07: some that take whatever comes, while children are restarted.
func TestCrowdOfReceivers(t *testing.T) {
	const senders, receivers, each = 8, 8, 1000
	testkit.NoLeaks(t)
	ctx := testkit.Context(t)
	c, counts := newCrowd(t)
	var users sync.WaitGroup
	for i := range senders {
		users.Go(func() { c.report(c.scatter(ctx, fmt.Sprintf("s%d", i), each)) })
	}
	for range receivers {
		users.Go(func() {
			for range senders * each / receivers {
				p, err := c.sup.Recv(ctx, supervisor.IgnoreErr())
				c.report(err)
				c.verdict(p)
			}
		})
	}
	users.Go(func() { c.restarts(ctx) })
	users.Wait()
	c.check(senders*each, counts)
}

// S05: restarts at once and calls between them. Never do two lives serve at the same time.
func TestConcurrentRestarts(t *testing.T) {
	testkit.NoLeaks(t)
	ctx := testkit.Context(t)
	alone := &alone{}
	sup := started(t, supervisor.Goroutine, supervisor.Object(alone))
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for range 25 {
				if err := sup.Restart(ctx, 0); err != nil {
					t.Errorf("Restart: %v", err)
				}
			}
		})
	}
	for range 4 {
		callers.Go(func() {
			for range 200 {
				_, err := supervisor.Call[int](ctx, sup, 0, "Enter")
				if err != nil && !errors.Is(err, supervisor.ErrRestarted) {
					t.Errorf("Call: %v", err)
				}
			}
		})
	}
	callers.Wait()
	require.False(t, alone.crossed, "two handlers of one child ran at once")
	require.NoError(t, sup.Healthy(), "Healthy after all")
	shutdown(t, sup)
}

// alone notices when it is not.
type alone struct {
	mu      sync.Mutex
	crossed bool
}

// Enter fails to get the lock if another handler has it.
func (a *alone) Enter() int {
	if !a.mu.TryLock() {
		a.crossed = true
		return 0
	}
	defer a.mu.Unlock()
	return 1
}
