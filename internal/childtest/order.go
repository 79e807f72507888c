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
	r := Start(t, k)
	var want []string
	var reqs []supervisor.SendPayload
	for i := range 300 {
		want = append(want, fmt.Sprint(i))
		reqs = append(reqs, r.Send(t, r.ID, "Log", want[i]))
	}
	replies, err := r.Sup.RecvAll(r.Ctx, reqs)
	require.NoError(t, err)
	for i, p := range replies {
		require.Equal(t, reqs[i].ReqID, p.ReqID, "reply %d", i)
	}
	require.Equal(t, want, CallOf[[]string](t, r, r.ID, "Logged"))
}

func oneAtATime(t *testing.T, k Kind) {
	r := Start(t, k)
	first, v := r.Occupy(t, r.ID)
	second := r.Send(t, r.ID, "Hold", "second")
	third := r.Send(t, r.ID, "Hold", "third")
	r.Gate.Empty(t, "while the first one does")
	v.Release(t, "1")
	require.Equal(t, "1", r.Recv(t, first).Data)
	for i, p := range []supervisor.SendPayload{second, third} {
		v := r.Gate.Next(t)
		require.Equal(t, []string{"second", "third"}[i], v.Name, "who comes next")
		v.Release(t, "later")
		require.Equal(t, "later", r.Recv(t, p).Data)
	}
}

func concurrency(t *testing.T, k Kind) {
	r := NewRig(t, k)
	var err error
	r.ID, err = k.Register(r.Ctx, r.Sup, r.Job(), supervisor.WithConcurrency(3))
	if !k.Can.Concurrency {
		require.ErrorIs(t, err, supervisor.ErrUnsupported)
		return
	}
	require.NoError(t, err)
	r.StartLink(t)
	var reqs []supervisor.SendPayload
	for range 4 {
		reqs = append(reqs, r.Send(t, r.ID, "Hold", "one"))
	}
	at := []*Visitor{r.Gate.Next(t), r.Gate.Next(t), r.Gate.Next(t)}
	load := r.Child(t, r.ID).Load
	require.Equal(t, 3, load.InFlight, "in flight")
	require.Equal(t, 1, load.Queued, "queued")
	r.Gate.Empty(t, "although three do")
	at[1].Release(t, "")
	r.Gate.Next(t).Release(t, "") // the fourth
	at[0].Release(t, "")
	at[2].Release(t, "")
	_, err = r.Sup.RecvAll(r.Ctx, reqs)
	require.NoError(t, err)
}

func manySenders(t *testing.T, k Kind) {
	r := Start(t, k)
	const senders, each = 8, 40
	var tasks []*task.Task
	errs := make(chan error, senders*each)
	for s := range senders {
		tasks = append(tasks, task.Go(func(context.Context) {
			for i := range each {
				p := supervisor.NewSendPayload(r.ID, "Log", fmt.Sprintf("%d %d", s, i))
				if err := r.Sup.Send(r.Ctx, p); err != nil {
					errs <- err
				}
			}
		}))
	}
	for _, one := range tasks {
		one.Wait()
	}
	require.Empty(t, errs, "errors of Send")
	log := CallOf[[]string](t, r, r.ID, "Logged")
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
