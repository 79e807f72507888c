package faulttest_test

import (
	"context"
	"time"

	"github.com/workerlink/supervisor"
)

// at is the id of the child that has a place now; -1: none.
func (c *chaos) at(place int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ids[place]
}

func (c *chaos) isWide(child int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wide[child]
}

// fill gives a place a new child.
func (c *chaos) fill(place int) {
	at := chaosPlaces[place]
	opts := append([]supervisor.ChildOption{supervisor.WithType(at.kind), supervisor.WithName(at.name)}, at.opts...)
	ctx, cancel := context.WithTimeout(context.Background(), chaosPatience)
	defer cancel()
	id, err := c.sup.Register(ctx, newToiler.With(c.book.ledger.Path), opts...)
	if err != nil {
		// The end of the round may come in between, and a villain may have killed it at once.
		if got := fateOf(err); got&(fateClosed|fateCanceled|fateExit) == 0 {
			c.book.complain("Register: %v", err)
		}
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.wide[id]; known {
		c.book.complain("Register returns the id %d again", id)
	}
	c.ids[place], c.wide[id] = id, at.wide
}

// harm does one operation of a villain.
func (c *chaos) harm(_, _ int, op chaosOp) {
	select {
	case <-time.After(op.Wait):
	case <-c.sup.Done(): // the round is over
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), chaosPatience)
	defer cancel()
	var err error
	may := fateValue | fateClosed | fateNoChild
	switch op.Do {
	case chaosKill:
		chaosSignal(c.pid(op.Place), sigKill)
	case chaosFreeze:
		pid := c.pid(op.Place)
		chaosSignal(pid, sigStop)
		select {
		case <-time.After(op.Wait):
		case <-c.sup.Done():
		}
		chaosSignal(pid, sigCont)
	case chaosRestart:
		if op.Limit > 0 {
			ctx, cancel = context.WithTimeout(ctx, op.Limit)
			defer cancel()
			may |= fateTimeout
		}
		may |= fateExit | fateLimit // it may be killed again before it is seen to be up
		err = c.sup.Restart(ctx, c.at(op.Place))
	case chaosReplace:
		c.placed[op.Place].Lock()
		defer c.placed[op.Place].Unlock()
		if op.Limit > 0 {
			ctx, cancel = context.WithTimeout(ctx, op.Limit)
			defer cancel()
		}
		may |= fateTimeout | fateStuck // also by an end that is in a hurry
		err = c.sup.Unregister(ctx, c.at(op.Place))
		c.mu.Lock()
		c.ids[op.Place] = -1
		c.mu.Unlock()
		c.fill(op.Place)
	}
	if got := fateOf(err); got&may == 0 {
		c.book.complain("%+v: %v", op, err)
	}
}

// pid is the process of the child that has a place; 0: none.
func (c *chaos) pid(place int) int {
	id := c.at(place)
	for _, child := range c.sup.Snapshot().Children {
		if child.ProcID == id && child.State == supervisor.StateUp {
			return child.Pid
		}
	}
	return 0
}
