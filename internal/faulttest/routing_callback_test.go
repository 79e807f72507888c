package faulttest_test

// Functions of OnReply that panic, never stop, or take their time; and requests that end in different ways.

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

// A panic at whichever reply passes through RecvAll, and costs none of the others.
func TestR08OnReplyPanicsAtAnyReply(t *testing.T) {
	const replies = 6
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		sup := clerks(t, k, 1)
		ctx := testkit.Context(t)
		for at := range replies {
			var reqs []supervisor.SendPayload
			for i := range replies {
				reqs = append(reqs, supervisor.NewSendPayload(0, "Echo", i))
			}
			send(t, sup, reqs...)
			calls := 0
			require.PanicsWithValue(t, fmt.Sprint("at reply ", at), func() {
				_, _ = sup.RecvAll(ctx, reqs, supervisor.OnReply(func(_ *supervisor.Waiting, p supervisor.RecvPayload) error {
					if calls++; p.Data == at {
						panic(fmt.Sprint("at reply ", at))
					}
					return nil
				}))
			}, "the panic of OnReply")
			require.Equal(t, at+1, calls, "calls of OnReply")
			for i := at + 1; i < replies; i++ {
				p, err := sup.Recv(ctx)
				require.NoError(t, err, "Recv of a reply that was not taken")
				require.Equal(t, i, p.Data, "its value")
			}
			nothingLeft(t, sup)
		}
		shutdown(t, sup)
	})
}

// A function that always wants one more reply is ended by ctx, and until then uses no more memory than in the beginning.
func TestR10OnReplyAddsForEver(t *testing.T) {
	const size = 4 << 10          // bytes of an argument, so that what is kept shows
	const limit uint64 = 3 * size // bytes that may be added for each ten rounds: less than half of what was sent
	rounds := times(4000, 1_000_000)
	for name, more := range map[string]func(context.Context, *supervisor.Supervisor, *supervisor.Waiting, supervisor.SendPayload) error{
		"Send": func(_ context.Context, _ *supervisor.Supervisor, w *supervisor.Waiting, p supervisor.SendPayload) error {
			return w.Send(p)
		},
		"Add": func(ctx context.Context, sup *supervisor.Supervisor, w *supervisor.Waiting, p supervisor.SendPayload) error {
			return errors.Join(w.Add(p), sup.Send(ctx, p))
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachKind(t, func(t *testing.T, k childtest.Kind) {
				sup := clerks(t, k, 1)
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				next := func(n int) supervisor.SendPayload {
					return clerkPayload(strconv.Itoa(n), 0, "Take", n, make([]byte, size))
				}
				n := 0
				var early, late uint64
				_, err := sup.RecvAll(ctx, send(t, sup, next(0)), supervisor.IgnoreErr(),
					supervisor.OnReply(func(w *supervisor.Waiting, p supervisor.RecvPayload) error {
						switch n++; {
						case p.Err != nil:
							return p.Err
						case n == rounds/2:
							early = clerkHeap()
						case n == rounds:
							late = clerkHeap()
							cancel()
						}
						return more(ctx, sup, w, next(n))
					}))
				require.ErrorIs(t, err, supervisor.ErrCanceled, "the end of ctx refuses what the function sends")
				require.Equal(t, rounds, n, "calls of OnReply")
				require.Less(t, late, early+limit*uint64(rounds)/20, "bytes in use after all rounds; %d after half of them", early)
				nothingLeft(t, sup)
				shutdown(t, sup)
			})
		})
	}
}

