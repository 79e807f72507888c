package childtest

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/task"
)

var orderRules = []rule{
	{"handlers run in the order of the sends", sendOrder},
	{"handlers run one at a time", oneAtATime},
	{"WithConcurrency opens that up, to its number", concurrency},
	{"many senders keep their own order", manySenders},
}

func sendOrder(t *testing.T, k Kind) {
	r := start(t, k)
	var want []string
	var reqs []supervisor.SendPayload
	for i := range 300 {
		want = append(want, fmt.Sprint(i))
		reqs = append(reqs, r.send(t, r.id, "Log", want[i]))
	}
	replies, err := r.sup.RecvAll(r.ctx, reqs)
	require.NoError(t, err)
	for i, p := range replies {
		require.Equal(t, reqs[i].ReqID, p.ReqID, "reply %d", i)
	}
	require.Equal(t, want, call[[]string](t, r, r.id, "Logged"))
}

func oneAtATime(t *testing.T, k Kind) {
	r := start(t, k)
	first, v := r.occupy(t, r.id)
	second := r.send(t, r.id, "Hold", "second")
	third := r.send(t, r.id, "Hold", "third")
	r.gate.empty(t, "while the first one does")
	v.release(t, "1")
	require.Equal(t, "1", r.recv(t, first).Data)
	for i, p := range []supervisor.SendPayload{second, third} {
		v := r.gate.next(t)
		require.Equal(t, []string{"second", "third"}[i], v.name, "who comes next")
		v.release(t, "later")
		require.Equal(t, "later", r.recv(t, p).Data)
	}
}

func concurrency(t *testing.T, k Kind) {
	r := newRig(t, k)
	var err error
	r.id, err = k.Register(r.ctx, r.sup, r.job(), supervisor.WithConcurrency(3))
	if !k.Can.Concurrency {
		require.ErrorIs(t, err, supervisor.ErrUnsupported)
		return
	}
	require.NoError(t, err)
	r.startLink(t)
	var reqs []supervisor.SendPayload
	for range 4 {
		reqs = append(reqs, r.send(t, r.id, "Hold", "one"))
	}
	at := []*visitor{r.gate.next(t), r.gate.next(t), r.gate.next(t)}
	load := r.child(t, r.id).Load
	require.Equal(t, 3, load.InFlight, "in flight")
	require.Equal(t, 1, load.Queued, "queued")
	r.gate.empty(t, "although three do")
	at[1].release(t, "")
	r.gate.next(t).release(t, "") // the fourth
	at[0].release(t, "")
	at[2].release(t, "")
	_, err = r.sup.RecvAll(r.ctx, reqs)
	require.NoError(t, err)
}

func manySenders(t *testing.T, k Kind) {
	r := start(t, k)
	const senders, each = 8, 40
	var tasks []*task.Task
	errs := make(chan error, senders*each)
	for s := range senders {
		tasks = append(tasks, task.Go(func(context.Context) {
			for i := range each {
				p := supervisor.NewSendPayload(r.id, "Log", fmt.Sprintf("%d %d", s, i))
				if err := r.sup.Send(r.ctx, p); err != nil {
					errs <- err
				}
			}
		}))
	}
	for _, one := range tasks {
		one.Wait()
	}
	require.Empty(t, errs, "errors of Send")
	log := call[[]string](t, r, r.id, "Logged")
	require.Len(t, log, senders*each)
	next := make([]int, senders)
	for _, word := range log {
		var s, i int
		_, err := fmt.Sscan(word, &s, &i)
		require.NoError(t, err, word)
		require.Equal(t, next[s], i, "next of sender %d", s)
		next[s]++
	}
}
