package faulttest_test

// Many who wait at once: who gets what, and when.

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

// throng is many users of one supervisor. Its clock counts verdicts: what a wait costs is how many others were served
// meanwhile, however busy the machine is.
type throng struct {
	sup      *supervisor.Supervisor
	children int
	batch    int
	clock    atomic.Int64
	seen     []atomic.Int32 // verdicts by number of the message

	mu    sync.Mutex
	waits []int64 // of gathers, by the clock
	err   error   // the first thing that went wrong
}

func (c *throng) failed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

func (c *throng) message(n int) supervisor.SendPayload {
	return clerkPayload(strconv.Itoa(n), n%c.children, "Echo", n)
}

// take counts one verdict, which must be its own request's.
func (c *throng) take(p supervisor.RecvPayload) {
	n, err := strconv.Atoi(p.ReqID)
	if err != nil || p.Err != nil || p.Data != n {
		c.failed(fmt.Errorf("reply to %q is %v, %w", p.ReqID, p.Data, p.Err))
		return
	}
	c.seen[n].Add(1)
	c.clock.Add(1)
}

func (c *throng) waited(wait int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits = append(c.waits, wait)
}

// gather sends and awaits the messages [from, to) batch by batch, all of them in one RecvAll: what it has not begun to
// await, a receiver might take. begun is called when it has.
func (c *throng) gather(ctx context.Context, from, to int, begun func()) {
	seed := clerkPayload(fmt.Sprint("before ", from), 0, "Echo", 0)
	if err := c.sup.Send(ctx, seed); err != nil {
		c.failed(err)
	}
	var since int64
	pending := 0
	_, err := c.sup.RecvAll(ctx, []supervisor.SendPayload{seed},
		supervisor.OnReply(func(w *supervisor.Waiting, p supervisor.RecvPayload) error {
			if p.ReqID == seed.ReqID {
				defer begun()
			} else {
				c.take(p)
				pending--
			}
			if pending > 0 {
				return nil
			}
			if p.ReqID != seed.ReqID {
				c.waited(c.clock.Load() - since)
			}
			since = c.clock.Load()
			for ; pending < c.batch && from < to; from++ {
				if err := w.Send(c.message(from)); err != nil {
					return err
				}
				pending++
			}
			return nil
		}))
	if err != nil {
		c.failed(err)
	}
}

// run has gatherers and receivers share out the messages, and returns how many each receiver got.
func (c *throng) run(ctx context.Context, gatherers, receivers int) (shares []int64) {
	plain := len(c.seen) * 2 / 5 // for the receivers
	each := (len(c.seen) - plain) / gatherers
	var users, begun sync.WaitGroup
	begun.Add(gatherers)
	for i := range gatherers {
		to := plain + (i+1)*each
		if i == gatherers-1 {
			to = len(c.seen)
		}
		users.Go(func() { c.gather(ctx, plain+i*each, to, begun.Done) })
	}
	begun.Wait()
	over, end := context.WithCancel(ctx)
	defer end()
	var left atomic.Int64
	left.Store(int64(plain))
	shares = make([]int64, receivers)
	for i := range receivers {
		users.Go(func() {
			for n := i; n < plain; n += receivers {
				if err := c.sup.Send(ctx, c.message(n)); err != nil {
					c.failed(err)
					end()
				}
			}
		})
		users.Go(func() {
			for {
				p, err := c.sup.Recv(over)
				if err != nil {
					if over.Err() == nil {
						c.failed(err)
					}
					return
				}
				c.take(p)
				if shares[i]++; left.Add(-1) == 0 {
					end()
				}
			}
		})
	}
	users.Wait()
	return shares
}

// check asserts that each message had its one verdict, and that nobody had to wait until the others were done.
func (c *throng) check(t testing.TB, shares []int64) {
	t.Helper()
	require.NoError(t, c.err, "what went wrong first")
	for n := range c.seen {
		require.EqualValues(t, 1, c.seen[n].Load(), "verdicts of message %d", n)
	}
	nothingLeft(t, c.sup)
	slices.Sort(c.waits)
	median, longest := c.waits[len(c.waits)/2], c.waits[len(c.waits)-1]
	t.Logf("waits of gathers in verdicts of all: median %d, longest %d; shares of receivers %v", median, longest, shares)
	require.Less(t, int(longest), len(c.seen)/2, "the longest wait, in verdicts of all")
	require.Positive(t, slices.Min(shares), "the least share of a receiver")
}

// No message is lost or comes twice, and nobody starves. How even the waits are depends on the scheduler; plain channels in
// place of the library are as uneven on a busy machine, so that is shown and not asserted.
func TestR07ManyWaiters(t *testing.T) {
	const gatherers, receivers = 64, 4
	messages := times(20_000, 100_000)
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		sup := clerks(t, k, 4, supervisor.Limits{Queue: 64})
		c := &throng{sup: sup, children: 4, batch: 10, seen: make([]atomic.Int32, messages)}
		c.check(t, c.run(testkit.Context(t), gatherers, receivers))
		shutdown(t, sup)
	})
}