// While a function of OnReply is at it, replies go on arriving, more than any pipe holds, and others get theirs.
func TestR11SlowOnReply(t *testing.T) {
	t.Run("others meanwhile", func(t *testing.T) {
		eachKind(t, func(t *testing.T, k childtest.Kind) {
			const blobs, size = 100, 64 << 10
			sup := clerks(t, k, 1)
			ctx := testkit.Context(t)
			slow := send(t, sup, supervisor.NewSendPayload(0, "Echo", 1))
			var own []supervisor.SendPayload
			for range blobs {
				own = append(own, supervisor.NewSendPayload(0, "Blob", size))
			}
			busy, release := make(chan struct{}), make(chan struct{})
			slowEnd := make(chan error, 1)
			send(t, sup, own...)
			task.Go(func(context.Context) {
				_, err := sup.RecvAll(ctx, append(slow, own[:blobs/2]...), supervisor.OnReply(
					func(_ *supervisor.Waiting, p supervisor.RecvPayload) error {
						if p.ReqID == slow[0].ReqID {
							close(busy)
							<-release
						}
						return nil
					}))
				slowEnd <- err
			})
			testkit.Closed(t, busy, "the slow function is called")
			got, err := sup.RecvAll(ctx, own[blobs/2:])
			require.NoError(t, err, "RecvAll of somebody else meanwhile")
			for i, p := range got {
				require.Equal(t, size, len(p.Data.([]byte)), "bytes of value %d", i) //nolint:testifylint // Len prints them
			}
			testkit.Until(t, "all that the slow one waits for is there", func() bool { return sup.Snapshot().Open == 0 })
			close(release)
			require.NoError(t, testkit.Receive(t, slowEnd, "the end of the slow one"), "RecvAll of the slow one")
			shutdown(t, sup)
		})
	})
	t.Run("by the clock", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			const replies, each = 100, 50 * time.Millisecond
			sup := clerks(t, childtest.Goroutines(), 1)
			var reqs []supervisor.SendPayload
			for i := range replies {
				reqs = append(reqs, supervisor.NewSendPayload(0, "Echo", i))
			}
			send(t, sup, reqs...)
			began := time.Now()
			slow := make(chan error, 1)
			go func() {
				_, err := sup.RecvAll(t.Context(), reqs, supervisor.OnReply(func(*supervisor.Waiting, supervisor.RecvPayload) error {
					<-time.After(each)
					return nil
				}))
				slow <- err
			}()
			for i := range replies {
				<-time.After(each / 2) // in the middle of the function
				asked := time.Now()
				req := send(t, sup, supervisor.NewSendPayload(0, "Echo", i))
				got, err := sup.RecvAll(t.Context(), req)
				require.NoError(t, err, "RecvAll of somebody else")
				require.Equal(t, i, got[0].Data, "its value")
				require.Zero(t, time.Since(asked), "how long it was held up")
				<-time.After(each / 2)
			}
			require.NoError(t, <-slow, "the slow RecvAll")
			require.Equal(t, replies*each, time.Since(began), "time of the slow RecvAll")
			shutdown(t, sup)
		})
	})
}

// Three children end three requests in three ways. Each entry says whose it is.
func TestR16MixedEnds(t *testing.T) {
	eachKind(t, func(t *testing.T, k childtest.Kind) {
		r := childtest.NewRig(t, k)
		for range 4 {
			r.Register(t, r.Job())
		}
		r.StartLink(t)
		dying, v := r.Occupy(t, 1)
		late, atGate := r.Occupy(t, 2)
		reqs := []supervisor.SendPayload{r.Send(t, 0, "Fail", "sentinel"), dying, late, r.Send(t, 3, "Int", 7)}
		before := r.Sup.Snapshot().Children
		want := supervisor.ErrRestarted // what has no crash is restarted
		if k.Kill != nil {
			k.Kill(t, r.Sup, 1)
			want = nil
		} else {
			require.NoError(t, r.Sup.Restart(r.Ctx, 1), "Restart")
		}
		v.Gone(t)
		r.Events.WaitFor(t, "the next life", func(e supervisor.Event) bool {
			return e.Kind == supervisor.EventStarted && e.ProcID == 1 && e.Incarnation > before[1].Incarnation
		})
		ctx, cancel := context.WithTimeout(r.Ctx, 50*time.Millisecond)
		defer cancel()
		got, err := r.Sup.RecvAll(ctx, reqs, supervisor.IgnoreErr())
		require.NoError(t, err, "RecvAll with IgnoreErr")
		for i, p := range got {
			require.Equal(t, reqs[i].ReqID, p.ReqID, "request of entry %d", i)
			require.Equal(t, reqs[i].ProcID, p.ProcID, "child of entry %d", i)
			if i < 3 {
				e := childtest.CallErrorOf(t, p.Err, i, reqs[i].Method)
				require.Equal(t, before[i].Incarnation, e.Incarnation, "life of entry %d", i)
				require.Equal(t, reqs[i].ReqID, e.ReqID, "request in the error of entry %d", i)
			}
		}
		var remote *supervisor.RemoteError
		require.ErrorAs(t, got[0].Err, &remote, "the handler's error")
		require.ErrorIs(t, got[0].Err, childtest.ErrSentinel, "the handler's error")
		if want != nil {
			require.ErrorIs(t, got[1].Err, want, "the restarted child")
		} else {
			var exit *supervisor.ExitError
			require.ErrorAs(t, got[1].Err, &exit, "the killed child")
			require.Equal(t, before[1].Pid, exit.Pid, "its process")
		}
		require.ErrorIs(t, got[2].Err, supervisor.ErrTimeout, "the one that took too long")
		require.Equal(t, 7, got[3].Data, "the value beside them")
		atGate.Left(t)
		nothingLeft(t, r.Sup)
	})
}
