package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/examples/internal/gosource"
	"github.com/workerlink/supervisor/examples/internal/progress"
)

// depth is how many files a worker has under way: one that it parses, the others so that it never waits for the next. All
// of them are lost with it.
const depth = 8

// parseAll has the files parsed by c.workers children of spec and puts what they find into the table.
func parseAll(ctx context.Context, c config, spec supervisor.Spec, files []string, table *gosource.Table, bar *progress.Bar) (t tally, err error) {
	sup, err := supervisor.New(c.kind)
	if err != nil {
		return t, err
	}
	f := &feed{
		sup: sup, table: table, bar: bar, todo: slices.Clone(files),
		open: make(map[int]int), chaos: newChaos(c.chaos, len(files), c.seed),
	}
	for i := range c.workers {
		id, err := sup.Register(ctx, spec, supervisor.WithName(fmt.Sprintf("parser-%d", i)))
		if err != nil {
			return t, err
		}
		f.ids = append(f.ids, id)
	}
	if err := sup.StartLink(ctx); err != nil {
		return t, err
	}
	// After Ctrl-C the workers are being stopped already, and this waits for it.
	defer func() { err = errors.Join(err, sup.Shutdown(context.Background())) }()
	if err := f.run(ctx); err != nil {
		return t, err
	}
	f.tally.killed = f.chaos.kills
	for _, child := range sup.Snapshot().Children {
		f.tally.restarts += child.Restarts
	}
	return f.tally, nil
}

// feed hands files to the workers and takes their replies, all on one goroutine.
type feed struct {
	sup   *supervisor.Supervisor
	table *gosource.Table
	bar   *progress.Bar
	chaos *chaos

	ids      []int       // children that take files
	open     map[int]int // files under way, by child
	todo     []string    // files to hand out
	suspects []string    // files that may have ended a worker
	tally    tally
}

// run parses every file. Those that a worker died with are parsed again at the end, each with a worker to itself: if that
// dies too, the file is to blame.
func (f *feed) run(ctx context.Context) error {
	if err := f.pass(ctx, depth); err != nil {
		return err
	}
	f.todo, f.suspects = f.suspects, nil
	return f.pass(ctx, 1)
}

// pass works until nothing is left to do, with up to limit files under way per child.
func (f *feed) pass(ctx context.Context, limit int) error {
	for len(f.todo) > 0 || f.underWay() > 0 {
		if err := f.fill(ctx, limit); err != nil {
			return err
		}
		if f.underWay() == 0 { // nobody could take a file, but one child has been revived or one is left
			continue
		}
		f.chaos.strike(f.sup, f.tally.files)
		reply, err := f.sup.Recv(ctx, supervisor.IgnoreErr())
		if err != nil {
			return err
		}
		f.open[reply.ProcID]--
		if err := f.take(reply, limit == 1); err != nil {
			return err
		}
	}
	return nil
}

func (f *feed) underWay() (n int) {
	for _, open := range f.open {
		n += open
	}
	return n
}

// fill gives each child that is up as many files as it may have.
func (f *feed) fill(ctx context.Context, limit int) error {
	for _, id := range slices.Clone(f.ids) {
		for f.open[id] < limit && len(f.todo) > 0 {
			err := f.hand(ctx, id, f.todo[0])
			if errors.Is(err, supervisor.ErrBusy) { // between two lives; the others go on meanwhile
				break
			}
			if err != nil {
				if err := f.revive(ctx, id, err); err != nil {
					return err
				}
				break
			}
			f.todo = f.todo[1:]
			f.open[id]++
		}
	}
	return nil
}

// hand sends one file. The path is the request's id: a file is never under way twice.
func (f *feed) hand(ctx context.Context, id int, path string) error {
	request := supervisor.SendPayload{ProcID: id, ReqID: path, Method: "Parse", Args: []any{path}}
	if f.underWay() == 0 { // there is no reply to wait for, so wait for this child's next life
		return f.sup.Send(ctx, request)
	}
	return f.sup.TrySend(request)
}

// revive starts a child again that died so often that the supervisor has given it up. If it does not come back the others
// go on without it.
func (f *feed) revive(ctx context.Context, id int, why error) error {
	if !errors.Is(why, supervisor.ErrRestartLimit) {
		return why
	}
	err := f.sup.Restart(ctx, id)
	if err == nil {
		f.tally.restarts++
		return nil
	}
	f.ids = slices.DeleteFunc(f.ids, func(other int) bool { return other == id })
	if len(f.ids) == 0 || ctx.Err() != nil {
		return err
	}
	return nil
}
