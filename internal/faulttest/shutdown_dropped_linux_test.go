package faulttest_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// forgetfulHost loses its supervisor, and ends at a word without another thought.
var forgetfulHost = testkit.Helper("forgetful host", func() {
	pids, err := forgetSupervisor()
	for range 5 {
		runtime.GC()
	}
	say(hostReport{Pids: pids}, err)
	awaitWord()
})

// forgetSupervisor starts two workers, and leaves one of them with a request.
func forgetSupervisor() (pids []int, err error) {
	ctx := context.Background()
	sup, err := supervisor.New(supervisor.Process)
	if err != nil {
		return nil, err
	}
	for range 2 {
		if _, err := sup.Register(ctx, newNest.With(1)); err != nil {
			return nil, err
		}
	}
	if err := sup.StartLink(ctx); err != nil {
		return nil, err
	}
	for _, c := range sup.Snapshot().Children {
		pids = append(pids, c.Pid)
	}
	return pids, sup.Send(ctx, supervisor.NewSendPayload(1, "Pids"))
}

// A supervisor that nobody refers to any more is no reason to end its workers: they last as long as their host.
func TestX10SupervisorDropped(t *testing.T) {
	t.Run("workers", func(t *testing.T) {
		testkit.NoLeaks(t)
		h := startHost(t, forgetfulHost)
		pids := h.report(t, 2).Pids
		alive(t, pids)
		require.NoError(t, h.word.Close(), "Close")
		h.gone(t, pids)
		require.Equal(t, 0, h.cmd.ProcessState.ExitCode(), "exit status of the host: %v", h.cmd.ProcessState)
		require.Empty(t, h.stderr.String(), "stderr of the host")
	})
	t.Run("goroutines", func(t *testing.T) {
		testkit.NoLeaks(t)
		life, end := context.WithCancel(context.Background())
		defer end()
		ask := make(chan int)
		answers := make(chan error)
		dropSupervisor(life, t, ask, answers)
		for n := range 5 {
			runtime.GC()
			ask <- n
			require.NoError(t, <-answers, "answer %d of a child whose supervisor is out of reach", n)
		}
		end() // the only way that is left; NoLeaks sees that it works
	})
}

// dropSupervisor starts a supervisor to which only its own child refers.
func dropSupervisor(life context.Context, t *testing.T, ask <-chan int, answers chan<- error) {
	t.Helper()
	sup, err := supervisor.New(supervisor.Goroutine)
	require.NoError(t, err, "New")
	register(t, sup, newCrowdMember)
	c := &correspondent{sup: sup}
	id := register(t, sup, supervisor.Object(&dropped{c, ask, answers}), supervisor.Stop{Grace: -1})
	require.NoError(t, sup.StartLink(life), "StartLink")
	send(t, sup, supervisor.NewSendPayload(id, "Answer"))
}

// dropped is an object that takes its requests from a channel.
type dropped struct {
	*correspondent
	ask     <-chan int
	answers chan<- error
}

// Answer answers until the context ends.
func (d *dropped) Answer(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case n := <-d.ask:
			got, err := supervisor.Call[int](ctx, d.sup, 0, "Echo", n)
			if err == nil && got != n {
				err = fmt.Errorf("the answer is %d", got)
			}
			d.answers <- err
		}
	}
}
