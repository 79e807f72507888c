package faulttest_test

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

// grove is the object of a worker that is a host itself: it has a supervisor with a worker of its own.
type grove struct{ sup *supervisor.Supervisor }

var newGrove = supervisor.Define("faulttest.grove", func(ctx context.Context) (*grove, error) {
	sup, err := supervisor.New(supervisor.Process)
	if err != nil {
		return nil, err
	}
	if _, err := sup.Register(ctx, newNapper); err != nil {
		return nil, err
	}
	return &grove{sup}, sup.StartLink(context.WithoutCancel(ctx))
})

// Pids are those of the workers of this worker.
func (g *grove) Pids() (pids []int) {
	for _, c := range g.sup.Snapshot().Children {
		pids = append(pids, c.Pid)
	}
	return pids
}

// Close ends them.
func (g *grove) Close() error { return g.sup.Shutdown(context.Background()) }

// treeHost has a tree of three levels, the lowest of which is two processes down, and shuts it down at a word.
var treeHost = testkit.Helper("host of a tree", func() {
	root, pids, err := startTree()
	say(hostReport{Pids: pids}, err)
	awaitWord()
	task.Go(func(context.Context) {
		_ = root.Shutdown(context.Background())
		os.Exit(0)
	})
	<-make(chan struct{})
})

func startTree() (root *supervisor.Supervisor, pids []int, err error) {
	root, err = supervisor.New(supervisor.Process)
	if err != nil {
		return nil, nil, err
	}
	below, err := supervisor.New(supervisor.Process)
	if err != nil {
		return nil, nil, err
	}
	ctx := context.Background()
	_, err1 := root.Register(ctx, newGrove)
	_, err2 := root.RegisterChild(ctx, below.AsChild())
	_, err3 := below.Register(ctx, newGrove)
	_, err4 := below.Register(ctx, newNapper)
	if err := errors.Join(err1, err2, err3, err4, root.StartLink(ctx)); err != nil {
		return nil, nil, err
	}
	for _, s := range []*supervisor.Supervisor{root, below} {
		for _, c := range s.Snapshot().Children {
			if c.Pid != 0 {
				pids = append(pids, c.Pid)
			}
		}
		inner, err := supervisor.Call[[]int](ctx, s, 0, "Pids")
		if err != nil {
			return nil, nil, err
		}
		pids = append(pids, inner...)
	}
	return root, pids, nil
}

// The host is killed at any moment of its Shutdown: who is below goes as well, to the last grandchild.
func TestC108HostOfATreeKilledDuringShutdown(t *testing.T) {
	testkit.NoLeaks(t)
	rounds := times(6, 200)
	for round := range rounds {
		h := startHost(t, treeHost)
		pids := h.report(t, 5).Pids
		alive(t, pids)
		require.NoError(t, h.word.Close(), "the word")
		for range round * 9973 % 60_000 { // now sooner, now later
			_ = os.Getppid()
		}
		h.signal(t, h.cmd.Process.Pid, syscall.SIGKILL)
		h.gone(t, pids)
	}
}
